//! Trades two instruments against each other, with a custom stream. Arguments: SOCKET signal|pairs FIRST SECOND
//!
//! The node "signal" reads the quotes of both and publishes on its stream "spread" how far the difference of their prices
//! is from its average. The strategy "pairs" reads that stream beside the quotes. Where the spread is wide it sells what is
//! dear and buys what is cheap, and it closes both when the spread has come back.

use lowlat_ipc::stream::Stamp;
use lowlat_node::{
    Event, Join, Keys, MD_STREAM, Node, Overrun, Reads, Strategies, Wait, Writes,
    clock::now_ns,
    records::{OrderType, Outcome, Price, Quote, Side, kind},
    strategy::{self, AnswerSeen, Orders, OtherSeen, QuoteSeen, Strategy},
};
use std::{error::Error, path::Path};

const SPREAD_STREAM: &str = "spread";
/// Kind of the stream's records; kinds from 1,000 on are free.
const KIND: u16 = 1001;
const RING_BYTES: u64 = 1 << 20;
/// Distances from the average at which it opens and closes, in ten-thousandths.
const ENTRY: Price = 300;
const EXIT: Price = 100;
const SMOOTHING: Price = 64;

/// Publishes the spread's distance from its average, until the run ends.
pub fn signal(socket: &Path, instruments: [u32; 2]) -> Result<(), Box<dyn Error>> {
    let reads = Reads::new(MD_STREAM, Keys::Only(instruments.to_vec())).with(Overrun::Conflate);
    let join = Join::new("signal", "signal").writing(Writes::new(SPREAD_STREAM, RING_BYTES, 1));
    let mut node = Node::join(socket, &join.reading([reads]).waiting(Wait::Parked))?;
    let (mut middles, mut average, mut is_over) = ([None; 2], None, false);
    while !is_over {
        node.wait(None);
        node.poll(&mut |publisher, event| match event {
            Event::Record { record, payload, .. } if record.stamp.kind == kind::QUOTE => {
                let Ok(quote) = Quote::decode(payload) else { return };
                let which = usize::from(record.stamp.instrument == instruments[1]);
                middles[which] = Some(quote.bid.midpoint(quote.ask));
                let [Some(first), Some(second)] = middles else { return };
                let spread: Price = first - second;
                let mean = average.map_or(spread, |mean: Price| mean + (spread - mean) / SMOOTHING);
                average = Some(mean);
                let stamp = Stamp {
                    kind: KIND,
                    generated: now_ns(),
                    trigger: record.stamp.generated,
                    cause: record.sequence,
                    ..Stamp::default()
                };
                // A stream of this size refuses only a process that was replaced, and that ends.
                publisher.publish(&stamp, &(spread - mean).to_le_bytes()).ok();
            }
            Event::Stop => is_over = true,
            _ => {}
        });
    }
    Ok(node.result(())?)
}

/// The request of the strategy "pairs": it reads the spread beside its quotes and answers.
pub fn join(instruments: [u32; 2]) -> Join {
    let join = strategy::join("pairs", "strategy", Strategies::Free, &instruments, RING_BYTES, Wait::Parked);
    let mut join = strategy::with_overrun(join, Overrun::Conflate);
    join.reads.push(Reads::new(SPREAD_STREAM, Keys::All).with(Overrun::Conflate));
    join
}

/// The strategy, with what it has of both instruments.
pub struct Pairs {
    instruments: [u32; 2],
    quotes: [Option<Quote>; 2],
    /// Quantity bought minus quantity sold.
    pub positions: [i64; 2],
    /// Orders without an end: a market order is filled or cancelled at once.
    waits_for: [Option<u64>; 2],
    pub orders: u64,
}

impl Pairs {
    pub fn new(instruments: [u32; 2]) -> Self {
        Self { instruments, quotes: [None; 2], positions: [0; 2], waits_for: [None; 2], orders: 0 }
    }

    fn trade(&mut self, orders: &mut Orders<'_>, which: usize, target: i64) {
        let (change, Some(quote)) = (target - self.positions[which], self.quotes[which]) else { return };
        let (side, price) = if change > 0 { (Side::Buy, quote.ask) } else { (Side::Sell, quote.bid) };
        let quantity = u32::try_from(change.unsigned_abs()).unwrap_or(0);
        if quantity > 0
            && let Ok(number) =
                orders.send_as(OrderType::Market, self.instruments[which], side, price, quantity)
        {
            self.waits_for[which] = Some(number);
            self.orders += 1;
        }
    }
}

impl Strategy for Pairs {
    fn on_quote(&mut self, _: &mut Orders<'_>, seen: &QuoteSeen) {
        self.quotes[usize::from(seen.instrument == self.instruments[1])] = Some(seen.quote);
    }

    fn on_record(&mut self, orders: &mut Orders<'_>, seen: &OtherSeen<'_>) {
        let Ok(deviation) = seen.payload.try_into().map(Price::from_le_bytes) else { return };
        let held = self.positions[0];
        let target = match deviation.abs() {
            ENTRY.. => -deviation.signum(),
            ..=EXIT => 0,
            _ => held,
        };
        // Closed first: a market order of the double size may find half of it.
        let target = if held * target < 0 { 0 } else { target };
        if self.waits_for == [None; 2] && self.quotes.iter().all(Option::is_some) {
            self.trade(orders, 0, target);
            self.trade(orders, 1, -target);
        }
    }

    fn on_answer(&mut self, _: &mut Orders<'_>, seen: &AnswerSeen) {
        let answer = &seen.answer;
        let Some(which) = self.waits_for.iter().position(|number| *number == Some(answer.order_number))
        else {
            return;
        };
        if answer.outcome == Outcome::Filled {
            self.positions[which] += answer.side.signed(answer.quantity);
        }
        if matches!(answer.outcome, Outcome::Filled | Outcome::Cancelled | Outcome::Rejected(_)) {
            self.waits_for[which] = None;
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, socket, role, first, second] = arguments.as_slice() else {
        return Err("expected SOCKET signal|pairs FIRST SECOND".into());
    };
    let (socket, instruments) = (Path::new(socket), [first.parse()?, second.parse()?]);
    if role == "signal" {
        return signal(socket, instruments);
    }
    let node = Node::join(socket, &join(instruments))?;
    let number = *node.strategies().first().ok_or("the master assigned no strategy number")?;
    let mut pairs = Pairs::new(instruments);
    strategy::run(node, number, &mut pairs)?;
    println!("{} orders, positions {:?}", pairs.orders, pairs.positions);
    Ok(())
}
