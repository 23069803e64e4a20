//! A simple strategy: it buys when a fast moving average of the middle price crosses a slow one from below, and
//! sells when it crosses from above. It shows the rules for a strategy's calls: no allocation, no waiting, no
//! clock reads.
//!
//! With a running pipeline (given its master's socket), on instrument 3:
//!
//! ```text
//! cargo run -p lowlat-trade --example moving_average -- /run/lowlat/NAME/master.sock average 3
//! ```
//!
//! Without arguments it prints its orders for simulated quotes.

use lowlat_ipc::stream::Stamp;
use lowlat_node::{
    Node, Strategies, Wait,
    records::{OrderType, Outcome, PAYLOAD_BYTES, Price, Side},
    strategy::{AnswerSeen, OrderSink, Orders, QuoteSeen, SendError, Strategy, StrategyGap},
};
use lowlat_trade::{md::Feed, scenario::Scenario};
use std::path::Path;

/// An exponential moving average in which the newest price has weight 1 / 2^shift.
#[derive(Debug, Clone, Copy)]
struct Average {
    shift: u32,
    /// The average times 2^shift; `None` before the first price.
    sum: Option<Price>,
}

impl Average {
    fn new(shift: u32) -> Self {
        Self { shift, sum: None }
    }

    fn take(&mut self, price: Price) -> Price {
        let sum = self.sum.map_or(price << self.shift, |sum| sum - (sum >> self.shift) + price);
        self.sum = Some(sum);
        sum >> self.shift
    }
}

/// The strategy, with its state between calls.
#[derive(Debug)]
struct Crossover {
    fast: Average,
    slow: Average,
    was_above: Option<bool>,
    /// Quantity bought minus quantity sold, from the fills so far.
    position: i64,
    /// The pending order; no other is sent before its answer.
    waits_for: Option<u64>,
    orders: u64,
}

impl Crossover {
    fn new() -> Self {
        Self {
            fast: Average::new(3),
            slow: Average::new(6),
            was_above: None,
            position: 0,
            waits_for: None,
            orders: 0,
        }
    }
}

impl Strategy for Crossover {
    fn on_quote(&mut self, orders: &mut Orders<'_>, seen: &QuoteSeen) {
        let middle = seen.quote.bid.midpoint(seen.quote.ask);
        let is_above = self.fast.take(middle) > self.slow.take(middle);
        let has_crossed = self.was_above.replace(is_above).is_some_and(|was_above| was_above != is_above);
        if !has_crossed || self.waits_for.is_some() {
            return;
        }
        let (side, price) = if is_above { (Side::Buy, seen.quote.ask) } else { (Side::Sell, seen.quote.bid) };
        // One piece long or short.
        let is_done = if is_above { self.position > 0 } else { self.position < 0 };
        if is_done {
            return;
        }
        let quantity = if self.position == 0 { 1 } else { 2 };
        let at_once = OrderType::ImmediateOrCancel;
        if let Ok(number) = orders.send_as(at_once, seen.instrument, side, price, quantity) {
            self.waits_for = Some(number);
            self.orders += 1;
        }
    }

    fn on_answer(&mut self, _: &mut Orders<'_>, seen: &AnswerSeen) {
        let answer = &seen.answer;
        match answer.outcome {
            // Rejected, or cancelled because the book does not fill it.
            Outcome::Rejected(_) | Outcome::Cancelled => self.waits_for = None,
            Outcome::Filled => {
                let quantity = i64::from(answer.quantity);
                self.position += if answer.side == Side::Buy { quantity } else { -quantity };
                self.waits_for = None;
            }
            // Its fill follows. It never changes an order.
            Outcome::Accepted | Outcome::Replaced | Outcome::NotChanged(_) => {}
        }
    }

    fn on_gap(&mut self, _: &mut Orders<'_>, gap: StrategyGap) {
        // Averages over missing quotes are wrong, and a missing answer would never arrive.
        match gap {
            StrategyGap::Quotes(_) => {
                *self = Self {
                    position: self.position,
                    waits_for: self.waits_for,
                    orders: self.orders,
                    ..Self::new()
                }
            }
            StrategyGap::Answers(_) => self.waits_for = None,
            StrategyGap::Others(_) => {}
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [] => show(),
        [socket, name, instrument] => {
            let instruments = [instrument.parse()?];
            // The master assigns the strategy's number.
            let (strategies, wait) = (Strategies::Free, Wait::Parked);
            let join = lowlat_node::strategy::join(name, "strategy", strategies, &instruments, 1 << 20, wait);
            let node = Node::join(Path::new(socket), &join)?;
            let number = *node.strategies().first().ok_or("the master assigned no strategy number")?;
            let mut strategy = Crossover::new();
            let done = lowlat_node::strategy::run(node, number, &mut strategy)?;
            println!("{} quotes, {} orders, position {}", done.quotes, strategy.orders, strategy.position);
            Ok(())
        }
        _ => Err("expected SOCKET NAME INSTRUMENT, or nothing".into()),
    }
}

/// Prints orders instead of sending them.
#[derive(Default)]
struct Printer {
    last: u64,
}

impl OrderSink for Printer {
    fn send(&mut self, _: Stamp, payload: &[u8; PAYLOAD_BYTES]) -> Result<(), SendError> {
        println!("{:?}", lowlat_node::records::Order::decode(payload));
        Ok(())
    }

    fn number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }
}

fn show() -> Result<(), Box<dyn std::error::Error>> {
    let scenario = Scenario::at_rate(1, 1000.0, 0.5).ok_or("no scenario")?;
    let (mut strategy, mut printer) = (Crossover::new(), Printer::default());
    for (sequence, due) in (1..).zip(Feed::simulated(&scenario, 1)) {
        let seen = QuoteSeen::new(0, sequence, (due.due_ns, due.due_ns), due.quote);
        strategy.on_quote(&mut Orders::new(&mut printer, 0, (&seen).into()), &seen);
        // Filled at once, as by the simulated exchange.
        if let Some(number) = strategy.waits_for.take() {
            strategy.position = if strategy.was_above == Some(true) { 1 } else { -1 };
            println!("  order {number} filled, position {}", strategy.position);
        }
    }
    println!("{} orders", strategy.orders);
    Ok(())
}
