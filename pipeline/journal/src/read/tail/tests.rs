use super::*;
use crate::{
    layout::{data_name, index_name},
    record::{Options, Recorder},
    testing::{Maker, make_useless, options, payload, record, sequences},
};
use std::{fs, path::Path};
use tempfile::TempDir;

#[test]
fn a_tail_follows_while_a_recorder_runs() {
    let folder = TempDir::new().unwrap();
    let options = Options { file_bytes_max: 16 << 10, block_age_max: std::time::Duration::ZERO, ..options() };
    let mut recorder = Recorder::open(folder.path(), options).unwrap();
    let stream = recorder.add_stream("one", 1, "", Some(0)).unwrap();
    recorder.record(stream, 1, &record(0, 0), &payload(0, 0)).unwrap();
    recorder.flush_old().unwrap();
    while !folder.path().join(data_name(1)).exists() {
        std::thread::yield_now();
    }
    let mut tail = TailReader::from_start(&Recording::open(folder.path()).unwrap());
    let (mut bytes, mut next) = (Vec::new(), 0);
    for sequence in 0..500 {
        if sequence > 0 {
            recorder.record(stream, 1, &record(0, sequence), &payload(0, sequence)).unwrap();
        }
        recorder.flush_old().unwrap();
        while next <= sequence {
            match tail.next(&mut bytes) {
                JournalRead::Record(found) => {
                    assert_eq!((found.record, &bytes), (record(0, next), &payload(0, next)));
                    next += 1;
                }
                JournalRead::Nothing => {
                    std::thread::yield_now();
                    recorder.flush_old().unwrap();
                }
                other => panic!("{other:?}"),
            }
        }
    }
    assert_eq!(tail.next(&mut bytes), JournalRead::Nothing);
    recorder.stop().unwrap();
    assert_eq!(tail.next(&mut bytes), JournalRead::Ended);
    let mut late = TailReader::from_now(&Recording::open(folder.path()).unwrap());
    assert_eq!(late.next(&mut bytes), JournalRead::Ended);
}

/// One stream in at least five files, and the number of files.
fn long(folder: &Path) -> u64 {
    let mut maker = Maker::new(folder, Options { file_bytes_max: 16 << 10, ..options() }, &["one"]);
    for block in 0..60 {
        maker.records(0, block * 20..block * 20 + 20);
    }
    maker.files.finish().unwrap();
    let files = list(folder).unwrap().data.len();
    assert!(files > 4);
    files as u64
}

/// The sequences in files with these numbers.
fn sequences_of(recording: &Recording, is_of: impl Fn(u64) -> bool) -> Vec<u64> {
    let mut found = Vec::new();
    for (at, file) in recording.files().iter().enumerate().filter(|(_, file)| is_of(file.number)) {
        let index = recording.index(at, &DataFile::open(recording.folder(), file.number).unwrap());
        for nth in 0..index.blocks_of(0) {
            let head = index.block_of(0, nth).unwrap();
            found.extend(head.first_sequence..=head.last_sequence);
        }
    }
    found
}

/// Reads a tail up to its end, or until it has nothing new: sequences, damage, and the last result.
fn follow(tail: &mut TailReader) -> (Vec<u64>, Vec<DamagedPlace>, JournalRead) {
    let (mut reads, mut payload) = (Vec::new(), Vec::new());
    let last = loop {
        match tail.next(&mut payload) {
            read @ (JournalRead::Nothing | JournalRead::Ended) => break read,
            read => reads.push(read),
        }
        assert!(reads.len() < 100_000, "endless");
    };
    let damages = reads.iter().filter_map(|read| match read {
        JournalRead::Damaged(damage) => Some((**damage).clone()),
        _ => None,
    });
    let damages = damages.collect();
    (sequences(&reads).into_iter().map(|(_, sequence)| sequence).collect(), damages, last)
}

fn problems(folder: &Path, damages: &[DamagedPlace]) -> Vec<(u64, Problem)> {
    let number = |damage: &DamagedPlace| {
        let name = damage.file.strip_prefix(folder).unwrap().to_str().unwrap();
        crate::layout::number_of(name).unwrap()
    };
    damages.iter().map(|damage| (number(damage), damage.problem.clone())).collect()
}

