//! Buys one whenever the price has risen since the last quote. Arguments: SOCKET INSTRUMENT

use lowlat_node::{
    Node, Strategies, Wait,
    records::{Price, Side},
    strategy::{self, Orders, QuoteSeen, Strategy},
};
use std::{error::Error, path::Path};

#[derive(Default)]
struct Rising {
    last: Option<Price>,
    orders: u64,
}

impl Strategy for Rising {
    fn on_quote(&mut self, orders: &mut Orders<'_>, seen: &QuoteSeen) {
        let middle = seen.quote.bid.midpoint(seen.quote.ask);
        let has_risen = self.last.replace(middle).is_some_and(|last| middle > last);
        if has_risen && orders.send(seen.instrument, Side::Buy, seen.quote.ask, 1).is_ok() {
            self.orders += 1;
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, socket, instrument] = arguments.as_slice() else {
        return Err("expected SOCKET INSTRUMENT".into());
    };
    let instruments = [instrument.parse()?];
    let join =
        strategy::join("first-rust", "strategy", Strategies::Free, &instruments, 1 << 20, Wait::Parked);
    let node = Node::join(Path::new(socket), &join)?;
    println!("joined");
    let number = *node.strategies().first().ok_or("the master assigned no strategy number")?;
    let mut rising = Rising::default();
    let done = strategy::run(node, number, &mut rising)?;
    println!("{} quotes, {} orders", done.quotes, rising.orders);
    Ok(())
}
