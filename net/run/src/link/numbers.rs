//! Numbers of messages, where a network may lose, delay or repeat them.
//!
//! The client numbers its messages from 1 on, through all batches and sizes, and the server answers each number once.
//! The number is in the first eight bytes, or its low bytes in all of a shorter message; an empty one has none.

use super::Link;
use std::sync::atomic::Ordering;

const NUMBER_BYTES: usize = 8;

/// The end of a run that a link is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Numbers its messages and waits for the same number.
    Client,
    /// Answers each number once.
    Server,
}

/// Messages that were received and not waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Strays {
    /// Messages that had been given up, or belong to an earlier batch.
    pub late: u64,
    /// Messages that had arrived before.
    pub repeated: u64,
}

impl Strays {
    /// Adds those of another end or batch.
    pub fn add(&mut self, other: Self) {
        self.late += other.late;
        self.repeated += other.repeated;
    }
}

/// Progress in the numbers of a run.
#[derive(Debug)]
pub(super) struct MessageNumbers {
    side: Side,
    /// The first number of the batch.
    first: u64,
    /// Number sent last, or answered last.
    last: u64,
    /// Numbers sent and given up.
    given_up: Vec<u64>,
    strays: Strays,
}

/// Writes a number into the first bytes of a message.
pub(super) fn write(message: &mut [u8], number: u64) {
    let bytes = message.len().min(NUMBER_BYTES);
    if let (Some(place), Some(low)) =
        (message.get_mut(..bytes), number.to_be_bytes().get(NUMBER_BYTES - bytes..))
    {
        place.copy_from_slice(low);
    }
}

/// The number in a message, and the bits that it has.
fn read(message: &[u8]) -> (u64, u64) {
    let bytes = message.get(..message.len().min(NUMBER_BYTES)).unwrap_or_default();
    let number = bytes.iter().fold(0, |number, byte| (number << 8) | u64::from(*byte));
    let bits = bytes.iter().fold(0, |bits, _| (bits << 8) | 0xff);
    (number, bits)
}

impl MessageNumbers {
    fn new(side: Side) -> Self {
        Self { side, first: 1, last: 0, given_up: Vec::new(), strays: Strays::default() }
    }

    /// Numbers the client's next message. The server's has the number of the one that it answers.
    pub(super) fn send(&mut self, message: &mut [u8]) {
        if self.side == Side::Client {
            self.last += 1;
            write(message, self.last);
        }
    }

    /// Returns whether this is the message that the end waits for; counts it if it is not.
    pub(super) fn is_awaited(&mut self, message: &[u8]) -> bool {
        let (number, bits) = read(message);
        if bits == 0 {
            return true;
        }
        let is = |other: &u64| other & bits == number;
        match self.side {
            Side::Client if is(&self.last) => return true,
            Side::Client => match self.given_up.iter().position(is) {
                Some(place) => {
                    self.given_up.swap_remove(place);
                    self.strays.late += 1;
                }
                None => self.strays.repeated += 1,
            },
            Side::Server => {
                // Low bytes wrap around: a number less than half their range ahead is new.
                let ahead = number.wrapping_sub(self.last) & bits;
                if ahead > 0 && ahead <= bits / 2 {
                    self.last += ahead;
                    return true;
                }
                let back = self.last.wrapping_sub(number) & bits;
                let is_of_batch = self.last.checked_sub(self.first).is_some_and(|answered| back <= answered);
                if is_of_batch { self.strays.repeated += 1 } else { self.strays.late += 1 }
            }
        }
        false
    }

    /// Returns whether the datagram that gives a message up is of this batch.
    pub(super) fn is_of_batch(&self, datagram: &[u8]) -> bool {
        let (number, bits) = read(datagram);
        self.first & bits == number
    }

    pub(super) fn count_late(&mut self) {
        self.strays.late += 1;
    }
}

impl Link {
    /// Number of the client's next message.
    pub fn next_number(&self) -> u64 {
        self.numbers.as_ref().map_or(1, |numbers| numbers.last + 1)
    }

    /// Starts a batch whose first message has this number. Messages of a transport that loses none have no numbers.
    pub fn begin(&mut self, side: Side, first: u64) {
        if self.may_lose {
            let numbers = self.numbers.get_or_insert_with(|| MessageNumbers::new(side));
            (numbers.first, numbers.last) = (first, first.saturating_sub(1));
        }
        // Relaxed: pairs with the load in `Shared::first`.
        self.shared.first.store(first, Ordering::Relaxed);
    }

    /// Notes that the client has given up the message that it sent last.
    pub fn note_given_up(&mut self) {
        if let Some(numbers) = &mut self.numbers {
            numbers.given_up.push(numbers.last);
        }
    }

    /// The messages since the last call that were not waited for.
    pub fn take_strays(&mut self) -> Strays {
        self.numbers.as_mut().map(|numbers| std::mem::take(&mut numbers.strays)).unwrap_or_default()
    }

    /// Discards what has arrived, if messages of this size have no number to identify them.
    pub fn clear(&mut self, bytes: usize) {
        if bytes == 0 {
            let repeated = self.drain();
            if let Some(numbers) = &mut self.numbers {
                numbers.strays.repeated += repeated;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn message(bytes: usize, number: u64) -> Vec<u8> {
        let mut message = vec![0x5a; bytes];
        write(&mut message, number);
        message
    }

    #[test]
    fn a_client_takes_its_answer_once() {
        for bytes in [1, 2, 7, 8, 9, 1_472] {
            let mut client = MessageNumbers::new(Side::Client);
            client.last = 1_000;
            client.given_up = vec![990];
            assert!(client.is_awaited(&message(bytes, 1_000)), "{bytes}");
            for stray in [999, 990, 990, 1_001] {
                assert!(!client.is_awaited(&message(bytes, stray)), "{bytes} {stray}");
            }
            assert_eq!(client.strays, Strays { late: 1, repeated: 3 }, "{bytes}");
        }
        assert!(MessageNumbers::new(Side::Client).is_awaited(&[]), "an empty message has no number");
    }

    #[test]
    fn a_server_answers_each_number_once() {
        for bytes in [1, 2, 8, 32] {
            let mut server = MessageNumbers::new(Side::Server);
            (server.first, server.last) = (500, 499);
            let answered =
                [500, 500, 501, 499, 503, 502, 501, 504].map(|of| server.is_awaited(&message(bytes, of)));
            assert_eq!(answered, [true, false, true, false, true, false, false, true], "{bytes}");
            assert_eq!(server.strays, Strays { late: 1, repeated: 3 }, "{bytes}");
            assert!(server.is_of_batch(&message(bytes, 500)) && !server.is_of_batch(&message(bytes, 499)));
        }
    }

    proptest! {
        /// Whatever a network repeats, every number is answered once, in order.
        #[test]
        fn repeats_are_never_answered(bytes in 1_usize..12, repeats in proptest::collection::vec(0_u64..40, 1..200)) {
            let mut server = MessageNumbers::new(Side::Server);
            let mut number = 0;
            for back in repeats {
                number += 1;
                prop_assert!(server.is_awaited(&message(bytes, number)));
                prop_assert!(!server.is_awaited(&message(bytes, number.saturating_sub(back))));
            }
            prop_assert_eq!(server.last, number);
        }
    }
}
