//! Memory and files of a run.

use crate::pipeline::PipelineParameters;

/// Largest page that pieces of memory are rounded up to when the pool gives them.
const HUGE_PAGE_BYTES: u64 = 2 << 20;
const PAGE_BYTES: u64 = 4096;
/// What an ordinary process needs beside the shared memory: its own pages, stacks, page tables.
const PROCESS_BYTES: u64 = 3 << 20;
/// Descriptors of a process that is none of a stream: standard ones, sockets, timers.
const FILES_BASE: u64 = 32;
/// Descriptors that master holds of each process: its socket, its pidfd, its stream, the stream's table of interest, its
/// inbox, and a ring for each stream that it reads.
const FILES_PER_PROCESS: u64 = 8;

/// Bytes of the parts of a run's memory.
///
/// ```text
/// total = md + td + strategies × (stream + inbox + rings) + tables + stages + processes × 3 MiB
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// Shared memory, which is locked: streams, inboxes, rings, tables of interest, histograms.
    pub shared_bytes: u64,
    /// What the processes need of their own.
    pub private_bytes: u64,
}

impl Memory {
    /// Capacity of md's and of td's stream.
    pub const PLATFORM_STREAM_BYTES: u64 = 16 << 20;
    /// Capacity of a strategy's stream of orders.
    pub const ORDERS_STREAM_BYTES: u64 = 256 << 10;
    /// An inbox and the rings of one subscriber, a ring for each stream that it reads.
    pub const SUBSCRIBER_BYTES: u64 = 64 << 10;
    /// A table of interest: a row of 128 bytes an instrument, or a strategy.
    pub const TABLE_BYTES: u64 = 1026 * 128;
    /// The histograms of the stages and other areas.
    pub const AREAS_BYTES: u64 = 2 << 20;

    /// What a run takes. With huge pages every piece takes whole ones.
    pub fn of(parameters: &PipelineParameters) -> Self {
        let page = if parameters.may_use_huge_pages { HUGE_PAGE_BYTES } else { PAGE_BYTES };
        let piece = |bytes: u64| (bytes + PAGE_BYTES).next_multiple_of(page);
        let streams = if parameters.host_core.is_some() { 1 } else { u64::from(parameters.strategies) };
        // A host's stream carries the orders of all its strategies.
        let orders = if parameters.host_core.is_some() {
            piece(Self::PLATFORM_STREAM_BYTES)
        } else {
            streams * piece(Self::ORDERS_STREAM_BYTES)
        };
        // md, td and cached subscribe too.
        let subscribers = streams + 3;
        Self {
            shared_bytes: 2 * piece(Self::PLATFORM_STREAM_BYTES)
                + orders
                + subscribers * piece(Self::SUBSCRIBER_BYTES)
                // td reads every stream of orders through a ring of its own.
                + streams * piece(Self::SUBSCRIBER_BYTES)
                + 2 * piece(Self::TABLE_BYTES)
                + piece(Self::AREAS_BYTES),
            private_bytes: (streams + 4) * PROCESS_BYTES,
        }
    }

    /// All of it.
    pub fn total_bytes(&self) -> u64 {
        self.shared_bytes + self.private_bytes
    }

    /// Pages of 2 MiB that its shared part takes of the pool.
    pub fn huge_pages(&self) -> u64 {
        self.shared_bytes.div_ceil(HUGE_PAGE_BYTES)
    }
}

/// Files that the process with the most of them, master, has open.
pub fn files_needed(parameters: &PipelineParameters) -> u64 {
    let strategies = if parameters.host_core.is_some() { 1 } else { u64::from(parameters.strategies) };
    FILES_BASE + FILES_PER_PROCESS * (strategies + 4)
}
