//! Every file of a recording, damaged in every way, and what each reader reports.

use super::*;
use crate::{
    layout::{FILE_HEAD_BYTES, data_name, index_name},
    read::{Gap, JournalRead, Merge, TailReader, last_records, verify},
    record::{FolderLock, Options, Recorder},
    testing::{Maker, options, payload, read_all, record},
};
use std::{
    collections::BTreeSet,
    fs,
    os::unix::net::UnixListener,
    path::{Path, PathBuf},
};
use tempfile::TempDir;

/// Two streams with a gap, in several files, written by two recorders. With `is_killed` the second one was
/// killed, otherwise it finished its file.
fn make(folder: &Path, is_killed: bool) -> Vec<u64> {
    let options = Options { file_bytes_max: 16 << 10, ..options() };
    let mut maker = Maker::new(folder, options, &["one", "two"]);
    for block in 0..14 {
        maker.records(0, 20 * block..20 * block + 20);
        maker.records(1, 3 * block..3 * block + 3);
    }
    maker.gap(1, 42, 45);
    maker.files.finish().unwrap();
    let mut recorder = Recorder::open(folder, options).unwrap();
    for sequence in 280..290 {
        recorder.record(0, 1, &record(0, sequence), &payload(0, sequence)).unwrap();
    }
    recorder.stop().unwrap();
    let files = crate::read::recording::list(folder).unwrap().data;
    assert!(files.len() > 3, "{files:?}");
    if is_killed {
        let last = *files.last().unwrap();
        fs::remove_file(folder.join(index_name(last))).unwrap();
        let path = folder.join(data_name(last));
        let bytes = fs::read(&path).unwrap();
        fs::write(&path, &bytes[..bytes.len() - 128]).unwrap();
    }
    files
}

/// Answers of the readers: how many records each returns, and whether it reports damage or loss.
#[derive(Debug, PartialEq, Eq)]
struct Answers {
    records: u64,
    complains: bool,
}

fn answer(folder: &Path) -> Option<Answers> {
    let recording = Recording::open(folder).ok()?;
    let is_loss = |read: &JournalRead| match read {
        JournalRead::Damaged(_) => true,
        // The recording has one gap to start with, which is not damage.
        JournalRead::Gap(Gap { reason, .. }) => reason.is_none(),
        _ => false,
    };
    let is_record = |read: &&JournalRead| matches!(read, JournalRead::Record(_));
    let of = |reads: &[JournalRead]| Answers {
        records: reads.iter().filter(is_record).count() as u64,
        complains: reads.iter().any(is_loss),
    };
    let merged = of(&read_all(&recording));
    let known = verify(&recording, true, &mut |_, _| ());
    let unknown = known.gaps.iter().any(|gap| gap.reason.is_none());
    let verified = Answers { records: known.records(), complains: known.damage_count > 0 || unknown };
    assert_eq!(merged, verified, "{:?}", known.damages);
    // From the heads alone at least some damage is known, unless it is in the records themselves.
    let heads = verify(&recording, false, &mut |_, _| ());
    assert!(heads.damage_count == 0 || merged.complains, "{:?}", heads.damages);
    let streams: Vec<u32> = (0..).take(recording.streams().len()).collect();
    let last: Vec<JournalRead> = last_records(&recording, &streams, usize::MAX, &|_, _| true)
        .into_iter()
        .map(|(read, _)| read)
        .collect();
    assert_eq!(of(&last).records, merged.records);
    assert_eq!(of(&last).complains || inspect(&recording).next().is_some(), merged.complains);
    let (mut tail, mut bytes, mut tailed) = (TailReader::from_start(&recording), Vec::new(), Vec::new());
    loop {
        match tail.next(&mut bytes) {
            JournalRead::Ended => break,
            read => tailed.push(read),
        }
        assert!(tailed.len() < 100_000, "endless");
    }
    assert_eq!(of(&tailed).complains, merged.complains, "a tail; {:?}", known.damages);
    Some(merged)
}

