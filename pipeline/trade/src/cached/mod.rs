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
    OrderKey, OrderState, Payload, Position, PositionKey, Progress, QuoteState, RecordSeen, State,
};
pub use store::{Store, StoreError};

use std::path::{Path, PathBuf};

/// State in memory, with the store that saves it.
#[derive(Debug)]
pub struct Cached {
    pub state: State,
    store: Store,
}

impl Cached {
    /// Opens or creates a store, and loads its state.
    pub fn open(path: &Path) -> Result<(Self, Option<PathBuf>), StoreError> {
        let (mut store, set_aside) = Store::open(path)?;
        let state = store.load()?;
        Ok((Self { state, store }, set_aside))
    }

    /// Saves all changes in one transaction. If it fails, all of them remain to be saved.
    pub fn flush(&mut self) -> Result<(), StoreError> {
        self.store.save(&self.state)?;
        self.state.saved();
        Ok(())
    }
}
