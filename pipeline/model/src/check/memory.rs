//! Memory and files of a run.

use crate::{PipelineParameters, matrix::FOLLOWERS};

/// Largest page that pieces of memory are rounded up to when the pool gives them.
const HUGE_PAGE_BYTES: u64 = 2 << 20;
const PAGE_BYTES: u64 = 4096;
/// Smaller pieces are never taken from the pool.
const POOLED_BYTES_MIN: u64 = 1 << 20;
/// A row of a table of interest: a bit for each of 1,024 subscribers.
const TABLE_ROW_BYTES: u64 = 128;
/// Bytes of a record of the pipeline in a stream.
const RECORD_BYTES: u64 = 128;
/// Most entries of a ring, for a reader of some keys and for one of all.
const RING_ENTRIES_SOME: u64 = 1 << 12;
const RING_ENTRIES_ALL: u64 = 1 << 16;
const RING_ENTRY_BYTES: u64 = 8;
/// The histograms of the stages.
const STAGES_BYTES: u64 = 2 << 20;
/// Rows of td's table: the largest number of strategies.
const STRATEGIES_MAX: u64 = 1 << 14;
/// td's ledger and the strategies' numbers.
const LEDGER_BYTES: u64 = 3 << 20;
/// Memory of a strategy host for each strategy: its queue.
const HOSTED_BYTES: u64 = 16 << 10;
/// Processes that may read every record: cached and the matrix's followers.
const READERS_OF_ALL: u64 = 1 + FOLLOWERS as u64;
/// Descriptors of a process that do not belong to streams: standard ones, sockets, timers.
const FILES_BASE: u64 = 32;
/// Descriptors that master holds of each process: its socket, its pidfd, its stream, the stream's table of interest,
/// its inbox, and a ring for each stream that it reads.
const FILES_PER_PROCESS: u64 = 8;

/// Bytes of the parts of a run's memory.
///
/// ```text
/// shared = md + td + areas + strategies × (stream + inbox + table + rings) + rings of td, cached and followers
/// total  = shared + processes × 3 MiB
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// Shared memory, which is locked: streams, inboxes, rings, tables of interest, areas.
    pub shared_bytes: u64,
    /// The part of it that comes from the pool of huge pages: pieces large enough for that.
    pub pooled_bytes: u64,
    /// Private memory of the processes.
    pub private_bytes: u64,
}

impl Memory {
    /// Upper limit of the private memory of a strategy's process: its own pages, stacks, page tables.
    pub const PROCESS_BYTES: u64 = 3 << 20;
    /// Capacity of md's and of td's stream, and of a strategy host's.
    pub const PLATFORM_STREAM_BYTES: u64 = 16 << 20;
    /// Capacity of a strategy's stream of orders.
    pub const ORDERS_STREAM_BYTES: u64 = 256 << 10;

    /// Computes the memory of a run.
    pub fn of(parameters: &PipelineParameters) -> Self {
        let has_host = parameters.host_core.is_some();
        let strategies = u64::from(parameters.strategies);
        let (publishers, orders) =
            if has_host { (1, Self::PLATFORM_STREAM_BYTES) } else { (strategies, Self::ORDERS_STREAM_BYTES) };
        let table = |keys: u64| (keys + 2) * TABLE_ROW_BYTES;
        let ring = |stream_bytes: u64, entries_max: u64| {
            (stream_bytes / RECORD_BYTES).min(entries_max) * RING_ENTRY_BYTES + PAGE_BYTES
        };
        let some = ring(Self::PLATFORM_STREAM_BYTES, RING_ENTRIES_SOME);
        // Number of pieces and their size. Memory written by processes that come and go does not come from the pool.
        let sealed = [
            (2, Self::PLATFORM_STREAM_BYTES + PAGE_BYTES),
            (1, table(strategies)),
            (1, table(STRATEGIES_MAX)),
            (publishers, orders + PAGE_BYTES),
            (publishers, table(1)),
        ];
        let shared = [
            (1, STAGES_BYTES),
            (1, LEDGER_BYTES),
            // Inboxes, including those of td and of the readers of all.
            (publishers + 1 + READERS_OF_ALL, PAGE_BYTES),
            // A strategy's rings for quotes and answers, and td's for its orders.
            (2 * publishers, some),
            (publishers * (1 + READERS_OF_ALL), ring(orders, RING_ENTRIES_ALL)),
            // td reads md, if quotes fill the orders.
            (2 * READERS_OF_ALL + 1, ring(Self::PLATFORM_STREAM_BYTES, RING_ENTRIES_ALL)),
        ];
        let mut memory = Self {
            shared_bytes: 0,
            pooled_bytes: 0,
            private_bytes: (publishers + 3 + READERS_OF_ALL) * Self::PROCESS_BYTES
                + if has_host { strategies * HOSTED_BYTES } else { 0 },
        };
        let all = sealed.map(|piece| (piece, true)).into_iter().chain(shared.map(|piece| (piece, false)));
        for ((count, bytes), is_sealed) in all {
            let is_pooled = parameters.may_use_huge_pages && is_sealed && bytes >= POOLED_BYTES_MIN;
            let piece = bytes.next_multiple_of(if is_pooled { HUGE_PAGE_BYTES } else { PAGE_BYTES });
            memory.shared_bytes += count * piece;
            memory.pooled_bytes += if is_pooled { count * piece } else { 0 };
        }
        memory
    }

    pub fn total_bytes(&self) -> u64 {
        self.shared_bytes + self.private_bytes
    }

    /// The part that does not come from the pool; the pool's pages do not count as available memory.
    pub fn unpooled_bytes(&self) -> u64 {
        self.total_bytes() - self.pooled_bytes
    }

    /// Pages of 2 MiB that it takes from the pool.
    pub fn huge_pages(&self) -> u64 {
        self.pooled_bytes.div_ceil(HUGE_PAGE_BYTES)
    }
}

/// Files that the process with the most of them, master, has open.
pub fn files_needed(parameters: &PipelineParameters) -> u64 {
    let strategies = if parameters.host_core.is_some() { 1 } else { u64::from(parameters.strategies) };
    FILES_BASE + FILES_PER_PROCESS * (strategies + 3 + READERS_OF_ALL)
}
