//! Compressed files, for every reader.

use crate::{
    layout::{data_name, packed_name},
    read::{FileReport, JournalRead, Merge, Recording, TailReader, last_records, verify},
    record::{Options, Recorder, compress_all},
    testing::{Maker, options, payload, read_all, record, sequences},
};
use std::{fs, path::Path, sync::atomic::AtomicBool};
use tempfile::TempDir;

/// Two streams in files of many frames.
fn make(folder: &Path) {
    let options = Options { file_bytes_max: 2 << 20, block_bytes: 64 << 10, ..options() };
    let mut maker = Maker::new(folder, options, &["one", "two"]);
    for block in 0..150_u64 {
        maker.records(0, 500 * block..500 * (block + 1));
        maker.records(1, 50 * block..50 * (block + 1));
    }
    maker.files.finish().unwrap();
}

fn compress(folder: &Path) {
    compress_all(folder, &AtomicBool::new(false)).unwrap();
}

fn bytes_of(folder: &Path) -> u64 {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).sum()
}

#[test]
fn a_compressed_recording_reads_as_before_also_by_time_and_from_its_end() {
    let folder = TempDir::new().unwrap();
    make(folder.path());
    let report = |folder| {
        let report = verify(&Recording::open(folder).unwrap(), true, &mut |_, _| ());
        let of = |file: &FileReport| (file.bytes, file.blocks, file.records, file.index_problem.clone());
        (report.files.iter().map(of).collect::<Vec<_>>(), report.streams, report.damages)
    };
    let (all, before) = (read_all(&Recording::open(folder.path()).unwrap()), report(folder.path()));
    let (files, bytes) = (before.0.len() as u64, bytes_of(folder.path()));
    compress(folder.path());
    compress(folder.path());
    assert!(files > 2 && bytes_of(folder.path()) < bytes / 2);
    assert!((1..=files).all(|number| !folder.path().join(data_name(number)).exists()));
    let recording = Recording::open(folder.path()).unwrap();
    assert_eq!((read_all(&recording), report(folder.path())), (all.clone(), before));
    assert_eq!(read_all(&Recording::open(folder.path()).unwrap().reading_ahead()), all);
    let known = sequences(&all);
    for at in [1, 777, known.len() / 2, known.len() - 1] {
        let (mut merge, mut bytes) = (Merge::of_all(&recording), Vec::new());
        let (stream, sequence) = known[at];
        merge.seek_time(record(stream, sequence).stamp.generated);
        let JournalRead::Record(found) = merge.next(&mut bytes) else { panic!("{at}") };
        assert_eq!((found.stream, found.record.sequence), (stream, sequence));
        let last = last_records(&recording, &[0, 1], at, &|_, _| true);
        let last: Vec<_> = last.into_iter().map(|(read, _)| read).collect();
        assert_eq!(sequences(&last), known[known.len() - at..]);
    }
    let (mut tail, mut bytes, mut tailed) = (TailReader::from_start(&recording), Vec::new(), 0);
    while tail.next(&mut bytes) != JournalRead::Ended {
        tailed += 1;
    }
    assert_eq!(tailed, all.len());
    // Indexes only save time.
    for number in 1..=files {
        fs::remove_file(folder.path().join(crate::layout::index_name(number))).unwrap();
    }
    assert_eq!(read_all(&Recording::open(folder.path()).unwrap()), all);
    assert_eq!(crate::read::write_missing_indexes(&Recording::open(folder.path()).unwrap()).unwrap(), files);
}

/// What Zstandard itself makes of them.
#[test]
fn a_compressed_file_is_one_of_zstd() {
    let folder = TempDir::new().unwrap();
    make(folder.path());
    let plain = fs::read(folder.path().join(data_name(1))).unwrap();
    compress(folder.path());
    let packed = fs::read(folder.path().join(packed_name(1))).unwrap();
    let mut data = vec![0; plain.len()];
    assert_eq!(zstd_safe::decompress(&mut data[..], &packed).ok(), Some(plain.len()));
    assert!(data == plain);
}

