//! The two ends, each beside a run, with a queue between them.

use crate::{
    carrier::Queue,
    run::{LONG_NS, Run},
};
use lowlat_bridge::{
    receiver::{self, Receiver, Says, StreamOptions},
    sender::{self, Sender},
};
use lowlat_trade::{
    clock::now_ns,
    master::Master,
    node::{Node, Wait},
};

/// The run that records come from: a node that writes, and the bridge's sender.
pub struct Near {
    pub here: Run,
    pub queue: Queue,
    pub md: Node,
    pub sender: Sender<Queue>,
}

impl Near {
    pub fn start() -> Self {
        Self::writing("md", 4)
    }

    /// With another stream than md, or another number of its instruments.
    pub fn writing(stream: &str, keys: u32) -> Self {
        let (here, queue) = (Run::start(), Queue::connected());
        let mut md = here.writer(stream, keys);
        let sender = sender(&here, &queue);
        md.poll(&mut |_, _| ());
        Self { here, queue, md, sender }
    }
}

/// The run that they go to, with the bridge's receiver.
pub struct Far {
    pub there: Run,
    pub receiver: Receiver,
}

impl Far {
    pub fn start(has_marks: bool) -> Self {
        let there = Run::start();
        let receiver = receiver(&there, has_marks);
        Self { there, receiver }
    }
}

/// The word to begin. Nodes that join later would wait for those that run.
pub fn begin(run: &Run, receiver: &mut Receiver) {
    run.with(Master::begin);
    let end = now_ns() + LONG_NS;
    while !receiver.has_begun() {
        assert!(now_ns() < end, "no word to begin");
        receiver.hear().unwrap();
    }
}

/// Ends a node as if its process had died.
pub fn give_up(run: &Run, name: &'static str) {
    run.with(move |master| master.give_up(name).unwrap());
}

pub fn sender(run: &Run, queue: &Queue) -> Sender<Queue> {
    let options = sender::Options {
        name: "bridge".to_owned(),
        streams: vec!["*".to_owned()],
        wait: Wait::Parked,
        patience_ns: 1_000_000,
    };
    Sender::join(&run.socket(), &options, queue.clone()).unwrap()
}

fn receiver(run: &Run, has_marks: bool) -> Receiver {
    let stream = StreamOptions { stream: "md".to_owned(), keys: 4, capacity_bytes: 1 << 16 };
    let options =
        receiver::Options { name: "bridge".to_owned(), streams: vec![stream], wait: Wait::Parked, has_marks };
    Receiver::join(&run.socket(), &options).unwrap()
}

/// Lets the sender send everything that is there.
pub fn send(sender: &mut Sender<Queue>) {
    let before = |sender: &Sender<Queue>| {
        let counts = sender.counts();
        counts.sent + counts.lost + counts.back_pressure + counts.not_connected + counts.too_long + counts.old
    };
    // A turn takes no more than a batch of each stream.
    loop {
        let seen = before(sender);
        sender.turn(now_ns()).unwrap();
        if before(sender) == seen {
            return;
        }
    }
}

/// Gives frames to a receiver. Gives back what it says.
pub fn receive(receiver: &mut Receiver, frames: &[Vec<u8>]) -> Vec<Says> {
    let mut said = Vec::new();
    for frame in frames {
        receiver.hear().unwrap();
        receiver.take(frame, &mut |says| said.push(says)).unwrap();
    }
    said
}
