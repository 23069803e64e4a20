use super::*;
use crate::{
    layout::{self, data_name, index, index_name},
    read::file::scan,
    testing::{Maker, options},
};
use std::{fs, path::Path};
use tempfile::TempDir;

/// At least three files, with their indexes. Returns the number of files.
fn make(folder: &Path) -> u64 {
    let mut maker = Maker::new(folder, options(), &["one", "two"]);
    for block in 0..100 {
        maker.records(0, 20 * block..20 * block + 20);
        maker.records(1, 10 * block..10 * block + 10);
    }
    maker.gap(1, 1000, 1010);
    maker.files.finish().unwrap();
    let files = Recording::open(folder).unwrap().files().len();
    assert!(files > 2);
    files as u64
}

fn check(folder: &Path) -> JournalVerification {
    verify(&Recording::open(folder).unwrap(), true, &mut |_, _| ())
}

/// Writes the index of a file in its present state, from these of its blocks.
fn write_index(folder: &Path, number: u64, is_named: impl Fn(&BlockHead) -> bool) {
    let recording = Recording::open(folder).unwrap();
    let file = DataFile::open(folder, number).unwrap();
    let scan = scan(&file, recording.number(), false);
    let heads: Vec<u8> =
        scan.blocks.iter().filter(|head| is_named(head)).flat_map(BlockHead::encode).collect();
    let bytes = index::encode(recording.number().unwrap(), number, file.bytes, &heads);
    fs::write(folder.join(index_name(number)), bytes).unwrap();
}

/// A verification must find the same with and without index files.
fn same_without_indexes(folder: &Path, files: u64, damages: u64) {
    let with = check(folder);
    assert_eq!(with.damage_count, damages, "{:?}", with.damages);
    assert!(with.files.iter().all(|file| file.index_problem.is_none()), "{:?}", with.files);
    for number in 1..=files {
        fs::remove_file(folder.join(index_name(number))).unwrap();
    }
    let mut without = check(folder);
    for file in &mut without.files {
        assert_eq!(file.index_problem.take().as_deref(), Some("it is missing"));
    }
    assert_eq!(without, with);
}

#[test]
fn a_verification_finds_the_same_with_and_without_indexes() {
    let folder = TempDir::new().unwrap();
    let files = make(folder.path());
    same_without_indexes(folder.path(), files, 0);
}

#[test]
fn a_damaged_record_and_bytes_after_an_end_are_found_with_and_without_indexes() {
    let folder = TempDir::new().unwrap();
    let files = make(folder.path());
    let path = folder.path().join(data_name(1));
    let mut bytes = fs::read(&path).unwrap();
    let recording = Recording::open(folder.path()).unwrap();
    let index = recording.index(0, &recording.open_file(0).unwrap());
    let head = index.block_of(0, 1).unwrap();
    bytes[usize::try_from(head.offset).unwrap() + layout::BLOCK_HEAD_BYTES + 100] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let path = folder.path().join(data_name(2));
    let mut bytes = fs::read(&path).unwrap();
    bytes.extend([7; 64]);
    fs::write(&path, &bytes).unwrap();
    write_index(folder.path(), 2, |_| true);
    same_without_indexes(folder.path(), files, 2);
}

#[test]
fn an_index_without_a_block_hides_no_record() {
    let folder = TempDir::new().unwrap();
    make(folder.path());
    let before = check(folder.path());
    write_index(folder.path(), 1, |head| (head.stream, head.first_sequence) != (0, 20));
    let mut report = check(folder.path());
    assert!(report.files[0].index_problem.take().is_some());
    assert_eq!(report, before);
}
