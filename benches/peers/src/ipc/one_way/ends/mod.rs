//! Senders and receivers of all subjects.

#[cfg(feature = "aeron")]
pub mod aeron;
mod files;
#[cfg(feature = "iceoryx2")]
pub mod iceoryx2;
mod lowlat;
mod raw;
mod ringfire;

use super::{channel::Channel, play, subject::Subject};
use crate::ipc::trial::message::{PAYLOAD_BYTES, Words};
use ringfire::Waiting;

/// A message as bytes. They are written and read in place, word by word: a read of two words at once would wait until
/// both have left the store buffer, and that would be measured.
pub type Bytes = [u8; PAYLOAD_BYTES];

/// An empty message, to receive into.
pub const EMPTY: Bytes = [0; PAYLOAD_BYTES];

/// Content of a message: eight words, all of them the same number. A transport takes it in its own form, so that no
/// copy is measured that its users would not make.
pub trait Content: std::fmt::Debug {
    /// Returns the message of a number.
    fn of(number: u64) -> Self;
    /// Returns true if every word is this number.
    fn is_of(&self, number: u64) -> bool;
}

impl Content for Bytes {
    fn of(number: u64) -> Self {
        let mut message = EMPTY;
        message.as_chunks_mut().0.fill(number.to_ne_bytes());
        message
    }

    fn is_of(&self, number: u64) -> bool {
        self.as_chunks().0.iter().all(|word| u64::from_ne_bytes(*word) == number)
    }
}

impl Content for Words {
    fn of(number: u64) -> Self {
        [number; PAYLOAD_BYTES / 8]
    }

    fn is_of(&self, number: u64) -> bool {
        self.iter().all(|word| *word == number)
    }
}

/// One side of a transport. Both may wait forever: the process that started them ends them.
pub trait Transport {
    /// Type of message that its users send and receive.
    type Message: Content;
    fn send(&mut self, message: &Self::Message) -> anyhow::Result<()>;
    /// Waits for the next message, and puts it into `message`.
    fn receive(&mut self, message: &mut Self::Message) -> anyhow::Result<()>;
}

/// Runs one side of a subject.
pub fn run(subject: Subject, channel: Channel, load: &play::Load) -> anyhow::Result<()> {
    match subject {
        Subject::Line => play::run(raw::Line::new(&channel), &channel, load),
        Subject::LinePair => play::run(raw::Pair::new(&channel), &channel, load),
        Subject::LowlatHead => play::run(lowlat::Heads::new(&channel)?, &channel, load),
        Subject::LowlatStream => play::run(lowlat::Stream::new(&channel)?, &channel, load),
        Subject::LowlatInbox => play::run(lowlat::Inboxes::new(&channel, false)?, &channel, load),
        Subject::LowlatBell => play::run(lowlat::Inboxes::new(&channel, true)?, &channel, load),
        Subject::Futex => play::run(raw::Futex::new(&channel)?, &channel, load),
        Subject::Eventfd => {
            let mut channel = channel;
            play::run(files::Event::new(&mut channel)?, &channel, load)
        }
        Subject::Pipe => {
            let mut channel = channel;
            play::run(files::Pipe::new(&mut channel)?, &channel, load)
        }
        Subject::Seqpacket => {
            let mut channel = channel;
            play::run(files::Seqpacket::new(&mut channel)?, &channel, load)
        }
        Subject::Ringfire => play::run(ringfire::Ring::new(&channel, Waiting::Spin)?, &channel, load),
        Subject::RingfireAdaptive => {
            play::run(ringfire::Ring::new(&channel, Waiting::Adaptive)?, &channel, load)
        }
        Subject::RingfireSleep => play::run(ringfire::Ring::new(&channel, Waiting::Sleep)?, &channel, load),
        #[cfg(feature = "aeron")]
        Subject::Aeron => play::run(aeron::Ipc::new(&channel)?, &channel, load),
        #[cfg(not(feature = "aeron"))]
        Subject::Aeron => anyhow::bail!("{}: {}", subject.name(), subject.missing().unwrap_or_default()),
        #[cfg(feature = "iceoryx2")]
        Subject::Iceoryx2 => play::run(iceoryx2::PubSub::new(&channel)?, &channel, load),
        #[cfg(feature = "iceoryx2")]
        Subject::Iceoryx2Event => play::run(iceoryx2::Evented::new(&channel)?, &channel, load),
        #[cfg(not(feature = "iceoryx2"))]
        Subject::Iceoryx2 | Subject::Iceoryx2Event => {
            anyhow::bail!("{}: {}", subject.name(), subject.missing().unwrap_or_default())
        }
    }
}
