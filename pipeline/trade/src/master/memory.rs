//! Allocates all memory that nodes share, so that it outlives each of them, within a budget.
//!
//! | memory | written by | other processes with access | pages |
//! |---|---|---|---|
//! | master's page | master | each node, read-only | base |
//! | segment | its writer; master fences it | its readers, read-only | of the reserved pool, if any |
//! | interest table | master | its stream's writer, read-only | of the reserved pool, if any |
//! | ring, table of latest positions | publisher and subscriber; master for one that died | none | base |
//! | inbox | its node and the publishers that the node reads | none | base |
//! | counters | its node, and master to fence it | none | base |
//! | area | the writer of one stream | none | base |
//! | owners of strategies | master | td, read-only | base |
//!
//! Memory that is shared read-only is sealed: once it is shared, no process can get write access to it.

use lowlat_ipc::region::{Backing, Memfd, RegionError};
use lowlat_node::Memory;
use std::{
    collections::BTreeMap,
    fs,
    sync::{Arc, Weak},
};

/// Fraction of the memory available at the master's start that its nodes may share: 3 of 4.
const BUDGET_PARTS: (u64, u64) = (3, 4);
/// The budget if the kernel does not report available memory.
const BUDGET_BYTES_UNKNOWN: u64 = 4 << 30;
/// Fraction of the budget for all nodes together that the master did not start.
const GUESTS_PART: u64 = 2;
/// Fraction of the budget for each of them.
const GUEST_PART: u64 = 4;
const PAGE_BYTES: u64 = 4096;

/// Account to which memory is charged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ChargedTo {
    /// The master, and so everyone.
    Everyone,
    /// A node of a program that the master started.
    Program(u32),
    /// A node that the master did not start.
    Guest(u32),
}

/// Processes that write a piece of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WrittenBy {
    /// One node. The memory must be sealed ([`Memfd::seal_writes`]) before it is shared.
    OneWriter,
    /// Only the master.
    Own,
    /// Changing processes, so writing cannot be sealed. Each of them could punch holes, so it has base pages:
    /// there a hole reads as zeros, while in the reserved pool it may end the reading process.
    Shared,
}

/// Allocates memory and counts what the kernel granted.
#[derive(Debug)]
pub(super) struct Maker {
    may_use_huge_pages: bool,
    /// Bytes allocated so far, by kind of page.
    pub(super) backing_bytes: BTreeMap<String, u64>,
    /// Bytes allocated so far that could not be locked in memory.
    pub(super) unlocked_bytes: u64,
    budget_bytes: u64,
    /// Maximum number of pieces, because each takes a descriptor.
    pub(super) pieces_max: usize,
    made: Vec<(ChargedTo, Weak<Memfd>)>,
    /// Bytes per account, including some already freed: see [`Maker::recount`].
    used: BTreeMap<ChargedTo, u64>,
}

impl Maker {
    /// With a budget; `None`: most of the available memory.
    pub(super) fn new(may_use_huge_pages: bool, budget_bytes: Option<u64>) -> Self {
        Self {
            may_use_huge_pages,
            backing_bytes: BTreeMap::new(),
            unlocked_bytes: 0,
            budget_bytes: budget_bytes.unwrap_or_else(|| available_bytes(may_use_huge_pages)),
            pieces_max: usize::MAX,
            made: Vec::new(),
            used: BTreeMap::new(),
        }
    }

    /// Allocates zeroed memory that is charged to no node, with all pages present; `name` is shown in
    /// /proc/PID/maps.
    pub(super) fn make(&mut self, kind: WrittenBy, name: &str, bytes: u64) -> Result<Memory, RegionError> {
        self.make_unasked(ChargedTo::Everyone, kind, name, bytes)
    }

