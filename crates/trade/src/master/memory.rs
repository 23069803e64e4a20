//! All memory that nodes share is made here, so that it outlives each of them.
//!
//! | memory | written by | other processes that have it | pages |
//! |---|---|---|---|
//! | master's page | master | each node, read-only | usual |
//! | segment | its writer; master fences it | its readers, read-only | of the reserved pool, if any |
//! | interest table | master | its stream's writer, read-only | of the reserved pool, if any |
//! | ring, table of latest positions | publisher and subscriber; master for one that died | none | usual |
//! | inbox | its node and the publishers that the node reads | none | usual |
//! | counters | its node, and master to fence it | none | usual |
//! | area | the writer of one stream | none | usual |
//! | owners of strategies | master | td, read-only | usual |
//!
//! What others have read-only is sealed: no process can get write access to them once they are handed out.

use crate::node::Memory;
use lowlat_ipc::region::{Backing, Memfd, RegionError};
use std::{collections::BTreeMap, sync::Arc};

/// Makes memory and keeps count of what the kernel gave.
#[derive(Debug)]
pub(super) struct Maker {
    may_use_huge_pages: bool,
    backing_bytes: BTreeMap<String, u64>,
    unlocked_bytes: u64,
}

impl Maker {
    pub(super) fn new(may_use_huge_pages: bool) -> Self {
        Self { may_use_huge_pages, backing_bytes: BTreeMap::new(), unlocked_bytes: 0 }
    }

    /// Zeroed memory that one node will write. It is to be sealed ([`Memfd::seal_writes`]) before others are given it.
    ///
    /// Each piece is filled with pages; `name` shows in /proc/PID/maps.
    pub(super) fn make(&mut self, name: &str, bytes: u64) -> Result<Memory, RegionError> {
        self.make_with(name, bytes, self.may_use_huge_pages)
    }

    /// Zeroed memory that only the master writes.
    pub(super) fn make_own(&mut self, name: &str, bytes: u64) -> Result<Memory, RegionError> {
        let memory = self.make(name, bytes)?;
        memory.seal_writes()?;
        Ok(memory)
    }

    /// Zeroed memory that processes write which come and go, so that writing can't be sealed. Each of them could punch
    /// holes, so it has usual pages: there a hole is zeros, and in the reserved pool it may be the end of whoever reads it.
    pub(super) fn make_shared(&mut self, name: &str, bytes: u64) -> Result<Memory, RegionError> {
        let memory = self.make_with(name, bytes, false)?;
        memory.seal_seals()?;
        Ok(memory)
    }

    fn make_with(&mut self, name: &str, bytes: u64, may_be_huge: bool) -> Result<Memory, RegionError> {
        let name = format!("lowlat:{name}");
        // Memfd::open takes nothing smaller than a page.
        let bytes = bytes.max(4096).next_multiple_of(4096);
        let memory =
            if may_be_huge { Memfd::create(&name, bytes)? } else { Memfd::create_usual(&name, bytes)? };
        // Looking it up reads the whole of smaps: for rings of a few pages the answer is known.
        let is_large = bytes >= 1 << 20;
        let kind = match if is_large { memory.backing() } else { Some(Backing::Base) } {
            Some(Backing::Reserved { page_bytes }) => format!("{} KiB pages of the pool", page_bytes >> 10),
            Some(Backing::Transparent { .. }) => "transparent huge pages".to_owned(),
            Some(Backing::Base) => "usual pages".to_owned(),
            None => "unknown pages".to_owned(),
        };
        *self.backing_bytes.entry(kind).or_default() += memory.bytes();
        if !memory.is_locked() {
            self.unlocked_bytes += memory.bytes();
        }
        Ok(Arc::new(memory))
    }

    /// Bytes made so far that could not be locked in memory.
    pub(super) fn unlocked_bytes(&self) -> u64 {
        self.unlocked_bytes
    }

    /// Bytes made so far, by kind of page.
    pub(super) fn backing_bytes(&self) -> &BTreeMap<String, u64> {
        &self.backing_bytes
    }
}
