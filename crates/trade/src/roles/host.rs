//! A strategy host: many strategies in one process.

use super::{
    RoleError, numbers_of,
    sink::{OrderStream, note},
    strategy::{Seen, gap},
};
use crate::{
    clock::now_ns,
    node::{Event, Node, PublishError, Publisher},
    strategy::{
        Numbers, OrderSink,
        host::{Host, SinkOf},
    },
};
use lowlat_ipc::region::Memfd;
use std::sync::Arc;

/// Calls of strategies between two looks at what has come.
const CALLS_PER_POLL: u32 = 32;

/// What a host did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HostDone {
    /// Records that it was given.
    pub records: u64,
    /// Records that were lost to its node.
    pub lost: u64,
    /// Strategies that were moved out.
    pub moved_out: u32,
}

/// What a host says to its master of a strategy that is to have a process of its own, before the strategy's number.
pub const MOVE_OUT: &str = "move out ";

/// Serves the strategies of a host until the word to end; its node joined with [`super::strategy::join`]. `move_out` is told
/// the number of a strategy that is to have a process of its own from now on, and so is the master ([`MOVE_OUT`]): that
/// process joins with the strategy's number and instruments, and its order numbers go on.
pub fn run(mut node: Node, host: &mut Host, move_out: &mut dyn FnMut(u32)) -> Result<HostDone, RoleError> {
    let mut sinks = Sinks::new(&node, host);
    let mut done = HostDone::default();
    let (mut failed, mut is_over) = (None, false);
    // Those of one turn, which is none at all but for a few in a day.
    let mut moving = Vec::new();
    while !is_over && failed.is_none() {
        if !host.is_ready() {
            node.wait(None);
        }
        node.poll(&mut |_, event| match event {
            Event::Record { stream, record, payload } => {
                done.records += 1;
                match Seen::new(record, payload) {
                    Ok(Seen::Quote(seen)) => host.take_quote(&seen),
                    Ok(Seen::Answer(number, seen)) => host.take_answer(number, &seen),
                    Ok(Seen::Gap(_) | Seen::Other) => {}
                    Err(source) => {
                        let (stream, sequence) = (stream.as_str().to_owned(), record.sequence);
                        failed.get_or_insert(RoleError::Record { stream, sequence, source });
                    }
                }
            }
            Event::Lost { stream, count } => {
                done.lost += count;
                host.take_gap(gap(stream.as_str(), count));
            }
            Event::Stop => is_over = true,
            Event::Begin | Event::Command(_) => {}
        });
        let mut moved = |number| {
            done.moved_out += 1;
            moving.push(number);
            move_out(number);
        };
        let mut calls = 0;
        let mut sinks = sinks.with_publisher(node.publisher());
        while (is_over || calls < CALLS_PER_POLL) && host.serve(&mut sinks, &mut now_ns, &mut moved) {
            calls += 1;
        }
        if let Some(error) = sinks.sinks.unsent {
            failed.get_or_insert(error.into());
        }
        for number in moving.drain(..) {
            node.say(&format!("{MOVE_OUT}{number}"));
        }
    }
    match (failed, node.ended()) {
        (Some(error), _) => Err(error),
        (None, Some(ended)) => Err(ended.into()),
        (None, None) => Ok(done),
    }
}

/// Order numbers of all strategies.
struct Sinks {
    numbers: Vec<Option<Numbers<Arc<Memfd>>>>,
    unsent: Option<PublishError>,
}

/// The same with the stream that orders go to.
struct WithPublisher<'a> {
    sinks: &'a mut Sinks,
    publisher: &'a mut Publisher,
}

impl Sinks {
    fn new(node: &Node, host: &Host) -> Self {
        let mut numbers = Vec::new();
        for number in host.numbers() {
            let at = usize::try_from(number).unwrap_or(usize::MAX);
            if numbers.len() <= at {
                numbers.resize_with(at + 1, || None);
            }
            if let Some(place) = numbers.get_mut(at) {
                *place = Some(numbers_of(node, number));
            }
        }
        Self { numbers, unsent: None }
    }

    fn with_publisher<'a>(&'a mut self, publisher: &'a mut Publisher) -> WithPublisher<'a> {
        WithPublisher { sinks: self, publisher }
    }
}

impl SinkOf for WithPublisher<'_> {
    #[inline]
    fn with(&mut self, strategy: u32, then: &mut dyn FnMut(&mut dyn OrderSink)) {
        let at = usize::try_from(strategy).unwrap_or(usize::MAX);
        if let Some(Some(numbers)) = self.sinks.numbers.get_mut(at) {
            let unsent = &mut self.sinks.unsent;
            then(&mut OrderStream::new(self.publisher, numbers, |error| note(unsent, error)));
        }
    }
}
