//! The latest state of the pipeline: quotes by instrument, orders, positions. It is kept in memory, and in
//! SQLite for processes that start later.
//!
//! [`State`] is pure: records go in, state comes out. [`Store`] saves it in batches off the hot path. Records
//! that no batch contained when the process died are read again from the streams, as far as those still have
//! them; applying a record twice changes nothing.

mod store;
#[cfg(test)]
mod tests;

pub use store::{Store, StoreError};

use lowlat_node::{Node, Refusal, state::State, strategy::Strategy};
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

/// Restores the strategy of a restarted process from what cached saved in this store. Returns true if it did.
pub fn restore(node: &Node, number: u32, store: &Path, strategy: &mut dyn Strategy) -> Result<bool, Refusal> {
    if node.epoch() == 1 {
        return Ok(false);
    }
    let state = Store::open_read_only(store).and_then(|mut store| store.load()).map_err(Refusal::of)?;
    strategy.on_restart(number, &state);
    Ok(true)
}
