//! The last records of a recording.

use super::{Block, Gap, Read, Record, Recording};
use crate::layout::BlockKind;

/// What was read with its place in the order of a merge, and its payload.
type Keyed = ((u64, u32, u64), Read, Vec<u8>);

/// The last `count` records of some streams that `is_chosen` takes by their generated time, in the order of a merge,
/// with the gaps and damages among them. Memory: so many records of each stream at most.
pub fn last_records(
    recording: &Recording,
    streams: &[u32],
    count: usize,
    is_chosen: &dyn Fn(u64) -> bool,
) -> Vec<(Read, Vec<u8>)> {
    let mut all: Vec<Keyed> = Vec::new();
    for stream in streams {
        let mut found = of_stream(recording, *stream, count, is_chosen);
        all.append(&mut found);
    }
    all.sort_by_key(|(key, ..)| *key);
    let mut records = 0;
    let from = all.iter().rposition(|(_, read, _)| {
        records += usize::from(matches!(read, Read::Record(_)));
        records > count
    });
    all.drain(..from.map_or(0, |from| from + 1));
    if count == 0 {
        all.clear();
    }
    all.into_iter().map(|(_, read, payload)| (read, payload)).collect()
}

/// Those of one stream, file by file and block by block from the end.
fn of_stream(
    recording: &Recording,
    stream: u32,
    count: usize,
    is_chosen: &dyn Fn(u64) -> bool,
) -> Vec<Keyed> {
    let (mut found, mut records, mut block) = (Vec::new(), 0, Block::default());
    for at in (0..recording.files().len()).rev() {
        let Ok(file) = recording.open_file(at) else { continue };
        let index = recording.index(at, &file);
        for nth in (0..index.blocks_of(stream)).rev() {
            if records >= count {
                return found;
            }
            let Some(head) = index.block_of(stream, nth) else { break };
            if head.kind == BlockKind::Gap {
                let (from, to) = (head.first_sequence, head.last_sequence + 1);
                let gap = Gap { stream, from, to, reason: head.gap_reason() };
                if is_chosen(head.generated_max) {
                    found.push(((head.generated_max, stream, from), Read::Gap(gap), Vec::new()));
                }
                continue;
            }
            block.load(&file, head);
            let mut last = head.first_sequence;
            while let Some(read) = block.next(&file) {
                match read {
                    Ok((record, payload)) if is_chosen(record.stamp.generated) => {
                        last = record.sequence;
                        let key = (record.stamp.generated, stream, record.sequence);
                        let record = Record { stream, epoch: head.epoch, record };
                        found.push((key, Read::Record(record), payload.to_vec()));
                        records += 1;
                    }
                    Ok((record, _)) => last = record.sequence,
                    Err(damage) => {
                        let key = (head.generated_max, stream, last);
                        found.push((key, Read::Damaged(Box::new(damage)), Vec::new()));
                    }
                }
            }
        }
    }
    found
}
