//! What a master is asked for, and what it tells.

use crate::{
    address::RunFolder,
    control::WithoutMaster,
    node::{Figures, Wait},
};
use lowlat_ipc::{region::Access, stream::Owner};
use std::path::PathBuf;

/// What becomes of the records for a reader that died.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DeadReaders {
    /// They are kept for the process that comes after it, as many as its ring and the stream's segment hold.
    #[default]
    Keep,
    /// They are not: the one after it begins with the next record, and is told how many went by.
    Forget,
}

/// Memory beside the streams. Nodes that do not need it are not given it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Area {
    /// Its name.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// The stream whose writer is given it, or the start of the names of several and a star.
    pub streams: String,
    /// What that writer may do with it.
    pub access: Access,
}

/// What a master is asked for.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where it is found.
    pub folder: RunFolder,
    /// Named areas.
    pub areas: Vec<Area>,
    /// Strategies below this number belong to programs that the master starts: another node may not claim them.
    pub strategies_reserved: u32,
    /// Memory that all nodes may share; none: 3/4 of what is available when the master opens. Nodes that the master does not
    /// start may use half of it together, and a quarter each.
    pub memory_bytes_max: Option<u64>,
    /// Whether memory may come from the reserved pool of huge pages.
    pub may_use_huge_pages: bool,
    /// What becomes of the records for a reader that died.
    pub dead_readers: DeadReaders,
    /// What nodes do when the master dies.
    pub without_master: WithoutMaster,
    /// A node that has neither polled nor waited for so long is told of; `None`: never.
    pub silence_ns_max: Option<u64>,
    /// Whether a node that was silent for so long is given up: fenced, and ended when the master started it.
    pub gives_up_silent: bool,
}

impl Options {
    /// The usual, in this folder.
    pub fn new(folder: RunFolder) -> Self {
        Self {
            folder,
            areas: Vec::new(),
            strategies_reserved: 0,
            memory_bytes_max: None,
            may_use_huge_pages: true,
            dead_readers: DeadReaders::default(),
            without_master: WithoutMaster::default(),
            silence_ns_max: Some(5_000_000_000),
            gives_up_silent: false,
        }
    }
}

/// How a node stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It waits for the publishers that it reads.
    Joining,
    /// It runs.
    Running,
    /// It shows no sign of life; its process is stopped (SIGSTOP, a debugger) or busy with something else.
    Silent,
    /// It died, or was given up.
    Dead,
    /// It ended by its own will.
    Left,
}

/// A node as its master sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// Its number.
    pub number: u32,
    /// Its name.
    pub name: String,
    /// Its role.
    pub role: String,
    /// How many processes of that name there were.
    pub epoch: u64,
    /// The process.
    pub owner: Owner,
    /// How it waits.
    pub wait: Wait,
    /// How it stands.
    pub standing: Standing,
    /// What it counted, with those before it of the same name.
    pub figures: Figures,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Happened {
    /// A node joined.
    Joined {
        /// Its name.
        name: String,
        /// How many processes of that name there were.
        epoch: u64,
    },
    /// A process was not taken.
    Refused {
        /// Its name, as far as it said one.
        name: String,
        /// Why.
        reason: String,
    },
    /// A node said something ([`crate::node::Node::say`]).
    Said {
        /// Its name.
        name: String,
        /// Its words.
        text: String,
    },
    /// A node ended by its own will.
    Left {
        /// Its name.
        name: String,
    },
    /// A node died, or was given up.
    Died {
        /// Its name.
        name: String,
        /// How it is known.
        reason: String,
    },
    /// A node shows no sign of life.
    Silent {
        /// Its name.
        name: String,
        /// What is known of it.
        reason: String,
    },
    /// A node that was silent lives.
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
        /// Its exit status; none for one that a signal killed.
        code: Option<i32>,
        /// Where its words are.
        log: PathBuf,
        /// It failed, and was not to end.
        is_failure: bool,
    },
    /// The master cannot do what it is asked at the moment, and goes on.
    Strained {
        /// What it lacks.
        reason: String,
    },
    /// A process is not started again.
    GivenUp {
        /// Its name.
        name: String,
        /// Why.
        reason: String,
    },
}
