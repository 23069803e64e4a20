//! Options of a master, and its events.

use lowlat_ipc::{region::Access, stream::Owner};
use lowlat_node::{Figures, Wait, address::RunFolder, clock::Pace, control::WithoutMaster};

/// Memory beside the streams. Only nodes that need it get it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Area {
    pub name: String,
    pub bytes: u64,
    /// The stream whose writer gets it, or a prefix of stream names and a star.
    pub streams: String,
    /// That writer's access to it.
    pub access: Access,
    /// The stream whose writer may read it, or a prefix of stream names and a star; empty: none.
    pub readers: String,
}

#[derive(Debug, Clone)]
pub struct Options {
    pub folder: RunFolder,
    pub areas: Vec<Area>,
    /// Group whose members may join, by its id; `None`: only this user and root.
    pub group: Option<u32>,
    /// Strategies below this number belong to programs that the master starts: other nodes may not claim them.
    pub strategies_reserved: u32,
    /// Memory that all nodes may share; `None`: 3/4 of the memory available when the master opens. Nodes that
    /// the master does not start may use half of it together, and a quarter each.
    pub memory_bytes_max: Option<u64>,
    /// Memory may come from the reserved pool of huge pages.
    pub may_use_huge_pages: bool,
    /// Clock of a run over a recording: how its time passes, and from when, ns; `None`: CLOCK_MONOTONIC.
    pub clock: Option<(Pace, u64)>,
    /// Action of nodes when the master dies.
    pub without_master: WithoutMaster,
    /// A node that has neither polled nor waited for this long is reported.
    pub silence_ns_max: u64,
}

impl Options {
    pub fn new(folder: RunFolder) -> Self {
        Self {
            folder,
            areas: Vec::new(),
            group: None,
            strategies_reserved: 0,
            memory_bytes_max: None,
            may_use_huge_pages: true,
            clock: None,
            without_master: WithoutMaster::default(),
            silence_ns_max: 5_000_000_000,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It waits for the publishers of its streams.
    Joining,
    Running,
    /// It is silent; its process is stopped (SIGSTOP, a debugger) or busy.
    Silent,
    /// It died or was dropped.
    Dead,
    Left,
}

impl Standing {
    pub fn word(self) -> &'static str {
        match self {
            Self::Joining => "joining",
            Self::Running => "running",
            Self::Silent => "silent",
            Self::Dead => "dead",
            Self::Left => "left",
        }
    }

    /// True if its process exists.
    pub fn is_there(self) -> bool {
        matches!(self, Self::Joining | Self::Running | Self::Silent)
    }
}

/// A node as seen by its master.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeStatus {
    pub number: u32,
    pub name: String,
    pub role: String,
    /// Number of processes under that name.
    pub epoch: u64,
    pub owner: Owner,
    pub wait: Wait,
    pub standing: Standing,
    /// Its counters, including earlier processes under the same name.
    pub figures: Figures,
    /// Its stream is one of orders.
    pub is_sender: bool,
}

/// Events of a master, for its caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Happened {
    Joined {
        name: String,
        /// Number of processes under that name.
        epoch: u64,
    },
    Refused {
        /// Its name, as far as it gave one.
        name: String,
        reason: String,
    },
    /// A node sent a message ([`lowlat_node::Node::say`]).
    Said {
        name: String,
        text: String,
    },
    /// The run's user asked for its end.
    AskedToStop,
    Left {
        name: String,
    },
    /// A node died or was dropped.
    Died {
        name: String,
        /// Such as "its process ended" or "dropped on request".
        reason: String,
    },
    Silent {
        name: String,
        /// The likely cause of its silence.
        reason: String,
    },
    /// A silent node is active again.
    Back {
        name: String,
    },
    /// The master started a process.
    Started {
        name: String,
        pid: u32,
    },
    /// A process that the master started has ended.
    Ended {
        name: String,
        /// Exit status, such as "exit status: 1", or the signal that killed it.
        reason: String,
        /// Its exit status; `None` if a signal killed it.
        code: Option<i32>,
        /// It failed and should not have ended.
        is_failure: bool,
    },
    /// The master is short of a resource, and continues.
    Strained {
        reason: String,
    },
    /// A process is not restarted.
    Abandoned {
        name: String,
        reason: String,
    },
}