#[test]
fn missing_files_are_reported_and_the_others_are_read() {
    let folder = TempDir::new().unwrap();
    let folder = folder.path();
    let files = long(folder);
    let recording = Recording::open(folder).unwrap();
    let rest = sequences_of(&recording, |number| ![2, 3, files].contains(&number));
    for number in [2, 3, files] {
        fs::remove_file(folder.join(data_name(number))).unwrap();
    }
    let (read, damages, last) = follow(&mut TailReader::from_start(&Recording::open(folder).unwrap()));
    assert_eq!((read, last), (rest, JournalRead::Ended));
    let missing = |number| (number, Problem::FileMissing);
    // The last file is known from the end of the previous one, which announces it.
    let found = problems(folder, &damages);
    let [two, three, (4, Problem::BlocksMissing { .. }), last] = &found[..] else { panic!("{found:?}") };
    assert_eq!([two, three, last], [&missing(2), &missing(3), &missing(files)]);
}

#[test]
fn unreadable_foreign_and_useless_files_are_distinguished() {
    let folder = TempDir::new().unwrap();
    let folder = folder.path();
    long(folder);
    let recording = Recording::open(folder).unwrap();
    let rest = sequences_of(&recording, |number| ![2, 3, 4].contains(&number));
    make_useless(folder, [2, 3, 4]);
    let (read, damages, last) = follow(&mut TailReader::from_start(&Recording::open(folder).unwrap()));
    assert_eq!((read, last), (rest, JournalRead::Ended));
    let found = problems(folder, &damages);
    let [
        (2, Problem::Unreadable { error }),
        (3, foreign),
        (4, Problem::FileHead { .. }),
        (4, Problem::NoBlock),
        (4, Problem::Unfinished),
        (5, Problem::BlocksMissing { .. }),
    ] = &found[..]
    else {
        panic!("{found:?}")
    };
    assert!(!error.is_empty());
    assert_eq!(*foreign, Problem::Foreign { found: 1, expected: 3 });
}

#[test]
fn a_deleted_file_is_reported_once_and_the_tail_waits_for_the_next() {
    let folder = TempDir::new().unwrap();
    let folder = folder.path();
    let files = long(folder);
    let recording = Recording::open(folder).unwrap();
    let _writer = FolderLock::take(folder).unwrap().unwrap();
    let [gone, last] = [files - 1, files].map(|number| folder.join(data_name(number)));
    let [kept, back] = ["kept", "back"].map(|name| folder.join(name));
    fs::rename(&gone, &kept).unwrap();
    fs::rename(&last, &back).unwrap();
    let mut tail = TailReader::from_start(&recording);
    let (read, damages, answer) = follow(&mut tail);
    assert_eq!((read, answer), (sequences_of(&recording, |number| number < files - 1), JournalRead::Nothing));
    assert_eq!(problems(folder, &damages), [(files - 1, Problem::FileMissing)]);
    assert_eq!(follow(&mut tail), (vec![], vec![], JournalRead::Nothing), "already reported");
    // A tail that starts now leaves existing damage to other readers.
    let mut from_now = TailReader::from_now(&Recording::open(folder).unwrap());
    assert_eq!(follow(&mut from_now), (vec![], vec![], JournalRead::Nothing));
    fs::rename(&back, &last).unwrap();
    for tail in [&mut tail, &mut from_now] {
        let (read, damages, answer) = follow(tail);
        assert_eq!(read, sequences_of(&recording, |number| number == files));
        assert!(
            matches!(problems(folder, &damages)[..], [(_, Problem::BlocksMissing { .. })]),
            "{damages:?}"
        );
        assert_eq!(answer, JournalRead::Nothing, "the recorder has not created another file yet");
    }
    drop(kept);
}

#[test]
fn a_tail_finds_the_next_file_of_a_later_recorder() {
    let folder = TempDir::new().unwrap();
    long(folder.path());
    let recording = Recording::open(folder.path()).unwrap();
    let mut tail = TailReader::from_now(&recording);
    let writer = FolderLock::take(folder.path()).unwrap().unwrap();
    assert_eq!(
        follow(&mut tail),
        (vec![], vec![], JournalRead::Nothing),
        "another recorder starts, and has no file yet"
    );
    drop(writer);
    assert_eq!(follow(&mut tail), (vec![], vec![], JournalRead::Ended));
}

