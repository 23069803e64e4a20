//! What keeps a master from going on.

use crate::{address::Untrusted, control::COMMAND_BYTES_MAX};
use lowlat_ipc::region::RegionError;
use rustix::io::Errno;
use std::io;
use thiserror::Error;

/// Why a master cannot start, or go on.
#[derive(Debug, Error)]
pub enum MasterError {
    /// Another one has the folder.
    #[error("{path}: process {pid} is the master of this run folder; end it, or take another name")]
    Taken {
        /// The folder.
        path: String,
        /// Its process id, as the lock says.
        pid: String,
    },
    /// The run folder cannot be used.
    #[error(transparent)]
    Folder(#[from] Untrusted),
    /// The socket does not work.
    #[error("{path}: cannot {doing}: {source}")]
    Socket {
        /// Its path.
        path: String,
        /// What was attempted.
        doing: &'static str,
        /// What the system said.
        source: Errno,
    },
    /// No memory.
    #[error(transparent)]
    Memory(#[from] RegionError),
    /// No such node.
    #[error("no node {name} has joined; those that have: {known}")]
    NoNode {
        /// The name.
        name: String,
        /// The names that there are.
        known: String,
    },
    /// A process cannot be started.
    #[error("{name}: cannot {doing} ({path}): {source}; name a program that this user can execute")]
    Program {
        /// Its name.
        name: String,
        /// The program.
        path: String,
        /// What was attempted.
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// A command that does not fit a message.
    #[error("a command of {bytes} bytes, {COMMAND_BYTES_MAX} are the most; make it shorter")]
    Command {
        /// Its length.
        bytes: usize,
    },
}
