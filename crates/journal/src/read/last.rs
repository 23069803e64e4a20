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
            let mut last = head.first_sequence;
            if let Some(damage) = block.load(&file, head) {
                let key = (head.generated_max, stream, last);
                found.push((key, Read::Damaged(Box::new(damage)), Vec::new()));
            }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        layout::data_name,
        testing::{Maker, options, payload, read_all, record, sequences},
    };
    use std::{fs, path::Path};
    use tempfile::TempDir;

    /// Two streams in many blocks of some files, with a gap in the second one.
    fn make(folder: &Path) {
        let mut maker = Maker::new(folder, options(), &["one", "two"]);
        for block in 0..100 {
            let (first, second) = (20 * block, 10 * block);
            maker.records(0, first..first + 20);
            if block == 90 {
                maker.gap(1, second, second + 10);
            } else {
                maker.records(1, second..second + 10);
            }
        }
        maker.files.finish().unwrap();
        assert!(folder.join(data_name(2)).exists());
    }

    fn open(folder: &Path) -> Recording {
        Recording::open(folder).unwrap()
    }

    fn last(recording: &Recording, streams: &[u32], count: usize) -> Vec<Read> {
        last_records(recording, streams, count, &|_| true).into_iter().map(|(read, _)| read).collect()
    }

    #[test]
    fn the_last_of_all_streams_are_those_that_a_merge_gives_last() {
        let folder = TempDir::new().unwrap();
        make(folder.path());
        let recording = open(folder.path());
        let all = read_all(&recording);
        let known = sequences(&all);
        for count in [0, 1, 2, 3, 19, 20, 21, 150, 1000, known.len() - 1, known.len(), known.len() + 1] {
            let found = last_records(&recording, &[0, 1], count, &|_| true);
            let reads: Vec<_> = found.iter().map(|(read, _)| read.clone()).collect();
            assert_eq!(sequences(&reads), known[known.len() - count.min(known.len())..], "{count}");
            for (read, bytes) in found {
                if let Read::Record(found) = read {
                    let sequence = found.record.sequence;
                    assert_eq!(found.record.stamp, record(found.stream, sequence).stamp);
                    assert_eq!(bytes, payload(found.stream, sequence));
                }
            }
        }
        assert_eq!(last(&recording, &[0, 1], usize::MAX), all, "with the gap in its place");
        let of_two: Vec<_> = known.iter().copied().filter(|(stream, _)| *stream == 1).collect();
        assert_eq!(sequences(&last(&recording, &[1], 30)), of_two[of_two.len() - 30..]);
        assert!(last(&recording, &[], 5).is_empty() && last(&recording, &[7], 5).is_empty());
    }

    #[test]
    fn a_gap_is_shown_when_a_record_before_it_is() {
        let folder = TempDir::new().unwrap();
        make(folder.path());
        let recording = open(folder.path());
        let gaps = |count| {
            let reads = last(&recording, &[1], count);
            reads
                .iter()
                .filter(|read| matches!(read, Read::Gap(gap) if (gap.from, gap.to) == (900, 910)))
                .count()
        };
        // 90 records stand behind it.
        assert_eq!([gaps(89), gaps(91), gaps(usize::MAX)], [0, 1, 1]);
    }

    #[test]
    fn records_are_chosen_by_their_time() {
        let folder = TempDir::new().unwrap();
        make(folder.path());
        let recording = open(folder.path());
        let range = 4_000..4_500;
        let known: Vec<_> = sequences(&read_all(&recording))
            .into_iter()
            .filter(|(stream, sequence)| range.contains(&record(*stream, *sequence).stamp.generated))
            .collect();
        let chosen = |count| {
            let found = last_records(&recording, &[0, 1], count, &|generated| range.contains(&generated));
            sequences(&found.into_iter().map(|(read, _)| read).collect::<Vec<_>>())
        };
        assert!(known.len() > 60);
        assert_eq!(chosen(usize::MAX), known);
        assert_eq!(chosen(60), known[known.len() - 60..]);
        assert!(
            last_records(&recording, &[0, 1], 5, &|_| false).iter().all(|(read, _)| *read == Read::Nothing)
        );
    }

    #[test]
    fn damage_among_them_is_told_and_costs_what_stands_behind_it_in_its_block() {
        let folder = TempDir::new().unwrap();
        make(folder.path());
        let whole = open(folder.path());
        let file = whole.files().last().unwrap().number;
        let path = folder.path().join(data_name(file));
        let index = whole.index(whole.files().len() - 1, &whole.open_file(whole.files().len() - 1).unwrap());
        let head = *index.block_of(0, index.blocks_of(0) - 1).unwrap();
        let mut bytes = fs::read(&path).unwrap();
        // In the middle of the last block of the first stream, and later in its head.
        let middle = usize::try_from(head.offset).unwrap() + 128 + head.body_bytes as usize / 2;
        bytes[middle] ^= 1;
        fs::write(&path, &bytes).unwrap();
        let reads = last(&open(folder.path()), &[0], 5);
        assert!(matches!(reads.last(), Some(Read::Damaged(_))), "{reads:?}");
        let found = sequences(&reads);
        assert_eq!(found.len(), 5);
        let (first, end) = (head.first_sequence, head.last_sequence);
        assert!((first + 1..end).contains(&found[4].1) && found.is_sorted(), "{found:?}");
        bytes[middle] ^= 1;
        bytes[usize::try_from(head.offset).unwrap() + 50] ^= 1;
        fs::write(&path, &bytes).unwrap();
        // The index has a copy of the head, by which the records are read.
        let reads = last(&open(folder.path()), &[0], 20);
        assert_eq!(sequences(&reads).len(), 20);
        assert_eq!(reads.iter().filter(|read| matches!(read, Read::Damaged(_))).count(), 1, "{reads:?}");
    }
}
