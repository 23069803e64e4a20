//! ringfire: a ring for one writer and many readers in a file of /dev/shm.

use super::{Channel, Transport};
use crate::ipc::{one_way::End, trial::message::Words};
use ringfire::{BusySpin, FutexWait, RingConsumer, RingProducer};
use std::time::Duration;

const SLOTS: u64 = 1024;
/// Default number of spins of its futex before it sleeps.
const SPINS: u32 = 32;
/// Longest sleep: ringfire's own default.
const SLEEP_MAX: Duration = Duration::from_millis(50);

/// Waiting mode of its reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waiting {
    Spin,
    /// ringfire's default: spins, then sleeps.
    Adaptive,
    /// Sleeps at once, without spinning.
    Sleep,
}

/// One ring in each direction.
#[derive(Debug)]
pub struct Ring {
    there: RingProducer<Words>,
    back: RingConsumer<Words>,
    waiting: Waiting,
}

impl Ring {
    pub fn new(channel: &Channel, waiting: Waiting) -> anyhow::Result<Self> {
        let (own, other) = match channel.end {
            End::Ping => ("there", "back"),
            End::Echo => ("back", "there"),
        };
        let there = RingProducer::create(channel.folder.join(own), SLOTS)?;
        channel.meet(1);
        let back = RingConsumer::builder().start_from_oldest().attach(channel.folder.join(other))?;
        Ok(Self { there, back, waiting })
    }
}

impl Transport for Ring {
    type Message = Words;

    fn send(&mut self, message: &Words) -> anyhow::Result<()> {
        self.there.push(message);
        Ok(())
    }

    fn receive(&mut self, message: &mut Words) -> anyhow::Result<()> {
        *message = match self.waiting {
            Waiting::Spin => self.back.recv_blocking(&mut BusySpin),
            Waiting::Adaptive => self.back.recv_blocking(&mut FutexWait::new(SPINS, Some(SLEEP_MAX))),
            Waiting::Sleep => self.back.recv_blocking(&mut FutexWait::new(0, Some(SLEEP_MAX))),
        };
        Ok(())
    }
}