    /// The same for a node, within the budgets. The error reports the request and the limits.
    pub(super) fn make_for(
        &mut self,
        whom: ChargedTo,
        kind: WrittenBy,
        name: &str,
        bytes: u64,
    ) -> Result<Memory, String> {
        if self.check(whom, name, bytes).is_err() || self.made.len() >= self.pieces_max {
            self.recount();
        }
        if self.made.len() >= self.pieces_max {
            return Err(format!(
                "cannot make {name}: the master has no file descriptor left\nhint: raise the limit of open files (ulimit -n)"
            ));
        }
        self.check(whom, name, bytes)?;
        self.make_unasked(whom, kind, name, bytes).map_err(|error| error.to_string())
    }

    pub(super) fn pieces(&mut self) -> usize {
        self.recount();
        self.made.len()
    }

    /// Drops memory that is no longer used.
    fn recount(&mut self) {
        self.used.clear();
        self.made.retain(|(whom, memory)| {
            let Some(memory) = memory.upgrade() else { return false };
            *self.used.entry(*whom).or_default() += memory.bytes();
            true
        });
    }

    fn check(&self, whom: ChargedTo, name: &str, bytes: u64) -> Result<(), String> {
        let of = |is_it: fn(&ChargedTo) -> bool| -> u64 {
            self.used.iter().filter(|(whom, _)| is_it(whom)).map(|(_, bytes)| *bytes).sum()
        };
        let all = (self.budget_bytes, of(|_| true), "all nodes");
        let of_node = self.used.get(&whom).copied().unwrap_or(0);
        let guests = |whom: &ChargedTo| matches!(whom, ChargedTo::Guest(_));
        let limits = [
            (self.budget_bytes / GUEST_PART, of_node, "a node that the run did not start"),
            (self.budget_bytes / GUESTS_PART, of(guests), "nodes that the run did not start"),
            all,
        ];
        let from = if guests(&whom) { 0 } else { 2 };
        for (budget, used, who) in limits.into_iter().skip(from) {
            if used.saturating_add(bytes) > budget {
                return Err(format!(
                    "cannot make {name}: it takes {}, and {who} may use {} of memory, of which {} are in use\nhint: ask for less, or start the run with more (lowlat pipeline run --memory-max)",
                    size(bytes),
                    size(budget),
                    size(used),
                ));
            }
        }
        Ok(())
    }

    fn make_unasked(
        &mut self,
        whom: ChargedTo,
        kind: WrittenBy,
        name: &str,
        bytes: u64,
    ) -> Result<Memory, RegionError> {
        let name = format!("lowlat:{name}");
        // Memfd::open rejects memory smaller than a page.
        let bytes = bytes.max(PAGE_BYTES).next_multiple_of(PAGE_BYTES);
        let may_be_huge = self.may_use_huge_pages && kind != WrittenBy::Shared;
        let memory =
            if may_be_huge { Memfd::create(&name, bytes)? } else { Memfd::create_usual(&name, bytes)? };
        match kind {
            WrittenBy::OneWriter => {}
            WrittenBy::Own => _ = memory.seal_writes()?,
            WrittenBy::Shared => memory.seal_seals()?,
        }
        // The lookup reads the whole of smaps, and for rings of a few pages the answer is known.
        let is_large = bytes >= 1 << 20;
        let kind = match if is_large { memory.backing() } else { Some(Backing::Base) } {
            Some(Backing::Reserved { page_bytes }) => format!("{} KiB pages of the pool", page_bytes >> 10),
            Some(Backing::Transparent { .. }) => "transparent huge pages".to_owned(),
            Some(Backing::Base) => "4 KiB pages".to_owned(),
            None => "unknown pages".to_owned(),
        };
        *self.backing_bytes.entry(kind).or_default() += memory.bytes();
        if !memory.is_locked() {
            self.unlocked_bytes += memory.bytes();
        }
        *self.used.entry(whom).or_default() += memory.bytes();
        let memory = Arc::new(memory);
        self.made.push((whom, Arc::downgrade(&memory)));
        Ok(memory)
    }
}

