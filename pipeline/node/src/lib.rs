//! What a program needs to take part in a trading pipeline: it joins a master as a node, reads streams of records,
//! publishes one, and sends orders if it is a strategy.
//!
//! Start with [`strategy`]: implement [`strategy::Strategy`], join with [`strategy::join`], and give the node to
//! [`strategy::run`]. Programs that read or write other streams poll a [`Node`] themselves.
//!
//! ```no_run
//! use lowlat_node::{
//!     Node, Strategies, Wait,
//!     records::Side,
//!     strategy::{self, Orders, QuoteSeen, Strategy},
//! };
//!
//! /// Buys one at each quote.
//! struct Buyer;
//!
//! impl Strategy for Buyer {
//!     fn on_quote(&mut self, orders: &mut Orders<'_>, seen: &QuoteSeen) {
//!         orders.send(seen.instrument, Side::Buy, seen.quote.ask, 1).ok();
//!     }
//! }
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let instruments = [3];
//!     let join = strategy::join("buyer", "strategy", Strategies::Free, &instruments, 1 << 20, Wait::Parked);
//!     let node = Node::join("/run/lowlat/desk/master.sock".as_ref(), &join)?;
//!     let number = node.strategies()[0];
//!     let done = strategy::run(node, number, &mut Buyer)?;
//!     println!("{} quotes", done.quotes);
//!     Ok(())
//! }
//! ```

pub mod address;
pub mod clock;
pub mod control;
pub mod ledger;
mod node;
pub mod private;
pub mod records;
mod refusal;
pub mod state;
pub mod strategy;
#[cfg(feature = "testing")]
pub mod testing;

#[cfg(feature = "testing")]
pub use node::Rehearsal;
pub use node::{
    Awaited, COUNT_MAX, COUNTERS_BYTES, Counters, Event, Figures, Join, JoinError, Keys, MASTER_HEARTBEAT,
    Memory, MemoryBehind, Node, NodeEnded, NodePublishError, NodeTurn, Overrun, Published, Publisher, Reads,
    ReadsFrom, Received, Strategies, StreamName, Wait, Writes, ask, cpu_set, raise_open_files,
};
pub use refusal::Refusal;

/// The stream of quotes, by instrument.
pub const MD_STREAM: &str = "md";
/// The stream of answers, by strategy.
pub const TD_STREAM: &str = "td";
/// Prefix of the streams of orders.
pub const ORDERS_PREFIX: &str = "orders.";
/// Maximum number of strategies: rows of td's interest table. More than nodes, because a process may host many.
pub const STRATEGIES_MAX: u32 = 1 << 14;
