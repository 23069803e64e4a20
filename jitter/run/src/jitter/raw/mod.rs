//! Writes every interruption of a run to disk: spooled in binary during the run, converted to sysjitter's raw
//! files afterwards.
//!
//! The head of a raw file contains totals that are known only at the end, so text cannot be written during the
//! run. A CPU's spool file `PREFIX.<cpu>.part` contains 16 bytes per interruption, two little-endian numbers:
//! the counter before it, and its length in ticks.

mod convert;
mod spool;

use super::collector::{Companion, Lane, Started};
use lowlat_host::{CpuId, CpuSet};
use lowlat_host_run::{
    open_files,
    output::{FileAccess, OutputCause, OutputDirectory, OutputError, OutputFile},
};
use lowlat_jitter::sysjitter::raw_file_name;
use spool::Spool;
use std::{
    ffi::OsString,
    fs::File,
    path::{Path, PathBuf},
};
use thiserror::Error;

const NAME_A_PREFIX: &str = "name a prefix in an existing directory that you can write to";

/// Error that prevents writing raw files, found before the run.
#[derive(Debug, Error)]
pub enum RawError {
    /// A file cannot be created; the system's error has the path.
    #[error("{source}\nhint: {}", source.hint().unwrap_or_else(|| NAME_A_PREFIX.into()))]
    Create { source: OutputError },
    /// One file per CPU exceeds the limit on open files.
    #[error(
        "cannot create the raw file {}: {source}\nhint: raise the limit on open files (ulimit -n) or measure fewer \
         CPUs; each needs one",
        path.display()
    )]
    TooManyFiles { path: PathBuf, source: OutputCause },
}

impl RawError {
    fn of(source: OutputError) -> Self {
        match source {
            OutputError { path, cause: OutputCause::Io(error) }
                if error.raw_os_error() == Some(libc::EMFILE) =>
            {
                Self::TooManyFiles { path, source: OutputCause::Io(error) }
            }
            source => Self::Create { source },
        }
    }
}

/// The raw files of a run, one per measured CPU.
#[derive(Debug)]
pub struct RawFiles {
    /// In order of CPU.
    cpus: Vec<CpuFiles>,
}

#[derive(Debug)]
struct CpuFiles {
    cpu: CpuId,
    /// The text file, written after the run.
    text: OutputFile,
    /// The spool file, `PREFIX.<cpu>.part`.
    part: OutputFile,
    spool: Spool<File>,
    /// Interruptions lost because the ring was full.
    ring_lost_count: u64,
}

impl RawFiles {
    /// Creates `PREFIX.<cpu>.part` for each of the CPUs, and checks that `PREFIX.<cpu>`, named like sysjitter's
    /// files, can be written. To be called before the run, to find errors early.
    ///
    /// # Errors
    /// [`RawError`] if one cannot be created; none is left behind then.
    pub fn create(prefix: &Path, cpus: &CpuSet) -> Result<Self, RawError> {
        open_files::allow(cpus.len() as u64);
        let mut files = Self { cpus: Vec::with_capacity(cpus.len()) };
        let highest = cpus.highest().unwrap_or(0);
        let above = prefix.parent().unwrap_or(Path::new(""));
        let dir = OutputDirectory::open(above).map_err(|error| {
            // The first file reveals more than its directory.
            let mut path = OsString::from(prefix);
            path.push(raw_file_name("", cpus.iter().next().unwrap_or(0), highest));
            RawError::of(OutputError { path: path.into(), ..error })
        })?;
        for cpu in cpus.iter() {
            let mut text = OsString::from(prefix.file_name().unwrap_or_default());
            text.push(raw_file_name("", cpu, highest));
            let mut part = text.clone();
            part.push(".part");
            match create(dir.file(&text, FileAccess::Shared), dir.file(&part, FileAccess::Shared), cpu) {
                Ok(one) => files.cpus.push(one),
                Err(error) => {
                    files.discard();
                    return Err(error);
                }
            }
        }
        Ok(files)
    }

    /// Writes an interruption of the CPU at this index among those measured: readings of the counter before and
    /// after it.
    pub fn push(&mut self, place: usize, before: u64, now: u64) {
        if let Some(one) = self.cpus.get_mut(place) {
            one.spool.push(before, now.wrapping_sub(before));
        }
    }

    /// Flushes buffers and notes what the rings have lost. To be called from [`Companion::finish`].
    pub fn complete(&mut self, lanes: &[Lane]) {
        for one in &mut self.cpus {
            one.spool.write_out();
            let lane = lanes.iter().find(|lane| lane.cpu == one.cpu);
            one.ring_lost_count = lane.map_or(0, |lane| lane.ring.lost_count());
        }
    }

    /// Removes its spools: there was no run.
    pub fn discard(self) {
        for one in self.cpus {
            // A file that cannot be removed is left behind, empty.
            let _ = one.part.remove();
        }
    }
}

/// A companion that only writes raw files.
impl Companion for RawFiles {
    fn start(&mut self, _: &Started, _: &[Lane]) {}

    fn collect(&mut self, _: u64, lanes: &mut [Lane]) {
        for (place, lane) in lanes.iter_mut().enumerate() {
            lane.ring.drain(|before, now| self.push(place, before, now));
        }
    }

    fn finish(&mut self, lanes: &[Lane]) {
        self.complete(lanes);
    }
}

fn create(text: OutputFile, part: OutputFile, cpu: CpuId) -> Result<CpuFiles, RawError> {
    // The text is written after the run.
    text.check().map_err(RawError::of)?;
    let spool = Spool::new(part.create_in_place().map_err(RawError::of)?);
    Ok(CpuFiles { cpu, text, part, spool, ring_lost_count: 0 })
}

#[cfg(test)]
mod tests;
