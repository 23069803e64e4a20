//! The kinds of things that steps change.

use super::{HostError, State, TargetSpec, Writer, state};
use std::fmt;

/// One kind of thing that can be changed and changed back: the log calls it for every step of its kind.
///
/// An implementation gives its states as [`State::Value`] or [`State::Absent`] where it has no files.
pub trait Target: fmt::Debug {
    /// Its name in the log. Never change it: old logs have it.
    fn kind(&self) -> &'static str;

    /// What is there now.
    fn read(&self, writer: &Writer, spec: &TargetSpec) -> Result<State, HostError>;

    /// Makes it `to`, durably, as a whole or not at all. Doing it twice must do no harm.
    fn write(&self, writer: &Writer, spec: &TargetSpec, to: &State) -> Result<(), HostError>;

    /// Whether what it changes stays changed when the host is started again. What does not is forgotten by
    /// [`UndoLog::expire`](super::UndoLog::expire) in the next boot: the number of an interrupt or of a thread means
    /// another one then.
    fn outlives_boot(&self, _spec: &TargetSpec) -> bool {
        true
    }

    /// A name that is the same for every way to name the same thing.
    fn identity(&self, _writer: &Writer, spec: &TargetSpec) -> Result<String, HostError> {
        Ok(spec.name.clone())
    }

    /// Removes what an interrupted `write` may have left.
    fn clear(&self, _writer: &Writer, _spec: &TargetSpec) -> Result<(), HostError> {
        Ok(())
    }

    /// Removes what an interrupted `write` may have left, and makes the present state durable.
    fn settle(&self, _writer: &Writer, _spec: &TargetSpec) -> Result<(), HostError> {
        Ok(())
    }

    /// Directories that a write of something new will make, outermost first. They are removed again by the log.
    fn missing_directories(&self, _writer: &Writer, _spec: &TargetSpec) -> Result<Vec<String>, HostError> {
        Ok(Vec::new())
    }
}

/// Attributes of the kernel.
#[derive(Debug)]
pub(super) struct ValueFiles;

impl Target for ValueFiles {
    fn kind(&self) -> &'static str {
        "value"
    }

    fn read(&self, writer: &Writer, spec: &TargetSpec) -> Result<State, HostError> {
        writer.read_value(&spec.name)
    }

    fn write(&self, writer: &Writer, spec: &TargetSpec, to: &State) -> Result<(), HostError> {
        let State::Value(text) = to else {
            return Err(HostError::State { path: spec.name.clone(), kind: "value", wanted: to.to_string() });
        };
        if spec.comparison == super::Comparison::Choice {
            writer.write_choice(&spec.name, state::chosen(text))
        } else {
            writer.write_value(&spec.name, text)
        }
    }

    fn outlives_boot(&self, _spec: &TargetSpec) -> bool {
        false
    }

    fn identity(&self, writer: &Writer, spec: &TargetSpec) -> Result<String, HostError> {
        Ok(writer.find(&spec.name, true)?.real)
    }

    fn clear(&self, writer: &Writer, spec: &TargetSpec) -> Result<(), HostError> {
        writer.clear(&spec.name, true)
    }

    fn settle(&self, writer: &Writer, spec: &TargetSpec) -> Result<(), HostError> {
        self.clear(writer, spec)
    }
}

/// Regular files, links, and their absence.
#[derive(Debug)]
pub(super) struct Files;

impl Target for Files {
    fn kind(&self) -> &'static str {
        "file"
    }

    fn read(&self, writer: &Writer, spec: &TargetSpec) -> Result<State, HostError> {
        writer.read_file(&spec.name)
    }

    fn write(&self, writer: &Writer, spec: &TargetSpec, to: &State) -> Result<(), HostError> {
        writer.write_file(&spec.name, to)
    }

    fn identity(&self, writer: &Writer, spec: &TargetSpec) -> Result<String, HostError> {
        Ok(writer.find(&spec.name, false)?.real)
    }

    fn clear(&self, writer: &Writer, spec: &TargetSpec) -> Result<(), HostError> {
        writer.clear(&spec.name, false)
    }

    fn settle(&self, writer: &Writer, spec: &TargetSpec) -> Result<(), HostError> {
        writer.settle(&spec.name)
    }

    fn missing_directories(&self, writer: &Writer, spec: &TargetSpec) -> Result<Vec<String>, HostError> {
        writer.missing_directories(&spec.name)
    }
}
