//! Options of a master, and its events.

use crate::{
    address::RunFolder,
    control::WithoutMaster,
    node::{Figures, Wait},
};
use lowlat_ipc::{region::Access, stream::Owner};

/// Memory beside the streams. Only nodes that need it get it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Area {
    /// Its name.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// The stream whose writer gets it, or a prefix of stream names and a star.
    pub streams: String,
    /// That writer's access to it.
    pub access: Access,
}

/// Options of a master.
#[derive(Debug, Clone)]
pub struct Options {
    /// Its run folder.
    pub folder: RunFolder,
    /// Named areas.
    pub areas: Vec<Area>,
    /// Strategies below this number belong to programs that the master starts: other nodes may not claim them.
    pub strategies_reserved: u32,
    /// Memory that all nodes may share; `None`: 3/4 of the memory available when the master opens. Nodes that
    /// the master does not start may use half of it together, and a quarter each.
    pub memory_bytes_max: Option<u64>,
    /// Whether memory may come from the reserved pool of huge pages.
    pub may_use_huge_pages: bool,
    /// What nodes do when the master dies.
    pub without_master: WithoutMaster,
    /// A node that has neither polled nor waited for this long is reported.
    pub silence_ns_max: u64,
}

impl Options {
    /// Defaults, with this folder.
    pub fn new(folder: RunFolder) -> Self {
        Self {
            folder,
            areas: Vec::new(),
            strategies_reserved: 0,
            memory_bytes_max: None,
            may_use_huge_pages: true,
            without_master: WithoutMaster::default(),
            silence_ns_max: 5_000_000_000,
        }
    }
}

/// State of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It waits for the publishers of its streams.
    Joining,
    /// It runs.
    Running,
    /// It is silent; its process is stopped (SIGSTOP, a debugger) or busy.
    Silent,
    /// It died or was dropped.
    Dead,
    /// It left.
    Left,
}

impl Standing {
    /// As a word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Joining => "joining",
            Self::Running => "running",
            Self::Silent => "silent",
            Self::Dead => "dead",
            Self::Left => "left",
        }
    }

    /// Whether the process is there.
    pub fn is_there(self) -> bool {
        matches!(self, Self::Joining | Self::Running | Self::Silent)
    }
}

/// A node as seen by its master.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// Its number.
    pub number: u32,
    /// Its name.
    pub name: String,
    /// Its role.
    pub role: String,
    /// Number of processes under that name.
    pub epoch: u64,
    /// The process.
    pub owner: Owner,
    /// How it waits.
    pub wait: Wait,
    /// Its state.
    pub standing: Standing,
    /// Its counters, including earlier processes under the same name.
    pub figures: Figures,
    /// Whether its stream is one of orders.
    pub is_sender: bool,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Happened {
    /// A node joined.
    Joined {
        /// Its name.
        name: String,
        /// Number of processes under that name.
        epoch: u64,
    },
    /// A process was refused.
    Refused {
        /// Its name, as far as it gave one.
        name: String,
        /// The reason.
        reason: String,
    },
    /// A node sent a message ([`crate::node::Node::say`]).
    Said {
        /// Its name.
        name: String,
        /// The text.
        text: String,
    },
    /// The run's user asked for its end.
    AskedToStop,
    /// A node left.
    Left {
        /// Its name.
        name: String,
    },
    /// A node died or was dropped.
    Died {
        /// Its name.
        name: String,
        /// How that was detected.
        reason: String,
    },
    /// A node is silent.
    Silent {
        /// Its name.
        name: String,
        /// The likely cause.
        reason: String,
    },
    /// A silent node is active again.
    Back {
        /// Its name.
        name: String,
    },
    /// A process was started.
    Started {
        /// Its name.
        name: String,
        /// Its process id.
        pid: u32,
    },
    /// A started process ended.
    Ended {
        /// Its name.
        name: String,
        /// How: "exit status: 1", or the signal that killed it.
        reason: String,
        /// Its exit status; `None` if a signal killed it.
        code: Option<i32>,
        /// Whether it failed and should not have ended.
        is_failure: bool,
    },
    /// The master is short of a resource, and continues.
    Strained {
        /// What it lacks.
        reason: String,
    },
    /// A process is not restarted.
    Abandoned {
        /// Its name.
        name: String,
        /// Why.
        reason: String,
    },
}
