//! Both ends allocate nothing after their start.

use crate::allocator;
use crate::run::{Run, publish};
use lowlat_bridge::{
    Carrier, Offered,
    receiver::{self, BridgedStreamOptions, Receiver},
    sender::{self, Sender},
};
use lowlat_node::{Wait, clock::now_ns};
use lowlat_trade::master::Master;
use std::{cell::RefCell, rc::Rc};

/// Consecutive frames, in preallocated memory.
#[derive(Debug, Clone)]
struct Tape(Rc<RefCell<(Vec<u8>, Vec<usize>)>>);

impl Carrier for Tape {
    fn offer(&mut self, frame: &[u8]) -> Offered {
        let mut tape = self.0.borrow_mut();
        let (bytes, ends) = &mut *tape;
        bytes.extend_from_slice(frame);
        ends.push(bytes.len());
        Offered::Taken
    }

    fn is_connected(&self) -> bool {
        true
    }
}

impl Tape {
    /// Replays its contents from the start, and clears it.
    fn play(&self, receiver: &mut Receiver) {
        let mut tape = self.0.borrow_mut();
        let mut begin = 0;
        for end in &tape.1 {
            receiver.hear().unwrap();
            receiver.take(&tape.0[begin..*end], &mut |_| ()).unwrap();
            begin = *end;
        }
        tape.0.clear();
        tape.1.clear();
    }
}

#[test]
fn both_ends_allocate_nothing() {
    let (here, there) = (Run::start(), Run::start());
    let tape = Tape(Rc::new(RefCell::new((Vec::with_capacity(1 << 20), Vec::with_capacity(1 << 12)))));
    let mut md = here.writer("md", 4);
    let options = sender::Options {
        name: "bridge".to_owned(),
        streams: vec!["md".to_owned()],
        wait: Wait::Parked,
        patience_ns: 0,
    };
    let mut sender = Sender::join(&here.socket(), &options, tape.clone()).unwrap();
    md.poll(&mut |_, _| ());
    let stream = BridgedStreamOptions { stream: "md".to_owned(), keys: 4, capacity_bytes: 1 << 20 };
    let options = receiver::Options {
        name: "bridge".to_owned(),
        streams: vec![stream],
        wait: Wait::Parked,
        has_marks: true,
    };
    let mut receiver = Receiver::join(&there.socket(), &options).unwrap();
    here.with(Master::begin);
    there.with(Master::begin);
    let mut round = |count| {
        publish(&mut md, count);
        let (asked, ()) = allocator::asked(|| {
            let until = sender.counts().sent + count;
            while sender.counts().sent < until {
                sender.turn(now_ns()).unwrap();
            }
            tape.play(&mut receiver);
        });
        asked.allocations
    };
    assert!(round(100) > 0, "allocations are counted: the stream is named, and a notice sent");
    // The nodes handle their masters' messages.
    round(1000);
    assert_eq!([round(1000), round(1000)], [0, 0]);
    assert_eq!((receiver.counts().published, receiver.counts().lost), (3100, 0));
}
