//! The ledger as td writes it: [`lowlat_node::ledger`] has the layout.
//!
//! One process writes at a time. Only the death of the process matters, not that of the host: afterwards memory
//! contains its stores up to some step, in program order. The word that makes the decision in hand valid is stored
//! last, and the values entered afterwards are absolute, so entering them again is harmless.

use super::ReadOrder;
use lowlat_ipc::{region::Region, stream::Stamp};
use lowlat_node::{
    Refusal,
    ledger::{
        Ledger, OPEN_MAX, OPEN_WORDS, OpenOrder, POSITIONS_MAX, Totals, key, strategy_row, stream_row,
        words::{
            ANSWERED, ARRIVED, CANCELLED, CHANGES, EPOCH, FILLS, IN_HAND, MAGIC, ON_THE_WAY, ON_THE_WAY_MAX,
            OPEN, POSITIONS, REJECTED, REQUEST_WORDS, ROWS, SENT,
        },
    },
    records::{Order, Outcome, Price, SCHEMA, kind},
};
use std::sync::atomic::{Ordering, compiler_fence};

const IN_HAND_WORDS: usize = 15 + REQUEST_WORDS;
const _: () = assert!(IN_HAND + 1 + IN_HAND_WORDS + OPEN_WORDS <= ANSWERED);
const _: () = assert!(REJECTED == ANSWERED + 1 && FILLS == ANSWERED + 2 && CANCELLED == ANSWERED + 3);
/// Place of the queue in an open order's words.
const QUEUE: usize = 8;

fn damaged(reason: &str) -> Refusal {
    Refusal::new(format!(
        "cannot use the ledger: the order in hand is damaged ({reason})\nhint: restart the master"
    ))
}

/// Answers to be published, and the values to enter with them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InHand {
    /// Records in td's stream before its first answer, without markers.
    pub first_answer: u64,
    /// The request, or for fills of a resting order that order. Price and quantity are those of the first answer.
    pub taken: ReadOrder,
    /// When td had read it.
    pub read_ns: u64,
    /// The first answer; `None` if only fills follow.
    pub outcome: Option<Outcome>,
    /// Number of fills that follow, the quantity that they add up to, and their price.
    pub fills: u32,
    pub filled: u32,
    pub fill_price: Price,
    /// Quantity that is cancelled after them; 0: no such answer.
    pub cancelled: u32,
    /// Sequence of the last request of the stream that was read.
    pub sequence_after: u64,
    /// The strategy's last number, including this one.
    pub number_after: u64,
    /// The strategy's open orders afterwards.
    pub open_after: u64,
    /// Row of the position and its new value.
    pub position_after: Option<(usize, i64)>,
    /// Requests of the stream that are answered, including this one.
    pub answered_of_after: u64,
    /// Requests that have arrived, including this one.
    pub arrived_after: u64,
    /// The totals, including this one.
    pub totals_after: Totals,
    /// Row of an open order and its new words; zeros: it is open no longer.
    pub row_after: Option<(usize, [u64; OPEN_WORDS])>,
}

/// The words of a request. Its origin and times are left out: answers need none of them.
fn encode(taken: &ReadOrder, read_ns: u64) -> [u64; REQUEST_WORDS] {
    let ReadOrder { writer, sequence, stamp, order } = taken;
    let who = u64::from(stamp.source) << 32 | u64::from(stamp.instrument);
    let kind = order.side as u64 | (order.action as u64) << 8 | (order.order_type as u64) << 16;
    [
        read_ns,
        u64::from(*writer),
        *sequence,
        who,
        stamp.generated,
        order.number,
        order.price.cast_unsigned(),
        u64::from(order.quantity),
        kind,
    ]
}

/// The request in these words, and when td had read it.
#[expect(clippy::cast_possible_truncation, reason = "halves are meant")]
fn decode(words: &[u64; REQUEST_WORDS]) -> Result<(ReadOrder, u64), Refusal> {
    let [read_ns, writer, sequence, who, generated, number, price, quantity, kind] = *words;
    let mut payload = Order { number, price: price.cast_signed(), ..Order::default() }.encode();
    // As in the payload of an order.
    for (place, word) in [(4, quantity), (5, kind)] {
        payload[place * 8..][..8].copy_from_slice(&word.to_le_bytes());
    }
    let order = Order::decode(&payload).map_err(|error| damaged(&error.to_string()))?;
    let writer = u32::try_from(writer).map_err(|_| damaged(&format!("writer: {writer:#x}")))?;
    let stamp = Stamp {
        kind: kind::ORDER,
        schema: SCHEMA,
        instrument: who as u32,
        source: (who >> 32) as u32,
        generated,
        ..Stamp::default()
    };
    Ok((ReadOrder { writer, sequence, stamp, order }, read_ns))
}

