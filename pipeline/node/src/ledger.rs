//! td's ledger as others see it: totals, positions and open orders, in memory that outlives td. The words of halts are
//! the master's, all others td's.
//!
//! ```text
//! word
//!      0  magic "LLLEDGER"            2  epoch of the td that writes it
//!      4  number of changes, odd while one is being entered
//!      8  the decision in hand: 1 while its answers are not all published and entered, then words 9 to 63 contain it
//!     64  requests answered           65  of them rejected             66  fills             67  cancelled unasked
//!     68  1: every strategy is halted
//!     69  requests that have arrived at the exchange, and 70 those that were sent to it
//!     71  rows of open orders that were ever used: the first ones
//!    128  of each orders stream, by its writer's number: the sequence of the last request read, + 1; requests answered
//!   2176  of each strategy: its last order number; number of its open orders
//!  34944  a bit for each strategy: it is halted
//!  35200  positions: (strategy << 32 | instrument) + 1, and the position; a table with open addressing
//! 100736  open orders, 12 words each
//! 297344  requests on their way to the exchange, 9 words each; request n is in row n modulo 1,024
//! ```

use crate::{
    Refusal, STRATEGIES_MAX,
    records::{Price, Side},
};
use lowlat_ipc::{interest::SUBSCRIBERS_MAX, region::Region};
use std::{
    collections::BinaryHeap,
    sync::atomic::{Ordering, fence},
};
use thiserror::Error;

/// Places in the ledger, for the process that writes it.
pub mod words {
    use super::{OPEN_MAX, OPEN_WORDS, POSITIONS_MAX, STRATEGIES_MAX, SUBSCRIBERS_MAX};

    pub const MAGIC: u64 = u64::from_le_bytes(*b"LLLEDGER");
    pub const EPOCH: usize = 2;
    pub const CHANGES: usize = 4;
    pub const IN_HAND: usize = 8;
    pub const ANSWERED: usize = 64;
    pub const REJECTED: usize = 65;
    pub const FILLS: usize = 66;
    pub const CANCELLED: usize = 67;
    pub const IS_HALTED: usize = 68;
    pub const ARRIVED: usize = 69;
    pub const SENT: usize = 70;
    pub const ROWS: usize = 71;
    pub const STREAMS: usize = 128;
    pub const STRATEGIES: usize = STREAMS + 2 * SUBSCRIBERS_MAX as usize;
    pub const HALTED: usize = STRATEGIES + 2 * STRATEGIES_MAX as usize;
    pub const POSITIONS: usize = HALTED + STRATEGIES_MAX as usize / 64;
    pub const OPEN: usize = POSITIONS + 2 * POSITIONS_MAX;
    pub const ON_THE_WAY: usize = OPEN + OPEN_MAX * OPEN_WORDS;
    pub const ON_THE_WAY_MAX: usize = 1 << 10;
    pub const REQUEST_WORDS: usize = 9;
    pub const ALL: usize = ON_THE_WAY + ON_THE_WAY_MAX * REQUEST_WORDS;
}

/// Maximum number of positions of the ledger, each of a strategy in an instrument.
pub const POSITIONS_MAX: usize = 1 << 15;
/// Maximum number of open orders, of all strategies.
pub const OPEN_MAX: usize = 1 << 14;
/// Words of an open order.
pub const OPEN_WORDS: usize = 12;
/// Bytes of memory of a ledger.
pub const BYTES: u64 = words::ALL as u64 * 8;
/// The master's area with it.
pub const AREA: &str = "ledger";
/// Attempts to read between two changes.
const ATTEMPTS: u32 = 100_000;

/// Answers of all processes of td.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// Requests answered: new orders, cancels and replaces.
    pub answered: u64,
    /// New orders rejected.
    pub rejected: u64,
    pub fills: u64,
    /// Orders cancelled without a request: what was left of market orders and those that may not rest, and by a halt.
    pub cancelled: u64,
}

/// Orders or positions that could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "cannot read td's ledger: td changes it all the time, or has died in the middle of a change\nhint: try again"
)]
pub struct LedgerBusy;

/// An order that is accepted and neither filled nor cancelled. A strategy's are sorted by their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct OpenOrder {
    pub strategy: u32,
    pub number: u64,
    pub instrument: u32,
    /// Its limit.
    pub price: Price,
    /// The whole quantity, with what is filled.
    pub quantity: u32,
    pub filled: u32,
    pub side: Side,
    /// Number of the node that sent it, and its sequence in that node's stream.
    pub writer: u32,
    pub sequence: u64,
    /// When it was written, in the pipeline's clock, ns.
    pub generated_ns: u64,
    /// When td had read it, in the pipeline's clock, ns.
    pub read_ns: u64,
    /// Quantity ahead of it at its price in the simulated book; `None` until a quote has shown its price as the best.
    pub queue: Option<u64>,
    /// Its turn among the orders of an instrument: the records in td's stream before its acceptance.
    pub turn: u64,
}

