//! The two ends, each with a run, and a queue between them.

use crate::{
    ends::carrier::Queue,
    run::{LONG_NS, Run},
};
use lowlat_bridge::{
    receiver::{self, BridgedStreamOptions, Receiver, ReceiverEvent},
    sender::{self, Sender},
};
use lowlat_node::{Node, Wait, clock::now_ns};
use lowlat_trade::master::Master;

/// The originating run: a writing node, and the bridge's sender.
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

    /// With another stream than md, or another number of instruments.
    pub fn writing(stream: &str, keys: u32) -> Self {
        let (here, queue) = (Run::start(), Queue::connected());
        let mut md = here.writer(stream, keys);
        let sender = sender(&here, &queue);
        md.poll(&mut |_, _| ());
        Self { here, queue, md, sender }
    }
}

/// The destination run, with the bridge's receiver.
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

/// The begin message. Nodes that join later would wait for running ones.
pub fn begin(run: &Run, receiver: &mut Receiver) {
    run.with(Master::begin);
    let end = now_ns() + LONG_NS;
    while !receiver.has_begun() {
        assert!(now_ns() < end, "no begin message");
        receiver.hear().unwrap();
    }
}

/// Ends a node as if its process had died.
pub fn drop_node(run: &Run, name: &'static str) {
    run.with(move |master| master.drop_node(name).unwrap());
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
    let stream = BridgedStreamOptions { stream: "md".to_owned(), keys: 4, capacity_bytes: 1 << 16 };
    let options =
        receiver::Options { name: "bridge".to_owned(), streams: vec![stream], wait: Wait::Parked, has_marks };
    Receiver::join(&run.socket(), &options).unwrap()
}

/// Lets the sender send everything available.
pub fn send(sender: &mut Sender<Queue>) {
    let before = |sender: &Sender<Queue>| {
        let counts = sender.counts();
        counts.sent + counts.lost + counts.back_pressure + counts.not_connected + counts.too_long + counts.old
    };
    // A turn handles at most one batch per stream.
    loop {
        let seen = before(sender);
        sender.turn(now_ns()).unwrap();
        if before(sender) == seen {
            return;
        }
    }
}

/// Passes frames to a receiver. Returns its events.
pub fn receive(receiver: &mut Receiver, frames: &[Vec<u8>]) -> Vec<ReceiverEvent> {
    let mut said = Vec::new();
    for frame in frames {
        receiver.hear().unwrap();
        receiver.take(frame, &mut |says| said.push(says)).unwrap();
    }
    said
}