/// The ledger of the running td.
#[derive(Debug)]
pub struct LedgerWriter<R> {
    ledger: Ledger<R>,
    epoch: u64,
}

impl<R: Region> LedgerWriter<R> {
    /// Opens zeroed memory or an existing ledger; `epoch` is that of the td that writes it from now on.
    pub fn open(region: R, epoch: u64) -> Result<Self, Refusal> {
        let ledger = Self { ledger: Ledger::look(region)?, epoch };
        ledger.put(0, MAGIC);
        ledger.put(EPOCH, epoch);
        Ok(ledger)
    }

    pub fn read(&self) -> &Ledger<R> {
        &self.ledger
    }

    /// True if no later td has taken over the ledger.
    pub fn is_own(&self) -> bool {
        self.get(EPOCH) == self.epoch
    }

    /// Sets the quantity ahead of an open order.
    pub fn set_queue(&self, row: usize, queue: u64) {
        self.put(OPEN + row * OPEN_WORDS + QUEUE, queue);
    }

    /// Writes down the decision that is about to be published.
    // SAFETY: an executable section, as that of any other code.
    #[unsafe(link_section = ".text.hot.wake")]
    pub fn take_in_hand(&self, decided: &InHand) {
        let (position_row, position) =
            decided.position_after.map_or((0, 0), |(row, position)| (row + 1, position));
        let open_row = decided.row_after.map_or(0, |(row, _)| row + 1);
        let Totals { answered, rejected, fills, cancelled } = decided.totals_after;
        let request = encode(&decided.taken, decided.read_ns);
        let words: [u64; IN_HAND_WORDS - REQUEST_WORDS] = [
            decided.first_answer,
            decided.outcome.map_or(0, |outcome| outcome.code() + 1) << 32 | u64::from(decided.fills),
            u64::from(decided.filled) << 32 | u64::from(decided.cancelled),
            decided.fill_price.cast_unsigned(),
            decided.sequence_after,
            decided.number_after,
            decided.open_after,
            // Both fit: the tables have at most 2^15 rows.
            u64::try_from(position_row << 32 | open_row).unwrap_or(0),
            position.cast_unsigned(),
            decided.answered_of_after,
            decided.arrived_after,
            answered,
            rejected,
            fills,
            cancelled,
        ];
        self.put_all(IN_HAND + 1, &request);
        self.put_all(IN_HAND + 1 + REQUEST_WORDS, &words);
        if let Some((_, row)) = &decided.row_after {
            self.put_all(IN_HAND + 1 + IN_HAND_WORDS, row);
        }
        self.put(IN_HAND, 1);
    }

    /// The decision that was in hand when the predecessor died.
    #[expect(clippy::cast_possible_truncation, reason = "halves are meant")]
    pub fn in_hand(&self) -> Result<Option<InHand>, Refusal> {
        if self.get(IN_HAND) == 0 {
            return Ok(None);
        }
        let (taken, read_ns) = decode(&self.words_at(IN_HAND + 1))?;
        let words: [u64; IN_HAND_WORDS - REQUEST_WORDS] = self.words_at(IN_HAND + 1 + REQUEST_WORDS);
        let [first_answer, outcome, filled, fill_price, sequence_after, number_after, open_after, ..] = words;
        let [.., rows, position, answered_of_after, arrived_after, answered, rejected, fills, cancelled] =
            words;
        let row = |row: u64, rows: usize| match usize::try_from(row) {
            Ok(row) if row <= rows => Ok(row.checked_sub(1)),
            _ => Err(damaged(&format!("row {row}"))),
        };
        let code = (outcome >> 32).checked_sub(1);
        Ok(Some(InHand {
            first_answer,
            taken,
            read_ns,
            outcome: code
                .map(Outcome::of)
                .transpose()
                .map_err(|_| damaged(&format!("outcome {outcome:#x}")))?,
            fills: outcome as u32,
            filled: (filled >> 32) as u32,
            fill_price: fill_price.cast_signed(),
            cancelled: filled as u32,
            sequence_after,
            number_after,
            open_after,
            position_after: row(rows >> 32, POSITIONS_MAX)?.map(|row| (row, position.cast_signed())),
            answered_of_after,
            arrived_after,
            totals_after: Totals { answered, rejected, fills, cancelled },
            row_after: row(rows & u64::from(u32::MAX), OPEN_MAX)?
                .map(|row| (row, self.words_at(IN_HAND + 1 + IN_HAND_WORDS))),
        }))
    }

