//! Processes of a running pipeline.

use serde::{Deserialize, Serialize};

/// A node of a run, as its master sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeRow {
    pub name: String,
    pub role: String,
    pub pid: u32,
    /// Number of processes under its name, including this one.
    pub epoch: u64,
    /// Its state: joining, running, silent, dead or left.
    pub standing: String,
    /// True if its process exists.
    pub is_there: bool,
    /// Time since it was admitted, ns.
    pub joined_ns: u64,
    /// Records in its stream; `None` without one.
    pub published: Option<u64>,
    /// Number of records that it read.
    pub read: u64,
    /// Number of records that it lost.
    pub lost: u64,
    /// Records delivered to it that it has not read.
    pub waiting: u64,
    /// Time since its last sign of life, ns.
    pub silent_ns: u64,
}
