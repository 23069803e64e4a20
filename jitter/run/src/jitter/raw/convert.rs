//! Converts spools to sysjitter's raw files.

use super::{
    CpuFiles, RawFiles,
    spool::{RECORD_BYTES, decode},
};
use crate::clock::{TickScale, ticks_between};
use lowlat_host::CpuSet;
use lowlat_host_run::output::{OutputError, OutputFile};
use lowlat_jitter::{
    JitterRecord, Warning,
    sysjitter::{RawHead, RawRow, raw_header, raw_row},
};
use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write},
};

/// Bytes read or written at once.
const BLOCK_BYTES: usize = 64 << 10;

/// Losses by cause: the CPUs, and the number of interruptions lost.
type Losses = BTreeMap<String, (CpuSet, u64)>;

impl RawFiles {
    /// Converts the spools to sysjitter's raw files and removes them. To be called after the run, with its
    /// record. Returns a warning for the record per problem. A spool whose text cannot be written is kept.
    #[must_use]
    pub fn convert(self, record: &JitterRecord) -> Vec<Warning> {
        let (mut rings, mut stops, mut warnings) = (Losses::new(), Losses::new(), Vec::new());
        for one in self.cpus {
            if one.ring_lost_count > 0 {
                note(&mut rings, "", &one, one.ring_lost_count);
            }
            if let Some(why) = &one.spool.stopped {
                note(&mut stops, why, &one, one.spool.lost_count);
            }
            warnings.extend(one.convert(record));
        }
        warnings.extend(rings.into_values().map(|(cpus, lost_count)| Warning::RawLost { cpus, lost_count }));
        warnings.extend(stops.into_iter().map(|(error, (cpus, lost_count))| Warning::RawEndsEarly {
            cpus,
            error,
            lost_count,
        }));
        warnings
    }
}

fn note(losses: &mut Losses, why: &str, one: &CpuFiles, lost: u64) {
    let (cpus, sum) = losses.entry(why.to_owned()).or_default();
    cpus.insert(one.cpu);
    *sum += lost;
}

impl CpuFiles {
    fn convert(self, record: &JitterRecord) -> Option<Warning> {
        let measured = record.cpus.iter().find(|cpu| cpu.cpu == self.cpu);
        let runtime_ticks = measured.and_then(|cpu| ticks_between(cpu.start_ticks, cpu.stop_ticks));
        let head = RawHead {
            counter_hz: record.counter_hz,
            threshold_ns: record.threshold_ns,
            interruption_count: self.spool.count,
            interruption_ticks: self.spool.ticks_total,
            runtime_ticks: runtime_ticks.unwrap_or(0),
        };
        let scale = TickScale::new(record.counter_hz);
        match write_text(&self.text, &head, record.start_ticks, scale, self.spool.sink) {
            Ok(()) => {
                // If it cannot be removed, it is just a leftover.
                let _ = self.part.remove();
                None
            }
            Err(error) => Some(Warning::RawNotWritten {
                path: self.text.path().display().to_string(),
                error: error.to_string(),
                count: head.interruption_count,
                spool: self.part.path().display().to_string(),
            }),
        }
    }
}

fn write_text(
    file: &OutputFile,
    head: &RawHead,
    epoch: u64,
    scale: TickScale,
    mut spool: File,
) -> io::Result<()> {
    let unfinished = file.create().map_err(OutputError::into_io)?;
    spool.seek(SeekFrom::Start(0))?;
    let mut spool = BufReader::with_capacity(BLOCK_BYTES, spool);
    let mut text = BufWriter::with_capacity(BLOCK_BYTES, unfinished);
    text.write_all(raw_header(head).as_bytes())?;
    let mut previous_end_ns = None;
    for _ in 0..head.interruption_count {
        let mut record = [0; RECORD_BYTES];
        spool.read_exact(&mut record)?;
        let (before, length) = decode(&record);
        // Counters of different CPUs may differ slightly; times before the epoch are set to it.
        let end_ns = scale.ns(ticks_between(epoch, before.wrapping_add(length)).unwrap_or(0));
        let row = RawRow::timed(end_ns, previous_end_ns, length, scale.ns(length));
        text.write_all(raw_row(&row).as_bytes())?;
        previous_end_ns = Some(end_ns);
    }
    let unfinished = text.into_inner().map_err(io::IntoInnerError::into_error)?;
    unfinished.finish().map_err(OutputError::into_io)
}
