//! Ticks of a recording of the pipeline: the quotes of md's stream.

use super::{Maker, TICKS_MAX, Tick, Ticks, TicksError};
use crate::{
    records::{Quote, kind},
    roles::MD_STREAM,
};
use lowlat_journal::read::{Merge, Read, Recording};
use std::path::Path;

impl Ticks {
    /// Reads the recording in a folder. Its instruments are named by their numbers.
    pub fn from_recording(path: &Path) -> Result<Self, TicksError> {
        let wrong = |reason: String| TicksError::Recording { path: path.to_owned(), reason };
        let recording = Recording::open(path)?;
        let mut merge = Merge::new(&recording, &recording.choose(&[MD_STREAM])?);
        let (mut made, mut payload, mut first_ns) = (Maker::default(), Vec::new(), None);
        let (mut missing, mut damaged, mut is_full) = (0, 0, false);
        while !is_full {
            match merge.next(&mut payload) {
                Read::Record(record) if record.record.stamp.kind == kind::QUOTE => {
                    let Ok(quote) = Quote::decode(&payload) else {
                        damaged += 1;
                        continue;
                    };
                    let stamp = record.record.stamp;
                    let after_ns = stamp.generated.saturating_sub(*first_ns.get_or_insert(stamp.generated));
                    let Quote { bid, ask, last, bid_size, ask_size, .. } = quote;
                    let instrument =
                        made.instrument(&stamp.instrument.to_string()).map_err(|fault| wrong(fault.found))?;
                    made.ticks.push(Tick { after_ns, instrument, bid, ask, last, bid_size, ask_size });
                    is_full = made.ticks.len() >= TICKS_MAX;
                }
                Read::Record(_) => {}
                Read::Gap(gap) => missing += gap.count(),
                Read::Damaged(_) => damaged += 1,
                Read::Nothing | Read::Ended => break,
            }
        }
        if made.ticks.is_empty() {
            return Err(wrong("its stream md has no quotes".to_owned()));
        }
        let doubts = [
            (missing, "quotes are missing in the recording"),
            (damaged, "places of the recording are damaged"),
            (u64::from(is_full), "the rest of the recording was left out: it has too many quotes"),
        ];
        let doubts = doubts.into_iter().filter(|(count, _)| *count > 0);
        let doubts = doubts.map(|(count, said)| format!("{}: {count} {said}", path.display())).collect();
        Ok(Self { list: made.ticks, names: made.names, doubts })
    }
}
