//! Ticks of a recording of the pipeline: the quotes of md's stream.

use super::{TICKS_MAX, Tick, TickCollector, Ticks, after_ns, doubts};
use crate::wire::in_feed;
use lowlat_journal::read::{JournalRead, Merge, Recording};
use lowlat_node::{
    MD_STREAM, Refusal,
    records::{Quote, SCHEMA, kind},
};
use std::path::Path;

impl Ticks {
    /// Reads the recording in a folder. Its instruments keep their numbers, or are numbered as they first appear.
    pub fn from_recording(path: &Path, keeps_numbers: bool) -> Result<Self, Refusal> {
        let wrong = |reason: &str| {
            Refusal::new(format!(
                "cannot publish the recording {}: {reason}\nhint: name one of lowlat pipeline run --record",
                path.display()
            ))
        };
        let recording = Recording::open(path).map_err(Refusal::of)?;
        let mut merge = Merge::new(&recording, &recording.choose(&[MD_STREAM]).map_err(Refusal::of)?);
        let (mut made, mut payload, mut first_ns) = (TickCollector::default(), Vec::new(), None);
        let (mut missing, mut damaged, mut undecoded, mut is_full) = (0_u64, 0, 0, false);
        while !is_full {
            match merge.next(&mut payload) {
                JournalRead::Record(record) if record.record.stamp.kind == kind::QUOTE => {
                    let stamp = record.record.stamp;
                    let is_known = stamp.schema == SCHEMA;
                    let Some(Ok(quote)) = is_known.then(|| Quote::decode(&payload)) else {
                        undecoded += 1;
                        continue;
                    };
                    let after_ns = after_ns(&made.ticks, &mut first_ns, stamp.generated);
                    let instrument = match stamp.instrument {
                        number if keeps_numbers => made.numbered(number),
                        number => made.instrument(&number.to_string()),
                    };
                    let instrument = instrument.map_err(|fault| wrong(&fault.found))?;
                    made.ticks.push(Tick { after_ns, quote: in_feed(&quote, instrument) });
                    is_full = made.ticks.len() >= TICKS_MAX;
                }
                JournalRead::Record(_) => {}
                JournalRead::Gap(gap) => missing = missing.saturating_add(gap.count()),
                JournalRead::Damaged(_) => damaged += 1,
                JournalRead::Nothing | JournalRead::Ended => break,
            }
        }
        if made.ticks.is_empty() {
            return Err(wrong("its stream md has no quotes"));
        }
        let counted = [
            (missing, "quotes are missing in the recording"),
            (undecoded, "quotes of another version of lowlat were left out"),
            (damaged, "places of the recording are damaged"),
        ];
        let mut doubts = doubts(path, &counted, is_full);
        if recording.is_live() {
            doubts.push(format!("{} is still being recorded; later quotes are left out.", path.display()));
        }
        let symbols = recording.symbols();
        let symbol = |number: String| {
            let at = number.parse().ok();
            at.and_then(|at: usize| symbols.get(at).cloned()).unwrap_or(number)
        };
        Ok(Self {
            list: made.ticks,
            names: made.names.into_iter().map(symbol).collect(),
            first_ns: first_ns.unwrap_or(0),
            doubts,
            ..Self::default()
        })
    }
}
