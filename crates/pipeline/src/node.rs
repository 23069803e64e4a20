//! Processes of a run that goes on.

use serde::{Deserialize, Serialize};

/// A node of a run, as its master sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeRow {
    /// Its name.
    pub name: String,
    /// Its role.
    pub role: String,
    /// Its process.
    pub pid: u32,
    /// Number of processes under its name, including this one.
    pub epoch: u64,
    /// Its state: joining, running, silent, dead or left.
    pub standing: String,
    /// Whether its process is there.
    pub is_there: bool,
    /// Time since it was admitted, ns.
    pub joined_ns: u64,
    /// Records in its stream; `None` without one.
    pub published: Option<u64>,
    /// Records that it read.
    pub read: u64,
    /// Records that it lost.
    pub lost: u64,
    /// Records delivered to it that it has not read.
    pub waiting: u64,
    /// Time since its last sign of life, ns.
    pub silent_ns: u64,
}
