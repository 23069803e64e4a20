//! The last records of a recording.

use super::{Block, Gap, JournalRead, Record, Recording, inspect::Inspector};
use crate::{
    bytes::narrow,
    damage::DamagedPlace,
    layout::{BlockHead, BlockKind},
};
use std::ops::RangeInclusive;

/// Predicate that selects a record by its generation time and payload, or a gap by the times of the records around it.
pub type IsChosen<'a> = dyn Fn(RangeInclusive<u64>, Option<(&Record, &[u8])>) -> bool + 'a;

/// An item with its place in the order of a merge, and its payload.
type Keyed = ((u64, u32, u64), JournalRead, Vec<u8>);

/// The last `count` records of some streams that `is_chosen` accepts, in the order of a merge, with the gaps and damage
/// among them, including that of files; the last file's damage is always included.
/// Memory: up to `count` records per stream.
pub fn last_records(
    recording: &Recording,
    streams: &[u32],
    count: usize,
    is_chosen: &IsChosen<'_>,
) -> Vec<(JournalRead, Vec<u8>)> {
    let last = recording.files().len().saturating_sub(1);
    let (mut all, mut lowest): (Vec<Keyed>, _) = (Vec::new(), last);
    for stream in streams {
        let (mut found, file) = of_stream(recording, *stream, count, is_chosen);
        all.append(&mut found);
        lowest = lowest.min(file);
    }
    let of_files = of_files(recording, streams, lowest).into_iter();
    all.extend(of_files.map(|(time, damage)| ((time, u32::MAX, u64::MAX), damage.into(), Vec::new())));
    all.sort_by_key(|(key, ..)| *key);
    let mut records = 0;
    let from = all.iter().rposition(|(_, read, _)| {
        records += usize::from(matches!(read, JournalRead::Record(_)));
        records > count
    });
    all.drain(..from.map_or(0, |from| from + 1));
    all.into_iter().map(|(_, read, payload)| (read, payload)).collect()
}

/// Those of one stream, read backwards file by file and block by block, and the index of the first file that
/// was read.
fn of_stream(
    recording: &Recording,
    stream: u32,
    count: usize,
    is_chosen: &IsChosen<'_>,
) -> (Vec<Keyed>, usize) {
    let (mut found, mut records, mut block) = (Vec::new(), 0, Block::default());
    // The earliest time of the records after the present block.
    let mut after = u64::MAX;
    for at in (0..recording.files().len()).rev() {
        if records >= count {
            return (found, at + 1);
        }
        let Ok((file, index)) = recording.open_indexed(at) else { continue };
        for nth in (0..index.blocks_of(stream)).rev() {
            if records >= count {
                return (found, at);
            }
            let Some(head) = index.block_of(stream, nth) else { break };
            if head.kind == BlockKind::Gap {
                if is_chosen(head.generated_max..=after, None) {
                    let key = (head.generated_max, stream, head.first_sequence);
                    found.push((key, JournalRead::Gap(Gap::of(head)), Vec::new()));
                }
                continue;
            }
            after = head.generated_min;
            let mut last = head.first_sequence;
            if let Some(damage) = block.load(&file, head) {
                found.push(((head.generated_max, stream, last), damage.into(), Vec::new()));
            }
            while let Some(read) = block.next(&file) {
                match read {
                    Ok((record, payload)) => {
                        let (sequence, time) = (record.sequence, record.stamp.generated);
                        last = sequence;
                        let record = Record { stream, epoch: head.epoch, record };
                        if is_chosen(time..=time, Some((&record, payload))) {
                            let key = (time, stream, sequence);
                            found.push((key, JournalRead::Record(record), payload.to_vec()));
                            records += 1;
                        }
                    }
                    Err(damage) => {
                        found.push(((head.generated_max, stream, last), damage.into(), Vec::new()));
                    }
                }
            }
        }
    }
    if let Some(deleted) = recording.deleted(stream).filter(|_| records < count)
        && is_chosen(time_before(recording, &[stream], 0)..=after, None)
    {
        let time = time_before(recording, &[stream], 0);
        found.push(((time, stream, deleted.from), JournalRead::Gap(deleted), Vec::new()));
    }
    (found, 0)
}

/// Missing or damaged parts other than records, from a file on: each with the latest generation time of the
/// records before it.
fn of_files(recording: &Recording, streams: &[u32], from: usize) -> Vec<(u64, DamagedPlace)> {
    let (mut inspector, mut out) = (Inspector::from(recording, from), Vec::new());
    for at in from..recording.files().len() {
        let begin = time_before(recording, streams, at);
        let damages = inspector.next_file().unwrap_or_default();
        let Ok((file, index)) = recording.open_indexed(at) else {
            out.extend(damages.into_iter().map(|damage| (begin, damage)));
            continue;
        };
        for damage in damages {
            let is_before = |head: &&BlockHead| {
                damage.file == file.path && head.offset < damage.offset && streams.contains(&head.stream)
            };
            let before = index.scan.blocks.iter().filter(is_before).map(|head| head.generated_max);
            out.push((before.max().unwrap_or(begin), damage));
        }
    }
    out.extend(inspector.next_file().unwrap_or_default().into_iter().map(|damage| (u64::MAX, damage)));
    out
}

