//! The latest state of the pipeline: quotes by instrument, orders, positions. In memory, and in SQLite for whoever starts
//! after this process ended.
//!
//! [`State`] is pure: records go in, state comes out. [`Store`] keeps it on disk, in batches that nobody on the hot path
//! waits for. What a batch had not reached when the process died comes again from the streams where those still hold it;
//! a record that is applied twice changes nothing.

mod state;
mod store;
#[cfg(test)]
mod tests;

pub use state::{OrderKey, OrderState, Position, Progress, QuoteState, Seen, State, What};
pub use store::{Opened, Store, StoreError};

use std::path::Path;

/// State and store together.
#[derive(Debug)]
pub struct Cached {
    state: State,
    store: Store,
}

impl Cached {
    /// Opens a store, or makes it, and takes the state that it holds.
    pub fn open(path: &Path) -> Result<(Self, Opened), StoreError> {
        let (mut store, opened) = Store::open(path)?;
        let state = store.load()?;
        Ok((Self { state, store }, opened))
    }

    /// Begins a run: to be called once for each new master, before its records. Streams and order numbers start again;
    /// quotes and positions stay.
    pub fn begin_run(&mut self) {
        self.state.begin_run();
    }

    /// Applies a record to the state in memory.
    pub fn apply(&mut self, seen: &Seen<'_>) -> bool {
        self.state.apply(seen)
    }

    /// Records applied since the last [`Cached::flush`].
    pub fn unsaved(&self) -> u64 {
        self.state.unsaved()
    }

    /// Saves what changed, as one transaction. When it fails, all of it is still to be saved.
    pub fn flush(&mut self) -> Result<(), StoreError> {
        self.store.save(&self.state)?;
        self.state.saved();
        Ok(())
    }

    /// The last quote of an instrument.
    pub fn state(&self, instrument: u32) -> Option<&QuoteState> {
        self.state.quote(instrument)
    }

    /// Orders of a strategy, by their number.
    pub fn orders(&self, strategy: u32) -> impl Iterator<Item = (u64, &OrderState)> {
        self.state.orders(strategy)
    }

    /// Positions of a strategy, by instrument.
    pub fn positions(&self, strategy: u32) -> impl Iterator<Item = (u32, &Position)> {
        self.state.positions(strategy)
    }
}