/// Each frame is damaged in turn, then the table.
#[test]
fn damage_of_a_frame_costs_its_blocks_and_damage_of_the_table_nothing() {
    let folder = TempDir::new().unwrap();
    make(folder.path());
    let all = sequences(&read_all(&Recording::open(folder.path()).unwrap()));
    compress(folder.path());
    let path = folder.path().join(packed_name(2));
    let packed = fs::read(&path).unwrap();
    let table_bytes =
        17 + 8 * u32::from_le_bytes(packed[packed.len() - 9..][..4].try_into().unwrap()) as usize;
    for at in [20, packed.len() / 2, packed.len() - table_bytes - 1] {
        let mut damaged = packed.clone();
        damaged[at] ^= 0xaa;
        fs::write(&path, &damaged).unwrap();
        for has_index in [true, false] {
            let index = folder.path().join(crate::layout::index_name(2));
            let stored = fs::read(&index).unwrap();
            if !has_index {
                fs::remove_file(&index).unwrap();
            }
            let recording = Recording::open(folder.path()).unwrap();
            let read = read_all(&recording);
            let report = verify(&recording, true, &mut |_, _| ());
            assert!(!report.is_complete() && report.damage_count > 0, "{at} {has_index}");
            let left = sequences(&read).len();
            assert!(
                left < all.len() && left > all.len() * 3 / 4,
                "{at} {has_index}: {left} of {}",
                all.len()
            );
            fs::write(&index, stored).unwrap();
        }
    }
    for bytes in [packed[..packed.len() - table_bytes].to_vec(), [&packed[..], &[7]].concat()] {
        fs::write(&path, bytes).unwrap();
        assert_eq!(sequences(&read_all(&Recording::open(folder.path()).unwrap())), all);
    }
    for hostile in [vec![], vec![0x55; 10_000], packed[packed.len() - table_bytes..].to_vec()] {
        fs::write(&path, hostile).unwrap();
        let recording = Recording::open(folder.path()).unwrap();
        assert!(verify(&recording, true, &mut |_, _| ()).damage_count > 0);
        assert!(sequences(&read_all(&recording)).len() < all.len());
    }
}

#[test]
fn a_recorder_compresses_files_that_end_and_resumes_after_compressed_ones() {
    let folder = TempDir::new().unwrap();
    let options = Options { file_bytes_max: 16 << 10, is_compressed: true, ..options() };
    for round in 0..3_u64 {
        let mut recorder = Recorder::open(folder.path(), options).unwrap();
        let stream = recorder.add_stream("one", 9, "test", Some(0)).unwrap();
        for sequence in 1000 * round..1000 * (round + 1) {
            recorder.record(stream, 1, &record(stream, sequence), &payload(stream, sequence)).unwrap();
        }
        if round == 1 {
            // Once it has handed some over.
            while !folder.path().join(packed_name(2)).exists() {
                std::thread::yield_now();
            }
        }
        recorder.stop().unwrap();
        let recording = Recording::open(folder.path()).unwrap();
        let wanted: Vec<_> = (0..1000 * (round + 1)).map(|at| (0, at)).collect();
        assert_eq!(sequences(&read_all(&recording)), wanted);
        assert!(verify(&recording, true, &mut |_, _| ()).is_complete());
        compress(folder.path());
    }
    // The end of a compressed file announces the one that followed it.
    let last = Recording::open(folder.path()).unwrap().files().last().unwrap().number;
    fs::remove_file(folder.path().join(packed_name(last))).unwrap();
    fs::remove_file(folder.path().join(crate::layout::index_name(last))).unwrap();
    assert!(!verify(&Recording::open(folder.path()).unwrap(), true, &mut |_, _| ()).is_complete());
}

#[test]
fn a_file_in_both_forms_is_one_and_the_compressed_one_is_made_again() {
    let folder = TempDir::new().unwrap();
    make(folder.path());
    let all = read_all(&Recording::open(folder.path()).unwrap());
    fs::write(folder.path().join(packed_name(1)), b"of an interrupted one").unwrap();
    assert_eq!(read_all(&Recording::open(folder.path()).unwrap()), all);
    compress(folder.path());
    assert_eq!(read_all(&Recording::open(folder.path()).unwrap()), all);
}