/// Ways to damage one file, from its bytes and those of another file.
fn damages(bytes: &[u8], other: &[u8]) -> Vec<(String, Option<Vec<u8>>)> {
    let mut ways = vec![
        ("empty".to_owned(), Some(Vec::new())),
        ("zeroed".to_owned(), Some(vec![0; bytes.len()])),
        ("removed".to_owned(), None),
        ("swapped".to_owned(), Some(other.to_vec())),
        ("appended to".to_owned(), Some([bytes, &[7; 64]].concat())),
    ];
    let head = FILE_HEAD_BYTES.min(bytes.len());
    let mut blank = bytes.to_vec();
    blank[..head].fill(0);
    ways.push(("without a head".to_owned(), Some(blank)));
    for at in (0..bytes.len()).step_by(64).filter(|at| *at == head || BlockHead::is_begun(&bytes[*at..])) {
        ways.push((format!("cut at {at}"), Some(bytes[..at].to_vec())));
        let mut zeros = bytes.to_vec();
        zeros[at..].fill(0);
        ways.push((format!("zeros from {at}"), Some(zeros)));
        let mut block = bytes.to_vec();
        block[at..at + 128].fill(0);
        ways.push((format!("no head of the block at {at}"), Some(block)));
    }
    ways
}

fn copy(from: &Path, to: &Path) {
    for file in fs::read_dir(from).unwrap() {
        let path = file.unwrap().path();
        fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
    }
}

/// Damages every file in every way, with the index files (`kept`) or without them.
fn every_damage_is_told(is_killed: bool, kept: bool) {
    let whole = TempDir::new().unwrap();
    let files = make(whole.path(), is_killed);
    if !kept {
        for number in &files {
            fs::remove_file(whole.path().join(index_name(*number))).ok();
        }
    }
    let before = answer(whole.path()).unwrap();
    assert_eq!((before.records, before.complains), (332, is_killed));
    let names: BTreeSet<PathBuf> =
        fs::read_dir(whole.path()).unwrap().map(|file| file.unwrap().file_name().into()).collect();
    let mut tried = 0;
    for name in &names {
        let bytes = fs::read(whole.path().join(name)).unwrap();
        let next = names.iter().find(|other| *other > name && other.extension() == name.extension());
        let other = fs::read(whole.path().join(next.unwrap_or(names.first().unwrap()))).unwrap();
        for (way, damaged) in damages(&bytes, &other) {
            let folder = TempDir::new().unwrap();
            copy(whole.path(), folder.path());
            let path = folder.path().join(name);
            match damaged {
                Some(bytes) => fs::write(&path, bytes).unwrap(),
                None => fs::remove_file(&path).unwrap(),
            }
            let found = answer(folder.path());
            let told = format!("{} {way}: {found:?}", name.display());
            let found = found.expect(&told);
            if name.extension().unwrap() == "index" {
                // An index only saves time.
                assert_eq!(found, before, "{told}");
            } else {
                assert!(found.complains && found.records <= before.records, "{told}");
            }
            tried += 1;
        }
    }
    // A copy of a file after the last one.
    let last = files.last().unwrap();
    fs::copy(whole.path().join(data_name(2)), whole.path().join(data_name(last + 1))).unwrap();
    assert!(answer(whole.path()).unwrap().complains);
    assert!(tried > 100, "{tried}");
}

#[test]
fn every_reader_reports_every_damaged_file() {
    every_damage_is_told(false, true);
}

#[test]
fn every_reader_reports_every_damaged_file_without_indexes() {
    every_damage_is_told(false, false);
}

#[test]
fn a_killed_recording_is_never_complete() {
    every_damage_is_told(true, true);
}

#[test]
fn a_recording_of_only_useless_files_is_not_clean() {
    // A single file: without its list of streams there is no stream to read.
    for bytes in [vec![], vec![0; 20_000], vec![0x55; 20_000]] {
        let folder = TempDir::new().unwrap();
        fs::write(folder.path().join(data_name(1)), &bytes).unwrap();
        assert_eq!(answer(folder.path()), Some(Answers { records: 0, complains: true }), "{}", bytes.len());
    }
    // Only its data files are missing.
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join(index_name(2)), b"").unwrap();
    assert_eq!(answer(folder.path()), Some(Answers { records: 0, complains: true }));
    assert!(Recorder::open(folder.path(), options()).is_err(), "and it cannot be continued");
}

