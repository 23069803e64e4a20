//! The Kungfu report's strategy: one order per record of its instrument.

use super::{AnswerSeen, Orders, QuoteSeen, Strategy, StrategyGap};
use crate::{
    records::{OrderType, Outcome, Side},
    state::State,
};
use std::hint::black_box;

/// Sends an order of one piece per quote, alternately buying and selling so that its position stays small.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OnEachRecord {
    /// The only instrument it trades (the report's `-n`); `None`: every one that it gets.
    pub instrument: Option<u32>,
    /// Quotes per order; 0 or 1: an order for each quote.
    pub quotes_per_order: u32,
    /// CPU time that it computes for each quote of its instrument, ns.
    pub cost_ns: u64,
    /// Quotes of its instrument so far.
    pub quotes: u64,
    /// Orders sent, plus 1 if it started with a piece that its predecessor had bought.
    pub sent: u64,
    /// Orders that could not be sent.
    pub unsent: u64,
    /// Orders answered with accepted or rejected.
    pub answered: u64,
    pub lost: u64,
}

impl OnEachRecord {
    pub fn of(instrument: u32) -> Self {
        Self { instrument: Some(instrument), ..Self::default() }
    }
}

/// Computes until this thread has used this much CPU time. A preemption delays it like real work, which a wait by the
/// clock would hide.
fn compute(cost_ns: u64) {
    let used_ns = || crate::clock::read_ns(rustix::time::ClockId::ThreadCPUTime);
    let until_ns = used_ns() + cost_ns;
    while used_ns() < until_ns {
        std::hint::spin_loop();
    }
}

impl Strategy for OnEachRecord {
    // SAFETY: an executable section, as that of any other code.
    #[unsafe(link_section = ".text.hot.wake")]
    fn on_quote(&mut self, orders: &mut Orders<'_>, seen: &QuoteSeen) {
        if self.instrument.is_some_and(|wanted| wanted != seen.instrument) {
            return;
        }
        self.quotes += 1;
        if self.cost_ns > 0 {
            compute(self.cost_ns);
        }
        if !self.quotes.is_multiple_of(u64::from(self.quotes_per_order.max(1))) {
            return;
        }
        let (side, price) = if self.sent.is_multiple_of(2) {
            (Side::Buy, seen.quote.ask)
        } else {
            (Side::Sell, seen.quote.bid)
        };
        if price == 0 {
            // That side of the book is empty.
            return;
        }
        // What the book does not fill at once is not left in it.
        match orders.send_as(OrderType::ImmediateOrCancel, seen.instrument, side, price, 1) {
            Ok(_) => self.sent += 1,
            Err(_) => self.unsent += 1,
        }
    }

    fn on_answer(&mut self, _: &mut Orders<'_>, seen: &AnswerSeen) {
        self.answered += u64::from(matches!(seen.answer.outcome, Outcome::Accepted | Outcome::Rejected(_)));
    }

    fn on_gap(&mut self, _: &mut Orders<'_>, gap: StrategyGap) {
        let (StrategyGap::Quotes(count) | StrategyGap::Answers(count) | StrategyGap::Others(count)) = gap;
        self.lost += count;
    }

    fn warm(&mut self) {
        black_box(*self);
    }

    /// Continues by selling what its predecessor had bought.
    fn on_restart(&mut self, strategy: u32, state: &State) {
        self.sent = u64::from(state.positions(strategy).any(|(_, position)| position.quantity > 0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        records::{Order, PAYLOAD_BYTES, Quote},
        strategy::{OrderSink, SendError, orders::OrderCause},
    };
    use lowlat_ipc::stream::Stamp;

    #[derive(Default)]
    struct Sent(Vec<Order>);

    impl OrderSink for Sent {
        fn send(&mut self, _: Stamp, payload: &[u8; PAYLOAD_BYTES]) -> Result<(), SendError> {
            self.0.push(Order::decode(payload).unwrap());
            Ok(())
        }

        fn number(&mut self) -> u64 {
            u64::try_from(self.0.len()).unwrap() + 1
        }
    }

    #[test]
    fn a_withdrawn_side_gets_no_order() {
        let (mut sent, mut strategy) = (Sent::default(), OnEachRecord::of(0));
        for (bid, ask) in [(10, 0), (10, 12), (0, 12), (0, 0), (11, 0)] {
            let quote = Quote { bid, ask, ..Quote::default() };
            let seen = QuoteSeen { instrument: 0, sequence: 1, generated_ns: 0, received_ns: 0, quote };
            strategy.on_quote(&mut Orders::new(&mut sent, 0, OrderCause::from(&seen)), &seen);
        }
        let orders: Vec<_> = sent.0.iter().map(|order| (order.side, order.price)).collect();
        assert_eq!(orders, [(Side::Buy, 12), (Side::Sell, 11)]);
        assert_eq!((strategy.quotes, strategy.sent, strategy.unsent), (5, 2, 0));
    }
}
