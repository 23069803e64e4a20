//! Every interruption of a run on disk: spooled in binary while it runs, made into sysjitter's raw files afterwards.
//!
//! The head of a raw file holds totals that are known at the end only, so text can't be written at once. A CPU's
//! spool file `PREFIX.<cpu>.part` holds 16 bytes for each interruption, both numbers little-endian: the counter
//! before it, and its length in ticks.

mod convert;
mod error;
mod spool;

pub use error::RawError;

use super::companion::{Companion, Lane, Started};
use lowlat_model::{CpuId, CpuSet, sysjitter::raw_file_name};
use lowlat_sys::open_files;
use spool::Spool;
use std::{
    ffi::OsString,
    fs::{self, File},
    path::{Path, PathBuf},
};

/// The raw files of a run, one per measured CPU.
#[derive(Debug)]
pub struct RawFiles {
    /// By rising CPU.
    cpus: Vec<CpuFiles>,
}

#[derive(Debug)]
struct CpuFiles {
    cpu: CpuId,
    /// Where the text goes.
    text: PathBuf,
    /// Where the spool is.
    part: PathBuf,
    spool: Spool<File>,
    /// Interruptions that never came: the ring was full.
    ring_lost_count: u64,
}

impl RawFiles {
    /// Creates `PREFIX.<cpu>`, named as sysjitter names them, and `PREFIX.<cpu>.part` for each of the CPUs. Files of
    /// these names are emptied. To be called before the run, so that what can't be written is known by then.
    ///
    /// # Errors
    /// [`RawError`] when one can't be created; then none is left behind.
    pub fn create(prefix: &Path, cpus: &CpuSet) -> Result<Self, RawError> {
        open_files::allow(cpus.len() as u64);
        let mut files = Self { cpus: Vec::with_capacity(cpus.len()) };
        let highest = cpus.highest().unwrap_or(0);
        for cpu in cpus.iter() {
            let mut text = OsString::from(prefix);
            text.push(raw_file_name("", cpu, highest));
            let mut part = text.clone();
            part.push(".part");
            match create(text.into(), part.into(), cpu) {
                Ok(one) => files.cpus.push(one),
                Err(error) => {
                    files.discard();
                    return Err(error);
                }
            }
        }
        Ok(files)
    }

    /// Writes an interruption of the CPU that is at this place among those measured: readings of the counter before
    /// and after it.
    pub fn push(&mut self, place: usize, before: u64, now: u64) {
        if let Some(one) = self.cpus.get_mut(place) {
            one.spool.push(before, now.wrapping_sub(before));
        }
    }

    /// Writes out what is still in buffers and notes what the rings have lost. To be called from
    /// [`Companion::finish`].
    pub fn complete(&mut self, lanes: &[Lane]) {
        for one in &mut self.cpus {
            one.spool.write_out();
            let lane = lanes.iter().find(|lane| lane.cpu == one.cpu);
            one.ring_lost_count = lane.map_or(0, |lane| lane.ring.lost_count());
        }
    }

    /// Removes all of its files: there was no run.
    pub fn discard(self) {
        for one in self.cpus {
            // What can't be removed is left, empty.
            let _ = fs::remove_file(&one.part);
            let _ = fs::remove_file(&one.text);
        }
    }
}

/// Raw files and nothing else beside the samplers.
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

fn create(text: PathBuf, part: PathBuf, cpu: CpuId) -> Result<CpuFiles, RawError> {
    // The text's file is closed again: it is written when the run is over.
    File::create(&text).map_err(|source| RawError::of(&text, source))?;
    let spool = File::options().read(true).write(true).create(true).truncate(true).open(&part);
    match spool {
        Ok(file) => Ok(CpuFiles { cpu, text, part, spool: Spool::new(file), ring_lost_count: 0 }),
        Err(source) => {
            let _ = fs::remove_file(&text);
            Err(RawError::of(&part, source))
        }
    }
}

#[cfg(test)]
mod tests;
