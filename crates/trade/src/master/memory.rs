//! All memory that nodes share is made here, so that it outlives each of them.

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

    /// Zeroed memory, filled with pages; `name` shows in /proc/PID/maps.
    pub(super) fn make(&mut self, name: &str, bytes: u64) -> Result<Memory, RegionError> {
        let name = format!("lowlat:{name}");
        // Memfd::open takes nothing smaller than a page.
        let bytes = bytes.max(4096).next_multiple_of(4096);
        let memory = if self.may_use_huge_pages {
            Memfd::create(&name, bytes)?
        } else {
            Memfd::create_usual(&name, bytes)?
        };
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