/// The latest generation time of these streams before a file, from the list of streams at its start, or the
/// next such list; the maximum if there is none.
fn time_before(recording: &Recording, streams: &[u32], at: usize) -> u64 {
    let mut lists = recording.files().iter().skip(at).filter_map(|file| file.streams.as_ref());
    lists.next().map_or(u64::MAX, |list| {
        let entries = streams.iter().filter_map(|stream| list.get(narrow((*stream).into())));
        entries.map(|entry| entry.generated_max).max().unwrap_or(0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        damage::Problem,
        layout::{data_name, number_of},
        read::verify,
        record::FolderLock,
        testing::{Maker, make_useless, options, payload, read_all, record, sequences},
    };
    use std::{fs, path::Path};
    use tempfile::TempDir;

    /// Two streams in many blocks of several files, with a gap in the second one.
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

    fn last(recording: &Recording, streams: &[u32], count: usize) -> Vec<JournalRead> {
        last_records(recording, streams, count, &|_, _| true).into_iter().map(|(read, _)| read).collect()
    }

    #[test]
    fn the_last_records_of_all_streams_are_the_last_of_a_merge() {
        let folder = TempDir::new().unwrap();
        make(folder.path());
        let recording = open(folder.path());
        let all = read_all(&recording);
        let known = sequences(&all);
        for count in [0, 1, 2, 3, 19, 20, 21, 150, 1000, known.len() - 1, known.len(), known.len() + 1] {
            let found = last_records(&recording, &[0, 1], count, &|_, _| true);
            let reads: Vec<_> = found.iter().map(|(read, _)| read.clone()).collect();
            assert_eq!(sequences(&reads), known[known.len() - count.min(known.len())..], "{count}");
            for (read, bytes) in found {
                if let JournalRead::Record(found) = read {
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
    fn a_gap_is_included_if_a_record_before_it_is() {
        let folder = TempDir::new().unwrap();
        make(folder.path());
        let recording = open(folder.path());
        let gaps = |count| {
            let reads = last(&recording, &[1], count);
            reads
                .iter()
                .filter(|read| matches!(read, JournalRead::Gap(gap) if (gap.from, gap.to) == (900, 910)))
                .count()
        };
        // 90 records follow it.
        assert_eq!([gaps(89), gaps(91), gaps(usize::MAX)], [0, 1, 1]);
    }

    /// The records of a gap may be of any time between those around it.
    #[test]
    fn a_gap_is_selected_by_the_times_around_it() {
        let folder = TempDir::new().unwrap();
        make(folder.path());
        let recording = open(folder.path());
        // Records 900 to 909 of the second stream are missing; record N is of the time 10 N + 1.
        let gaps = |from: u64, to: u64| {
            let found = last_records(&recording, &[1], usize::MAX, &|times, _| {
                from <= *times.end() && *times.start() < to
            });
            found.iter().filter(|(read, _)| matches!(read, JournalRead::Gap(gap) if gap.from == 900)).count()
        };
        assert_eq!([gaps(0, 8_991), gaps(0, 8_992), gaps(9_050, 9_060)], [0, 1, 1]);
        assert_eq!([gaps(9_101, 9_102), gaps(9_102, u64::MAX)], [1, 0]);
    }

    #[test]
    fn records_are_selected_by_time() {
        let folder = TempDir::new().unwrap();
        make(folder.path());
        let recording = open(folder.path());
        let range = 4_000..4_500;
        let known: Vec<_> = sequences(&read_all(&recording))
            .into_iter()
            .filter(|(stream, sequence)| range.contains(&record(*stream, *sequence).stamp.generated))
            .collect();
        let chosen = |count| {
            let found = last_records(&recording, &[0, 1], count, &|times, _| range.contains(times.start()));
            sequences(&found.into_iter().map(|(read, _)| read).collect::<Vec<_>>())
        };
        assert!(known.len() > 60);
        assert_eq!(chosen(usize::MAX), known);
        assert_eq!(chosen(60), known[known.len() - 60..]);
        assert!(
            last_records(&recording, &[0, 1], 5, &|_, _| false)
                .iter()
                .all(|(read, _)| *read == JournalRead::Nothing)
        );
    }

    /// The damage among the items, with files and problems.
    fn troubles(folder: &Path, reads: &[JournalRead]) -> Vec<(usize, u64, Problem)> {
        let trouble = |(at, read): (usize, &JournalRead)| match read {
            JournalRead::Damaged(damage) => {
                let name = damage.file.strip_prefix(folder).unwrap().to_str().unwrap();
                Some((at, number_of(name).unwrap(), damage.problem.clone()))
            }
            _ => None,
        };
        reads.iter().enumerate().filter_map(trouble).collect()
    }

    /// The number of records of the first stream in each file, by file number from 1.
    fn counts(recording: &Recording) -> Vec<usize> {
        let count = |at| {
            let index = recording.index(at, &recording.open_file(at).unwrap());
            let records = |nth| index.block_of(0, nth).unwrap().records as usize;
            (0..index.blocks_of(0)).map(records).sum()
        };
        (0..recording.files().len()).map(count).collect()
    }

    #[test]
    fn missing_files_are_reported_in_order_with_the_records() {
        let folder = TempDir::new().unwrap();
        let folder = folder.path();
        make(folder);
        let counts = counts(&open(folder));
        let files = counts.len() as u64;
        assert!(files > 4, "{counts:?}");
        for number in [2, files] {
            fs::remove_file(folder.join(data_name(number))).unwrap();
        }
        let reads = last(&open(folder), &[0], usize::MAX);
        let behind_first = (counts[0], 2, Problem::FileMissing);
        let at_the_end = (reads.len() - 1, files, Problem::FileMissing);
        let found = troubles(folder, &reads);
        let [first, (_, 3, Problem::BlocksMissing { .. }), end] = &found[..] else { panic!("{found:?}") };
        assert_eq!([first, end], [&behind_first, &at_the_end]);
        // As many as follow the first missing file: earlier files are not read.
        let few = last(&open(folder), &[0, 1], counts[2]);
        let at_end = troubles(folder, &few);
        assert_eq!((at_end.len(), at_end[0].1), (1, files), "{at_end:?}");
        assert_eq!(
            troubles(folder, &last(&open(folder), &[], 0)).len(),
            1,
            "the end of the recording is always reported"
        );
        // A read from the start finds the same, and a gap for the missing records.
        let reads = read_all(&open(folder));
        let of = |found: Vec<(usize, u64, Problem)>| {
            found.into_iter().map(|(_, file, problem)| (file, problem)).collect::<Vec<_>>()
        };
        assert_eq!(of(troubles(folder, &reads)), of(found));
        assert!(reads.iter().any(|read| matches!(read, JournalRead::Gap(gap) if gap.reason.is_none())));
        // The same during a recording: the next file exists before the previous one announces it.
        let _writer = FolderLock::take(folder).unwrap().unwrap();
        assert_eq!(troubles(folder, &last(&open(folder), &[0], usize::MAX))[2], at_the_end);
    }

    #[test]
    fn unreadable_foreign_and_useless_files_are_distinguished() {
        let folder = TempDir::new().unwrap();
        let folder = folder.path();
        make(folder);
        let files = counts(&open(folder)).len() as u64;
        assert!(files > 4);
        make_useless(folder, [files, 2, 3]);
        let found = troubles(folder, &last(&open(folder), &[0], usize::MAX));
        let files_of: Vec<u64> = found.iter().map(|(_, file, _)| *file).collect();
        assert_eq!(files_of, [2, 3, 3, 3, 4, files], "{found:?}");
        assert_eq!(found[0].2, Problem::Foreign { found: 1, expected: 2 });
        assert!(
            matches!(found[1].2, Problem::FileHead { .. }) && found[2].2 == Problem::NoBlock,
            "{found:?}"
        );
        assert!(found[3].2 == Problem::Unfinished && matches!(found[4].2, Problem::BlocksMissing { .. }));
        assert!(matches!(found[5].2, Problem::Unreadable { .. }), "{found:?}");
        // `verify` reports the same.
        let checked = verify(&open(folder), true, &mut |_, _| ()).damages;
        let is_told = |damage: &DamagedPlace| checked.contains(damage);
        let told: Vec<JournalRead> = last(&open(folder), &[0], usize::MAX);
        assert!(told.iter().all(|read| !matches!(read, JournalRead::Damaged(damage) if !is_told(damage))));
    }

    #[test]
    fn damage_among_the_last_records_costs_only_the_rest_of_its_block() {
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
        assert!(matches!(reads.last(), Some(JournalRead::Damaged(_))), "{reads:?}");
        let found = sequences(&reads);
        assert_eq!(found.len(), 5);
        let (first, end) = (head.first_sequence, head.last_sequence);
        assert!((first + 1..end).contains(&found[4].1) && found.is_sorted(), "{found:?}");
        bytes[middle] ^= 1;
        bytes[usize::try_from(head.offset).unwrap() + 50] ^= 1;
        fs::write(&path, &bytes).unwrap();
        // The index has a copy of the head, which is used to read the records.
        let reads = last(&open(folder.path()), &[0], 20);
        assert_eq!(sequences(&reads).len(), 20);
        assert_eq!(
            reads.iter().filter(|read| matches!(read, JournalRead::Damaged(_))).count(),
            1,
            "{reads:?}"
        );
    }
}
