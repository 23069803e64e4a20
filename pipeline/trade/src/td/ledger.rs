//! Record of what td has answered, in memory that outlives td: words of an area owned by the master.
//!
//! ```text
//! word
//!      0  magic "LLLEDGER"            2  epoch of the td that writes it
//!      8  the order in hand: 1 while its answers are not all published and entered, then words 9 to 31 contain it
//!     40  orders answered              41  of them rejected             42  fills
//!     64  of each orders stream, by its writer's number: the sequence of the last order answered, + 1; orders answered
//!   2112  of each strategy: the last order number answered; number of its open orders
//!  34880  positions: (strategy << 32 | instrument) + 1, and the position; a table with open addressing
//! ```
//!
//! One process writes at a time. Only the death of the process matters, not that of the host: afterwards memory
//! contains its stores up to some step, in program order. The word that makes the order in hand valid is stored
//! last, and the values entered afterwards are absolute, so entering them again is harmless.

use lowlat_ipc::{interest::SUBSCRIBERS_MAX, region::Region, stream::Stamp};
use lowlat_node::{
    Refusal, STRATEGIES_MAX,
    records::{Order, Outcome, SCHEMA, Side, kind},
};
use std::sync::atomic::{Ordering, compiler_fence};

const MAGIC: u64 = u64::from_le_bytes(*b"LLLEDGER");
const EPOCH: usize = 2;
const IN_HAND: usize = 8;
const IN_HAND_WORDS: usize = 23;
const ANSWERED: usize = 40;
const REJECTED: usize = 41;
const FILLS: usize = 42;
const STREAMS: usize = 64;
const STRATEGIES: usize = STREAMS + 2 * SUBSCRIBERS_MAX as usize;
const POSITIONS: usize = STRATEGIES + 2 * STRATEGIES_MAX as usize;
/// Maximum number of positions of the ledger, each of a strategy in an instrument.
pub const POSITIONS_MAX: usize = 1 << 15;
const WORDS: usize = POSITIONS + 2 * POSITIONS_MAX;
const _: () = assert!(IN_HAND + 1 + IN_HAND_WORDS <= ANSWERED);
/// Bytes of memory of a ledger.
pub const BYTES: u64 = WORDS as u64 * 8;
pub const AREA: &str = "ledger";

fn damaged(reason: &str) -> Refusal {
    Refusal::new(format!(
        "cannot use the ledger: the order in hand is damaged ({reason})\nhint: restart the master"
    ))
}

/// Values to enter for an order, and the source of its answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InHand {
    /// Records in td's stream before its first answer, without markers.
    pub first_answer: u64,
    pub answers: u32,
    /// Number of the node that writes the orders stream.
    pub writer: u32,
    /// The order's sequence in that stream.
    pub sequence: u64,
    pub stamp: Stamp,
    pub order: Order,
    /// When td had read it.
    pub read_ns: u64,
    /// Outcome of the first answer.
    pub outcome: Outcome,
    /// The strategy's last number, including this one.
    pub number_after: u64,
    /// The strategy's open orders, including this one.
    pub open_after: u64,
    /// Row of the position and its new value.
    pub position_after: Option<(usize, i64)>,
    /// Orders of the stream that are answered, including this one.
    pub answered_of_after: u64,
    /// The totals, including this one.
    pub totals_after: Totals,
}

/// Answers of all processes of td.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// Orders accepted or rejected.
    pub answered: u64,
    pub rejected: u64,
    pub fills: u64,
}

#[derive(Debug)]
pub struct Ledger<R> {
    region: R,
    epoch: u64,
}

impl<R: Region> Ledger<R> {
    /// Opens zeroed memory or an existing ledger; `epoch` is that of the td that writes it from now on.
    pub fn open(region: R, epoch: u64) -> Result<Self, Refusal> {
        let ledger = Self { epoch, ..Self::look(region)? };
        ledger.put(0, MAGIC);
        ledger.put(EPOCH, epoch);
        Ok(ledger)
    }