impl OpenOrder {
    /// Quantity not filled.
    pub fn left(&self) -> u32 {
        self.quantity.saturating_sub(self.filled)
    }

    /// As the words of a row.
    pub fn encode(&self) -> [u64; OPEN_WORDS] {
        [
            key(self.strategy, self.instrument),
            self.number,
            self.price.cast_unsigned(),
            u64::from(self.quantity) << 32 | u64::from(self.filled),
            u64::from(self.writer) << 1 | self.side as u64,
            self.sequence,
            self.generated_ns,
            self.read_ns,
            self.queue.unwrap_or(u64::MAX),
            self.turn,
            0,
            0,
        ]
    }

    /// The order in a row; `None` if the row is empty.
    #[expect(clippy::cast_possible_truncation, reason = "halves are meant")]
    pub fn decode(row: &[u64; OPEN_WORDS]) -> Option<Self> {
        let [key, number, price, quantity, writer, sequence, generated_ns, read_ns, queue, turn, ..] = *row;
        let who = key.checked_sub(1)?;
        Some(Self {
            strategy: (who >> 32) as u32,
            instrument: who as u32,
            number,
            price: price.cast_signed(),
            quantity: (quantity >> 32) as u32,
            filled: quantity as u32,
            side: if writer & 1 == 1 { Side::Sell } else { Side::Buy },
            writer: (writer >> 1) as u32,
            sequence,
            generated_ns,
            read_ns,
            queue: (queue != u64::MAX).then_some(queue),
            turn,
        })
    }
}

/// A ledger, for reading.
#[derive(Debug)]
pub struct Ledger<R> {
    region: R,
}

impl<R: Region> Ledger<R> {
    /// Opens zeroed memory, or a ledger that td writes.
    pub fn look(region: R) -> Result<Self, Refusal> {
        let found = region.words().len();
        if found < words::ALL {
            let found = found * 8;
            return Err(Refusal::new(format!(
                "cannot use the ledger: found {found} bytes of memory, expected {BYTES}\nhint: give the area \"{AREA}\" that size"
            )));
        }
        let ledger = Self { region };
        match ledger.word(0) {
            0 | words::MAGIC => Ok(ledger),
            found => Err(Refusal::new(format!(
                "cannot use the ledger: found {found:#x} as its first word, expected zeros or \"LLLEDGER\"\nhint: restart the master"
            ))),
        }
    }

    pub fn region(&self) -> &R {
        &self.region
    }

    /// A word of it; 0 outside.
    #[inline]
    pub fn word(&self, at: usize) -> u64 {
        // Pairs with the release stores of td, and of the master in `set_halted`.
        self.region.words().get(at).map_or(0, |word| word.load(Ordering::Acquire))
    }

    /// Totals over all processes of td.
    pub fn totals(&self) -> Totals {
        use words::{ANSWERED, CANCELLED, FILLS, REJECTED};
        let [answered, rejected, fills, cancelled] =
            [ANSWERED, REJECTED, FILLS, CANCELLED].map(|at| self.word(at));
        Totals { answered, rejected, fills, cancelled }
    }

    /// Number of requests of a stream that were answered.
    pub fn answered_of(&self, writer: u32) -> u64 {
        stream_row(writer).map_or(0, |at| self.word(at + 1))
    }

    /// Sequence of the last request of a stream that td has read; `None` before its first.
    pub fn last_sequence(&self, writer: u32) -> Option<u64> {
        self.word(stream_row(writer)?).checked_sub(1)
    }

    /// The last order number of a strategy; 0 before its first.
    pub fn last_number(&self, strategy: u32) -> u64 {
        strategy_row(strategy).map_or(0, |at| self.word(at))
    }

    /// Number of orders of a strategy that are accepted and not filled.
    pub fn open_count(&self, strategy: u32) -> u64 {
        strategy_row(strategy).map_or(0, |at| self.word(at + 1))
    }

    /// True if new orders of this strategy are rejected, by command.
    #[inline]
    pub fn is_halted(&self, strategy: u32) -> bool {
        let bits = |at: usize| self.word(words::HALTED + at / 64) & 1 << (at % 64);
        self.word(words::IS_HALTED) != 0
            || (strategy < STRATEGIES_MAX && usize::try_from(strategy).is_ok_and(|at| bits(at) != 0))
    }

