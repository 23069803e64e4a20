//! Errors of a master.

use crate::{address::Untrusted, control::COMMAND_BYTES_MAX};
use lowlat_ipc::region::RegionError;
use rustix::io::Errno;
use std::io;
use thiserror::Error;

/// Why a master cannot start or continue.
#[derive(Debug, Error)]
pub enum MasterError {
    /// Another master holds the folder.
    #[error("cannot lock run folder {path}: process {pid} is its master\nhint: end it, or use another name")]
    Taken {
        /// The folder.
        path: String,
        /// Its process id, from the lock.
        pid: String,
    },
    /// The run folder cannot be used.
    #[error(transparent)]
    Folder(#[from] Untrusted),
    /// The socket failed.
    #[error("cannot {doing} {path}: {source}")]
    Socket {
        /// Its path.
        path: String,
        /// The attempted operation, a verb that precedes the path.
        doing: &'static str,
        /// The system's error.
        source: Errno,
    },
    /// Shared memory is not available.
    #[error(transparent)]
    Memory(#[from] RegionError),
    /// No such node.
    #[error("no node {name} has joined; joined nodes: {known}")]
    NoNode {
        /// The name.
        name: String,
        /// Known names.
        known: String,
    },
    /// A process cannot be started.
    #[error("cannot {doing} {name} ({path}): {source}{}", program_hint(doing))]
    Program {
        /// Its name.
        name: String,
        /// The program.
        path: String,
        /// The attempted operation, a verb that precedes the name.
        doing: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// A command that is too long for a message.
    #[error("cannot send a command of {bytes} bytes: the maximum is {COMMAND_BYTES_MAX}")]
    Command {
        /// Its length.
        bytes: usize,
    },
}

fn program_hint(doing: &str) -> &'static str {
    if doing.starts_with("start") { "\nhint: name a program that this user can execute" } else { "" }
}