    /// Opens a ledger that td writes, for reading only.
    pub fn look(region: R) -> Result<Self, Refusal> {
        let ledger = Self { region, epoch: 0 };
        let words = ledger.region.words().len();
        if words < WORDS {
            let found = words * 8;
            return Err(Refusal::new(format!(
                "cannot use the ledger: found {found} bytes of memory, expected {BYTES}\nhint: give the area \"{AREA}\" that size"
            )));
        }
        match ledger.get(0) {
            0 | MAGIC => Ok(ledger),
            found => Err(Refusal::new(format!(
                "cannot use the ledger: found {found:#x} as its first word, expected zeros or \"LLLEDGER\"\nhint: restart the master"
            ))),
        }
    }

    /// Totals over all processes of td.
    pub fn totals(&self) -> Totals {
        let [answered, rejected, fills] = [ANSWERED, REJECTED, FILLS].map(|at| self.get(at));
        Totals { answered, rejected, fills }
    }

    /// Number of orders of a stream that were answered.
    pub fn answered_of(&self, writer: u32) -> u64 {
        place(writer).map_or(0, |at| self.get(STREAMS + 2 * at + 1))
    }

    /// True if no later td has taken over the ledger.
    pub fn is_own(&self) -> bool {
        self.get(EPOCH) == self.epoch
    }

    /// The last order number of a strategy that was answered; 0 before its first.
    pub fn last_number(&self, strategy: u32) -> u64 {
        row_of(strategy).map_or(0, |at| self.get(at))
    }

    /// Number of orders of a strategy that are accepted and not filled.
    pub fn open_orders(&self, strategy: u32) -> u64 {
        row_of(strategy).map_or(0, |at| self.get(at + 1))
    }

    /// Sequence of the last order of a stream that was answered; `None` before its first.
    pub fn last_sequence(&self, writer: u32) -> Option<u64> {
        let at = place(writer)?;
        self.get(STREAMS + 2 * at).checked_sub(1)
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
            .find(|row| matches!(self.get(POSITIONS + 2 * row), found if found == 0 || found == key))
    }

    /// The position in a row.
    pub fn position_at(&self, row: usize) -> i64 {
        self.get(POSITIONS + 2 * row + 1).cast_signed()
    }

    /// Writes down the order that is about to be answered.
    pub fn take_in_hand(&self, order: &InHand) {
        let [price, quantity] = [order.order.price.cast_unsigned(), u64::from(order.order.quantity)];
        let (row, position) = order.position_after.map_or((0, 0), |(row, position)| (row + 1, position));
        let Totals { answered, rejected, fills } = order.totals_after;
        let words: [u64; IN_HAND_WORDS] = [
            order.first_answer,
            u64::from(order.answers),
            u64::from(order.writer),
            order.sequence,
            u64::from(order.stamp.source) << 32 | u64::from(order.stamp.instrument),
            order.stamp.generated,
            order.stamp.trigger,
            order.stamp.cause,
            order.order.number,
            order.order.scheduled_ns,
            order.order.received_ns,
            price,
            quantity << 1 | u64::from(order.order.side == Side::Sell),
            order.read_ns,
            order.outcome.code(),
            order.number_after,
            order.open_after,
            u64::try_from(row).unwrap_or(0),
            position.cast_unsigned(),
            answered,
            rejected,
            fills,
            order.answered_of_after,
        ];
        self.put_all(IN_HAND + 1, &words);
        self.put(IN_HAND, 1);
    }