#[test]
fn a_tail_leaves_a_file_without_an_end_for_later_ones() {
    let folder = TempDir::new().unwrap();
    let folder = folder.path();
    long(folder);
    let recording = Recording::open(folder).unwrap();
    let rest = sequences_of(&recording, |number| number != 2);
    let first = folder.join(data_name(1));
    let bytes = fs::read(&first).unwrap();
    fs::write(&first, &bytes[..bytes.len() - crate::layout::BLOCK_HEAD_BYTES]).unwrap();
    fs::remove_file(folder.join(index_name(1))).unwrap();
    fs::remove_file(folder.join(data_name(2))).unwrap();
    let _writer = FolderLock::take(folder).unwrap().unwrap();
    let (read, damages, answer) = follow(&mut TailReader::from_start(&Recording::open(folder).unwrap()));
    assert_eq!((read, answer), (rest, JournalRead::Nothing));
    let found = problems(folder, &damages);
    assert!(
        matches!(
            found[..],
            [(1, Problem::Unfinished), (2, Problem::FileMissing), (3, Problem::BlocksMissing { .. })]
        ),
        "{found:?}"
    );
}

#[test]
fn a_killed_recorder_leaves_a_file_without_an_end() {
    let folder = TempDir::new().unwrap();
    let mut maker = Maker::new(folder.path(), options(), &["one"]);
    maker.records(0, 0..20);
    let writer = FolderLock::take(folder.path()).unwrap().unwrap();
    let recording = Recording::open(folder.path()).unwrap();
    let (mut tail, mut from_now) = (TailReader::from_start(&recording), TailReader::from_now(&recording));
    let (read, damages, answer) = follow(&mut tail);
    assert_eq!((read.len(), damages, answer), (20, vec![], JournalRead::Nothing), "still recording");
    assert_eq!(follow(&mut from_now), (vec![], vec![], JournalRead::Nothing));
    drop((writer, maker));
    for tail in [&mut tail, &mut from_now] {
        let (_, damages, answer) = follow(tail);
        assert_eq!(
            (problems(folder.path(), &damages), answer),
            (vec![(1, Problem::Unfinished)], JournalRead::Ended)
        );
        assert_eq!(follow(tail), (vec![], vec![], JournalRead::Ended), "once");
    }
    // Readers of the existing files report it instead.
    let mut late = TailReader::from_now(&Recording::open(folder.path()).unwrap());
    assert_eq!(follow(&mut late), (vec![], vec![], JournalRead::Ended));
}

#[test]
fn a_file_of_another_layout_is_reported_during_a_recording() {
    let folder = TempDir::new().unwrap();
    let folder = folder.path();
    let files = long(folder);
    let recording = Recording::open(folder).unwrap();
    let rest = sequences_of(&recording, |number| number < files);
    let last = folder.join(data_name(files));
    let mut bytes = fs::read(&last).unwrap();
    bytes[8] += 1;
    let check = FILE_HEAD_BYTES - 4;
    let crc = crc32c::crc32c(&bytes[..check]).to_le_bytes();
    bytes[check..FILE_HEAD_BYTES].copy_from_slice(&crc);
    fs::write(&last, &bytes).unwrap();
    let writer = FolderLock::take(folder).unwrap().unwrap();
    let recording = Recording::open(folder).unwrap();
    let mut tails = [TailReader::from_start(&recording), TailReader::from_now(&recording)];
    let (read, damages, answer) = follow(&mut tails[0]);
    assert_eq!((read, answer), (rest, JournalRead::Nothing));
    let why = HeadProblem::Version { found: crate::layout::VERSION + 1 };
    assert_eq!(problems(folder, &damages), [(files, Problem::FileHead { why })]);
    assert_eq!(
        follow(&mut tails[1]),
        (vec![], vec![], JournalRead::Nothing),
        "left to readers of the existing files"
    );
    drop(writer);
    assert_eq!(
        tails.map(|mut tail| follow(&mut tail)),
        [(); 2].map(|()| (vec![], vec![], JournalRead::Ended))
    );
}
