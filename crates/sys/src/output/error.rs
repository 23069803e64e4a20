//! Why a file was not written.

use std::{fmt, io, path::PathBuf};

/// Why a file was not written.
#[derive(Debug)]
pub struct OutputError {
    /// The file or directory, as it was given.
    pub path: PathBuf,
    /// What happened.
    pub cause: OutputCause,
}

/// What kept a file from being written.
#[derive(Debug)]
pub enum OutputCause {
    /// The system's answer.
    Io(io::Error),
    /// The name is taken, and nothing is to be replaced.
    Taken,
    /// The path ends in no name.
    NoName,
    /// The name is a link.
    Link {
        /// Where it leads.
        to: String,
    },
    /// A directory on the way is a link of another user, and leads to a directory that is not this user's.
    ForeignLink {
        /// The link's name.
        name: String,
        /// Where it leads.
        to: String,
        /// Its owner.
        owner: u32,
    },
    /// The name is neither a file nor a pipe nor a character device.
    NotAFile,
}

impl OutputError {
    /// Whether the name was not free.
    pub fn is_taken(&self) -> bool {
        matches!(self.cause, OutputCause::Taken)
    }

    /// The system's answer, if that was the cause.
    pub fn into_io(self) -> io::Error {
        match self.cause {
            OutputCause::Io(error) => error,
            cause => io::Error::other(cause.to_string()),
        }
    }

    /// What the user can do, where the cause itself shows it.
    pub fn hint(&self) -> Option<String> {
        match &self.cause {
            OutputCause::Link { to } => Some(format!("name {to} itself, or remove the link")),
            OutputCause::ForeignLink { .. } => Some("name the directory without the link".into()),
            OutputCause::NoName => Some("name a file, not a directory".into()),
            OutputCause::Taken => Some("name another file, or remove this one".into()),
            OutputCause::Io(_) | OutputCause::NotAFile => None,
        }
    }
}

impl fmt::Display for OutputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot write {}: {}", self.path.display(), self.cause)
    }
}

impl fmt::Display for OutputCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::Taken => f.write_str("the file exists"),
            Self::NoName => f.write_str("the path has no file name"),
            Self::Link { to } => write!(f, "it is a link to {to}, and lowlat does not write through links"),
            Self::ForeignLink { name, to, owner } => {
                write!(
                    f,
                    "\"{name}\" on the way is a link of user {owner} to {to}, where another user owns the files"
                )
            }
            Self::NotAFile => f.write_str("it is neither a file nor a pipe nor a character device"),
        }
    }
}

impl std::error::Error for OutputError {}

impl std::error::Error for OutputCause {}