/// The default budget, from the kernel's report of available memory.
fn available_bytes(may_use_huge_pages: bool) -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    budget_of(&text, may_use_huge_pages).unwrap_or(BUDGET_BYTES_UNKNOWN)
}

fn budget_of(meminfo: &str, may_use_huge_pages: bool) -> Option<u64> {
    let field = |name: &str| {
        let line = meminfo.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        line.split_ascii_whitespace().next()?.parse::<u64>().ok()
    };
    let (part, parts) = BUDGET_PARTS;
    let usual = field("MemAvailable")?.saturating_mul(1024);
    // Free pages of the pool do not count as available memory.
    let huge =
        field("HugePages_Free").zip(field("Hugepagesize")).map_or(0, |(pages, kib)| pages * kib * 1024);
    Some(usual / parts * part + if may_use_huge_pages { huge } else { 0 })
}

/// A size in the largest unit in which it is at least 1.
fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} bytes"),
        1024..0x10_0000 => format!("{} KiB", bytes.div_ceil(1024)),
        _ => format!("{} MiB", bytes.div_ceil(1 << 20)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn requests_beyond_a_budget_are_refused_with_figures() {
        let mut maker = Maker::new(false, Some(8 * MIB));
        let mut make = |whom, bytes| maker.make_for(whom, WrittenBy::Shared, "stream x", bytes);
        let error = make(ChargedTo::Guest(1), 1 << 36).unwrap_err();
        assert!(error.contains("cannot make stream x: it takes 65536 MiB"), "{error}");
        assert!(
            error.contains("did not start may use 2 MiB of memory, of which 0 bytes are in use"),
            "{error}"
        );
        assert!(error.contains("hint: ask for less, or start the run with more"), "{error}");
        let kept: Vec<_> = (1..=2).map(|node| make(ChargedTo::Guest(node), 2 * MIB).unwrap()).collect();
        let error = make(ChargedTo::Guest(3), 4096).unwrap_err();
        assert!(error.contains("nodes that the run did not start may use 4 MiB"), "{error}");
        let program = make(ChargedTo::Program(4), 4 * MIB).unwrap();
        let error = make(ChargedTo::Program(4), 4096).unwrap_err();
        assert!(error.contains("all nodes may use 8 MiB"), "{error}");
        // Freed memory no longer counts.
        drop(program);
        make(ChargedTo::Program(5), 4 * MIB).unwrap();
        drop(kept);
        make(ChargedTo::Guest(1), 2 * MIB).unwrap();
    }

    #[test]
    fn pieces_are_limited_by_descriptors() {
        let mut maker = Maker::new(false, None);
        maker.pieces_max = 2;
        let first = maker.make_for(ChargedTo::Guest(1), WrittenBy::Shared, "ring", 1).unwrap();
        let second = maker.make_for(ChargedTo::Guest(1), WrittenBy::Shared, "ring", 1).unwrap();
        let error = maker.make_for(ChargedTo::Program(1), WrittenBy::Shared, "ring", 1).unwrap_err();
        assert!(error.contains("no file descriptor left") && error.contains("ulimit -n"), "{error}");
        drop(first);
        let third = maker.make_for(ChargedTo::Guest(1), WrittenBy::Shared, "ring", 1).unwrap();
        assert_eq!(maker.pieces(), 2);
        drop((second, third));
        assert_eq!(maker.pieces(), 0);
    }

    #[test]
    fn the_default_budget_is_most_of_what_is_available() {
        let text = "MemTotal: 900 kB\nMemAvailable:   400 kB\nHugePages_Free:  2\nHugepagesize:  2048 kB\n";
        assert_eq!(budget_of(text, false), Some(300 << 10));
        assert_eq!(budget_of(text, true), Some((300 << 10) + (4 << 20)));
        assert_eq!(budget_of("", true), None);
        assert!(available_bytes(true) > 0);
    }
}
