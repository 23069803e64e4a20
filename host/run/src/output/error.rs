//! Errors of writing an output file.

use std::{io, path::PathBuf};

/// Error of writing an output file.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {cause}", .path.display())]
pub struct OutputError {
    /// The file or directory, as the user gave it.
    pub path: PathBuf,
    pub cause: OutputCause,
}

/// Cause of a failed write.
#[derive(Debug, thiserror::Error)]
pub enum OutputCause {
    #[error("{0}")]
    Io(io::Error),
    /// The name is taken, and replacing is not allowed.
    #[error("the file exists")]
    Taken,
    /// The path ends in no name.
    #[error("the path has no file name")]
    NoName,
    /// The name is a link.
    #[error("it is a link to {to}, and lowlat does not write through links")]
    Link { to: String },
    /// A directory in the path is a link of another user that leads to a directory of a third user.
    /// - `owner`: user ID of the link's owner.
    #[error("\"{name}\" in the path is a link of user {owner} to {to}, where another user owns the files")]
    ForeignLink { name: String, to: String, owner: u32 },
    /// The name is not a file, a pipe or a character device.
    #[error("it is not a file, a pipe or a character device")]
    NotAFile,
}

impl OutputError {
    pub fn is_taken(&self) -> bool {
        matches!(self.cause, OutputCause::Taken)
    }

    /// The system's error, if that was the cause.
    pub fn into_io(self) -> io::Error {
        match self.cause {
            OutputCause::Io(error) => error,
            cause => io::Error::other(cause.to_string()),
        }
    }

    /// Suggests what the user can do, if the cause itself shows it.
    pub fn hint(&self) -> Option<String> {
        match &self.cause {
            OutputCause::Link { to } => Some(format!("use {to} itself, or remove the link")),
            OutputCause::ForeignLink { .. } => Some("use a path without the link".into()),
            OutputCause::NoName => Some("name a file, not a directory".into()),
            OutputCause::Taken => Some("choose another file name, or remove this file".into()),
            OutputCause::Io(_) | OutputCause::NotAFile => None,
        }
    }
}
