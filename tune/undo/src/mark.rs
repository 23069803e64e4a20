//! A mark of the log's end, stored elsewhere, which shows whether records have since gone missing.

use super::{
    Inspection, UndoLog,
    record::Event,
    store::{hex, unhex},
};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use thiserror::Error;

/// The end of a log at some time: the number of records so far, and a digest of them.
///
/// The log may be longer by now, because records are appended before the mark is updated. It must not be
/// shorter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogMark {
    /// Number of the last record, counted over compactions; 0 for an empty log.
    pub sequence: u64,
    /// Chained digest of all records up to that one: SHA-256 of the digest before and the record's bytes, in
    /// hexadecimal.
    pub digest: String,
}

/// Difference between a log and a mark of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum LogMismatch {
    /// There is no record at all.
    /// - `expected`: records that the mark counts.
    #[error("all {expected} records are missing")]
    Missing { expected: u64 },
    /// Records are missing at the end.
    /// - `found`: number of records in the log.
    /// - `expected`: records that the mark counts.
    #[error("it has {found} of {expected} records")]
    Shorter { found: u64, expected: u64 },
    /// `expected`: records that the mark counts.
    #[error("its first {expected} records are not the ones that lowlat wrote")]
    Different { expected: u64 },
}

/// The digest after every record of a log.
#[derive(Debug, Clone)]
pub(super) struct Chain {
    /// Sequence number at which the log was compacted; 0 if it never was.
    base: u64,
    /// The digest at the base, then the one after each record.
    points: Vec<[u8; 32]>,
}

impl Default for Chain {
    fn default() -> Self {
        Self { base: 0, points: vec![[0; 32]] }
    }
}

impl Chain {
    /// Adds one record and its bytes.
    pub(super) fn push(&mut self, event: &Event, bytes: &[u8]) {
        if let Event::Compacted { sequence, digest } = event
            && let Some(digest) = unhex(digest).and_then(|bytes| bytes.try_into().ok())
        {
            (self.base, self.points) = (*sequence, vec![digest]);
            return;
        }
        let before = self.points.last().copied().unwrap_or_default();
        self.points.push(Sha256::new().chain_update(before).chain_update(bytes).finalize().into());
    }

    /// The number of the last record.
    fn sequence(&self) -> u64 {
        self.base + u64::try_from(self.points.len()).unwrap_or(u64::MAX).saturating_sub(1)
    }

    /// A mark of the end.
    pub(super) fn mark(&self) -> LogMark {
        let digest = self.points.last().copied().unwrap_or_default();
        LogMark { sequence: self.sequence(), digest: hex(&digest) }
    }

    fn compare(&self, mark: &LogMark) -> Result<(), LogMismatch> {
        let (found, expected) = (self.sequence(), mark.sequence);
        if found < expected {
            return Err(match found {
                0 => LogMismatch::Missing { expected },
                _ => LogMismatch::Shorter { found, expected },
            });
        }
        let at = expected.checked_sub(self.base).and_then(|at| usize::try_from(at).ok());
        let point = at.and_then(|at| self.points.get(at));
        match point.filter(|point| hex(*point) == mark.digest) {
            Some(_) => Ok(()),
            None => Err(LogMismatch::Different { expected }),
        }
    }
}

impl UndoLog {
    /// A mark of the log's end.
    pub fn mark(&self) -> LogMark {
        self.scan.chain.mark()
    }
}

impl Inspection {
    /// Checks that the log still has every record that a mark counts.
    ///
    /// # Errors
    /// What is missing or different.
    pub fn compare(&self, mark: &LogMark) -> Result<(), LogMismatch> {
        self.chain.compare(mark)
    }
}
