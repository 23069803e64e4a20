//! The latest state of the pipeline: quotes by instrument, orders, positions. It is kept in memory, and in
//! SQLite for processes that start later.
//!
//! [`State`] is pure: records go in, state comes out. [`Store`] saves it in batches off the hot path. Records
//! that no batch contained when the process died are read again from the streams, as far as those still have
//! them; applying a record twice changes nothing.

mod state;
mod store;
#[cfg(test)]
mod tests;

pub use state::{
    OrderKey, OrderState, Payload, Position, PositionKey, Progress, QuoteState, State, StreamRecord,
};
pub use store::{Opened, Store, StoreError};

use std::path::Path;

/// State and store together.
#[derive(Debug)]
pub struct Cached {
    state: State,
    store: Store,
}

impl Cached {
    /// Opens or creates a store, and loads its state.
    pub fn open(path: &Path) -> Result<(Self, Opened), StoreError> {
        let (mut store, opened) = Store::open(path)?;
        let state = store.load()?;
        Ok((Self { state, store }, opened))
    }

    /// Starts a run: to be called once for each new master, before its records. Streams and order numbers
    /// restart; quotes and positions remain.
    pub fn begin_run(&mut self) {
        self.state.begin_run();
    }

    /// Says how many strategies the run has itself: their numbers name them.
    pub fn reserve(&mut self, strategies: u32) {
        self.state.reserved = strategies;
    }

    /// Applies a record to the state in memory.
    pub fn apply(&mut self, seen: &StreamRecord<'_>) -> bool {
        self.state.apply(seen)
    }

    /// Records applied since the last [`Cached::flush`].
    pub fn unsaved(&self) -> u64 {
        self.state.unsaved()
    }

    /// Saves all changes in one transaction. If it fails, all of them remain to be saved.
    pub fn flush(&mut self) -> Result<(), StoreError> {
        self.store.save(&self.state)?;
        self.state.saved();
        Ok(())
    }

    /// The last quote of an instrument.
    pub fn state(&self, instrument: u32) -> Option<&QuoteState> {
        self.state.quote(instrument)
    }

    /// Orders of a strategy, by number.
    pub fn orders(&self, strategy: u32) -> impl Iterator<Item = (u64, &OrderState)> {
        self.state.orders(strategy)
    }

    /// Positions of a strategy, by instrument.
    pub fn positions(&self, strategy: u32) -> impl Iterator<Item = (u32, &Position)> {
        self.state.positions(strategy)
    }
}