    /// Enters a decision whose answers are all published, and clears the decision in hand.
    // SAFETY: an executable section, as that of any other code.
    #[unsafe(link_section = ".text.hot.wake")]
    pub fn enter(&self, decided: &InHand) {
        let Stamp { source, instrument, .. } = decided.taken.stamp;
        // Odd, also if a predecessor died in the middle.
        let changes = self.get(CHANGES) | 1;
        self.put(CHANGES, changes);
        if let Some((row, position)) = decided.position_after {
            self.put_all(POSITIONS + 2 * row, &[key(source, instrument), position.cast_unsigned()]);
        }
        if let Some((row, words)) = &decided.row_after {
            if *row >= self.ledger.rows() {
                self.put(ROWS, u64::try_from(row + 1).unwrap_or(0));
            }
            self.put_all(OPEN + row * OPEN_WORDS, words);
        }
        if let Some(at) = strategy_row(source) {
            self.put_all(at, &[decided.number_after, decided.open_after]);
        }
        if let Some(at) = stream_row(decided.taken.writer) {
            self.put_all(at, &[decided.sequence_after.saturating_add(1), decided.answered_of_after]);
        }
        let Totals { answered, rejected, fills, cancelled } = decided.totals_after;
        self.put_all(ANSWERED, &[answered, rejected, fills, cancelled]);
        self.put(ARRIVED, decided.arrived_after);
        self.put(CHANGES, changes + 1);
        self.put(IN_HAND, 0);
    }

    /// Puts a request on its way to the exchange. Returns false if too many are.
    pub fn send(&self, taken: &ReadOrder, read_ns: u64) -> bool {
        let sent = self.get(SENT);
        if sent.saturating_sub(self.get(ARRIVED)) >= u64::try_from(ON_THE_WAY_MAX).unwrap_or(0) {
            return false;
        }
        self.put_all(request_row(sent), &encode(taken, read_ns));
        self.put(SENT, sent + 1);
        self.mark_read(taken);
        true
    }

    /// True if this request is the last one that was put on its way. Its sequence may be missing in the streams' words.
    pub fn has_sent_last(&self, taken: &ReadOrder) -> bool {
        let Some(last) = self.get(SENT).checked_sub(1) else { return false };
        let [_, writer, sequence, ..]: [u64; REQUEST_WORDS] = self.words_at(request_row(last));
        (writer, sequence) == (u64::from(taken.writer), taken.sequence)
    }

    /// Enters that a request was read.
    pub fn mark_read(&self, taken: &ReadOrder) {
        if let Some(at) = stream_row(taken.writer) {
            self.put(at, taken.sequence.saturating_add(1));
        }
    }

    /// The first request on its way, and when td had read it.
    pub fn first_on_the_way(&self) -> Result<Option<(ReadOrder, u64)>, Refusal> {
        let arrived = self.get(ARRIVED);
        (arrived < self.get(SENT)).then(|| decode(&self.words_at(request_row(arrived)))).transpose()
    }

    /// When td had read the first request on its way, ns.
    #[inline]
    pub fn first_read_ns(&self) -> Option<u64> {
        let arrived = self.get(ARRIVED);
        (arrived < self.get(SENT)).then(|| self.get(request_row(arrived)))
    }

    /// The open order in a row.
    #[inline]
    pub fn open_at(&self, row: usize) -> Option<OpenOrder> {
        self.ledger.open_at(row)
    }

    #[inline]
    fn get(&self, at: usize) -> u64 {
        self.ledger.word(at)
    }

    fn words_at<const N: usize>(&self, at: usize) -> [u64; N] {
        let mut words = [0; N];
        words.iter_mut().zip(at..).for_each(|(word, at)| *word = self.get(at));
        words
    }

    #[inline]
    fn put(&self, at: usize, value: u64) {
        self.put_all(at, &[value]);
    }

    #[inline]
    fn put_all(&self, at: usize, values: &[u64]) {
        let words = self.ledger.region().words();
        for (word, value) in words.get(at..).unwrap_or_default().iter().zip(values) {
            #[cfg(test)]
            lowlat_node::testing::step();
            // Pairs with the load in `Ledger::word`. Release also keeps the stores in program order.
            word.store(*value, Ordering::Release);
        }
        // Nothing that follows, in particular publishing, is reordered before it.
        compiler_fence(Ordering::SeqCst);
    }
}

/// The words of request `number` on its way.
fn request_row(number: u64) -> usize {
    let row = usize::try_from(number).unwrap_or(0) % ON_THE_WAY_MAX;
    ON_THE_WAY + row * REQUEST_WORDS
}