    /// Halts a strategy, or all of them, or ends that. Only the master calls this, and nobody else writes these words.
    pub fn set_halted(&self, strategy: Option<u32>, is_halted: bool) {
        // Pairs with the load in `word`.
        let put = |at: usize, value| {
            self.region.words().get(at).iter().for_each(|word| word.store(value, Ordering::Release));
        };
        match strategy.map(usize::try_from) {
            Some(Ok(at)) if at < 64 * (words::POSITIONS - words::HALTED) => {
                let (word, bit) = (words::HALTED + at / 64, 1 << (at % 64));
                let others = self.word(word) & !bit;
                put(word, others | if is_halted { bit } else { 0 });
            }
            Some(_) => {}
            None => {
                put(words::IS_HALTED, is_halted.into());
                if !is_halted {
                    (words::HALTED..words::POSITIONS).for_each(|at| put(at, 0));
                }
            }
        }
    }

    /// Position of a strategy in an instrument; positive if bought.
    pub fn position(&self, strategy: u32, instrument: u32) -> i64 {
        self.position_row(strategy, instrument).map_or(0, |row| self.position_at(row))
    }

    /// The row of a position, whose key is entered with the position; `None` if the table is full.
    pub fn position_row(&self, strategy: u32, instrument: u32) -> Option<usize> {
        let key = key(strategy, instrument);
        let start = usize::try_from(key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32).unwrap_or(0);
        (0..POSITIONS_MAX)
            .map(|step| (start + step) % POSITIONS_MAX)
            .find(|row| matches!(self.word(words::POSITIONS + 2 * row), found if found == 0 || found == key))
    }

    /// The position in a row.
    pub fn position_at(&self, row: usize) -> i64 {
        self.word(words::POSITIONS + 2 * row + 1).cast_signed()
    }

    /// Number of rows that may have an open order: the first ones.
    pub fn rows(&self) -> usize {
        usize::try_from(self.word(words::ROWS)).unwrap_or(OPEN_MAX).min(OPEN_MAX)
    }

    /// The open order in a row.
    pub fn open_at(&self, row: usize) -> Option<OpenOrder> {
        let at = words::OPEN + row.min(OPEN_MAX - 1) * OPEN_WORDS;
        if self.word(at) == 0 {
            return None;
        }
        let mut words = [0; OPEN_WORDS];
        for (word, at) in words.iter_mut().zip(at..) {
            *word = self.word(at);
        }
        OpenOrder::decode(&words)
    }

    /// Open orders of a strategy, by number. Allocates, and reads the table of all strategies.
    pub fn open_orders(&self, strategy: u32) -> Result<Vec<OpenOrder>, LedgerBusy> {
        let read = || {
            let count = usize::try_from(self.open_count(strategy)).unwrap_or(OPEN_MAX);
            let all = (0..self.rows()).filter_map(|row| self.open_at(row));
            all.filter(|order| order.strategy == strategy).take(count).collect::<BinaryHeap<_>>()
        };
        Ok(self.between_changes(read)?.into_sorted_vec())
    }

    /// Positions of a strategy that are not 0, by instrument. Allocates, and reads the table of all strategies.
    pub fn positions(&self, strategy: u32) -> Result<Vec<(u32, i64)>, LedgerBusy> {
        let read = || {
            let all = (0..POSITIONS_MAX).filter_map(|row| {
                let who = self.word(words::POSITIONS + 2 * row).checked_sub(1)?;
                let instrument = u32::try_from(who & u64::from(u32::MAX)).ok()?;
                let position = self.position_at(row);
                (who >> 32 == u64::from(strategy) && position != 0).then_some((instrument, position))
            });
            all.collect::<BinaryHeap<_>>()
        };
        Ok(self.between_changes(read)?.into_sorted_vec())
    }

    /// What a function reads while td enters nothing.
    fn between_changes<T>(&self, read: impl Fn() -> T) -> Result<T, LedgerBusy> {
        for _ in 0..ATTEMPTS {
            let before = self.word(words::CHANGES);
            if before.is_multiple_of(2) {
                let found = read();
                // The loads before it stay before the next one.
                fence(Ordering::Acquire);
                if self.word(words::CHANGES) == before {
                    return Ok(found);
                }
            }
            std::hint::spin_loop();
        }
        Err(LedgerBusy)
    }
}

/// The words of an orders stream, by its writer's number.
pub fn stream_row(writer: u32) -> Option<usize> {
    let at = usize::try_from(writer).ok().filter(|_| writer < SUBSCRIBERS_MAX)?;
    Some(words::STREAMS + 2 * at)
}

/// The words of a strategy.
pub fn strategy_row(strategy: u32) -> Option<usize> {
    let at = usize::try_from(strategy).ok().filter(|_| strategy < STRATEGIES_MAX)?;
    Some(words::STRATEGIES + 2 * at)
}

/// The key of a strategy in an instrument; never 0.
pub fn key(strategy: u32, instrument: u32) -> u64 {
    (u64::from(strategy) << 32 | u64::from(instrument)).wrapping_add(1)
}