#[test]
fn only_regular_files_are_opened() {
    let whole = TempDir::new().unwrap();
    make(whole.path(), false);
    for at in [1, 2, 20] {
        for kind in ["fifo", "socket", "folder", "link", "device"] {
            let folder = TempDir::new().unwrap();
            copy(whole.path(), folder.path());
            // Its index is opened as well.
            for name in [data_name(at), index_name(at)] {
                let path = folder.path().join(name);
                fs::remove_file(&path).ok();
                match kind {
                    "fifo" => {
                        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
                        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0)
                            .unwrap();
                    }
                    "socket" => drop(UnixListener::bind(&path).unwrap()),
                    "folder" => fs::create_dir(&path).unwrap(),
                    "link" => std::os::unix::fs::symlink("/proc/self/exe", &path).unwrap(),
                    _ => std::os::unix::fs::symlink("/dev/zero", &path).unwrap(),
                }
            }
            let recording = Recording::open(folder.path()).unwrap();
            let told: Vec<String> = inspect(&recording).map(|damage| damage.to_string()).collect();
            let name = data_name(at);
            assert!(
                told.iter().any(|told| told.contains(&name) && told.contains("expected a regular file")),
                "{kind}: {told:?}"
            );
            assert!(answer(folder.path()).unwrap().complains);
        }
    }
}

#[test]
fn a_recording_in_progress_is_not_damaged() {
    let folder = TempDir::new().unwrap();
    let mut maker = Maker::new(folder.path(), Options { file_bytes_max: 16 << 10, ..options() }, &["one"]);
    for block in 0..30 {
        maker.records(0, 20 * block..20 * block + 20);
        let writer = FolderLock::take(folder.path()).unwrap().unwrap();
        let recording = Recording::open(folder.path()).unwrap();
        assert_eq!(inspect(&recording).next(), None, "{block}");
        assert!(verify(&recording, true, &mut |_, _| ()).is_complete());
        drop(writer);
        let found: Vec<_> = inspect(&Recording::open(folder.path()).unwrap()).collect();
        assert!(matches!(found[..], [DamagedPlace { problem: Problem::Unfinished, .. }]), "{found:?}");
    }
    // The next file is created before this one gets its end.
    let next = crate::read::recording::list(folder.path()).unwrap().data.len() as u64 + 1;
    fs::write(folder.path().join(data_name(next)), vec![0; 20_000]).unwrap();
    let writer = FolderLock::take(folder.path()).unwrap().unwrap();
    assert_eq!(inspect(&Recording::open(folder.path()).unwrap()).next(), None);
    drop(writer);
    assert!(inspect(&Recording::open(folder.path()).unwrap()).count() > 1);
}

#[test]
fn a_merge_of_no_streams_reports_damage_too() {
    let folder = TempDir::new().unwrap();
    make(folder.path(), false);
    fs::remove_file(folder.path().join(data_name(1))).unwrap();
    let recording = Recording::open(folder.path()).unwrap();
    let mut merge = Merge::new(&recording, &[]);
    let read = merge.next(&mut Vec::new());
    assert!(
        matches!(&read, JournalRead::Damaged(damage) if damage.problem == Problem::FileMissing),
        "{read:?}"
    );
}

#[test]
fn foreign_bytes_in_reserved_space_are_detected() {
    let folder = TempDir::new().unwrap();
    let mut maker = Maker::new(folder.path(), Options { file_bytes_max: 1 << 30, ..options() }, &["one"]);
    maker.records(0, 0..20);
    drop(maker);
    let path = folder.path().join(data_name(1));
    assert_eq!(path.metadata().unwrap().len(), 1 << 30);
    let found: Vec<_> = inspect(&Recording::open(folder.path()).unwrap()).collect();
    assert!(matches!(found[..], [DamagedPlace { problem: Problem::Unfinished, .. }]), "{found:?}");
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &[7; 64], (1 << 29) + 64).unwrap();
    let found: Vec<_> = inspect(&Recording::open(folder.path()).unwrap()).collect();
    let [DamagedPlace { problem: Problem::NoBlock, offset, bytes, .. }, _] = &found[..] else {
        panic!("{found:?}")
    };
    assert_eq!(offset + bytes, (1 << 29) + 128);
}