    /// The order that was in hand when the predecessor died.
    pub fn in_hand(&self) -> Result<Option<InHand>, Refusal> {
        if self.get(IN_HAND) == 0 {
            return Ok(None);
        }
        // In the order of `take_in_hand`: fields are evaluated as they are written.
        let mut words = (IN_HAND + 1..).map(|at| self.get(at));
        let mut next = || words.next().unwrap_or_default();
        let short =
            |what: &str, word: u64| u32::try_from(word).map_err(|_| damaged(&format!("{what}: {word:#x}")));
        let sized = |size: u64| -> Result<Order, Refusal> {
            let side = if size & 1 == 1 { Side::Sell } else { Side::Buy };
            // Answers do not need its origin.
            Ok(Order { quantity: short("quantity", size >> 1)?, side, ..Order::default() })
        };
        Ok(Some(InHand {
            first_answer: next(),
            answers: short("answers", next())?,
            writer: short("writer", next())?,
            sequence: next(),
            stamp: {
                let who = next();
                Stamp {
                    kind: kind::ORDER,
                    schema: SCHEMA,
                    instrument: short("instrument", who & u64::from(u32::MAX))?,
                    source: short("source", who >> 32)?,
                    generated: next(),
                    trigger: next(),
                    cause: next(),
                }
            },
            order: Order {
                number: next(),
                scheduled_ns: next(),
                received_ns: next(),
                price: next().cast_signed(),
                ..sized(next())?
            },
            read_ns: next(),
            outcome: {
                let outcome = next();
                Outcome::of(outcome).map_err(|_| damaged(&format!("outcome {outcome:#x}")))?
            },
            number_after: next(),
            open_after: next(),
            position_after: {
                let (row, position) = (usize::try_from(next()).unwrap_or(usize::MAX), next());
                if row > POSITIONS_MAX {
                    return Err(damaged(&format!("row {row}")));
                }
                row.checked_sub(1).map(|row| (row, position.cast_signed()))
            },
            totals_after: Totals { answered: next(), rejected: next(), fills: next() },
            answered_of_after: next(),
        }))
    }

    /// Enters an order whose answers are all published, and clears the order in hand.
    pub fn enter(&self, order: &InHand) {
        if let Some((row, position)) = order.position_after {
            self.put(POSITIONS + 2 * row, key(order.stamp.source, order.stamp.instrument));
            self.put(POSITIONS + 2 * row + 1, position.cast_unsigned());
        }
        if let Some(at) = row_of(order.stamp.source) {
            self.put(at, order.number_after);
            self.put(at + 1, order.open_after);
        }
        if let Some(at) = place(order.writer) {
            self.put(STREAMS + 2 * at, order.sequence.saturating_add(1));
            self.put(STREAMS + 2 * at + 1, order.answered_of_after);
        }
        let Totals { answered, rejected, fills } = order.totals_after;
        for (at, total) in [(ANSWERED, answered), (REJECTED, rejected), (FILLS, fills)] {
            self.put(at, total);
        }
        self.put(IN_HAND, 0);
    }

    fn get(&self, at: usize) -> u64 {
        // Pairs with the store in `put`: other processes only read, or succeed the one that wrote.
        self.region.words().get(at).map_or(0, |word| word.load(Ordering::Acquire))
    }

    #[inline]
    fn put(&self, at: usize, value: u64) {
        self.put_all(at, &[value]);
    }

    #[inline]
    fn put_all(&self, at: usize, values: &[u64]) {
        for (word, value) in self.region.words().get(at..).unwrap_or_default().iter().zip(values) {
            #[cfg(test)]
            lowlat_node::testing::step();
            // Pairs with the load in `get`. Release also keeps the stores in program order.
            word.store(*value, Ordering::Release);
        }
        // Nothing that follows, in particular publishing, is reordered before it.
        compiler_fence(Ordering::SeqCst);
    }
}

fn place(number: u32) -> Option<usize> {
    usize::try_from(number).ok().filter(|_| number < SUBSCRIBERS_MAX)
}

fn row_of(strategy: u32) -> Option<usize> {
    usize::try_from(strategy).ok().filter(|_| strategy < STRATEGIES_MAX).map(|at| STRATEGIES + 2 * at)
}

fn key(strategy: u32, instrument: u32) -> u64 {
    (u64::from(strategy) << 32 | u64::from(instrument)) + 1
}
