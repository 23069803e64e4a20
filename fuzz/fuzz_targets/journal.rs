//! A recording with bytes changed: anywhere, and in heads of blocks whose checksums are right again. Whatever is there,
//! nothing panics and nothing runs for ever.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lowlat_ipc::stream::{Record, Stamp};
use lowlat_journal::{
    layout::{BLOCK_HEAD_BYTES, BlockHead, FILE_HEAD_BYTES, GapReason, manifest::StreamEntry},
    read::{Merge, JournalRead, Recording, StreamReader, TailReader, last_records, verify, write_missing_indexes},
    record::{
        BlockBuffer, CachedDisk, Files, Options, Place, SyncPolicy,
        identity::{Clock, Identity},
    },
};
use std::{fs, path::PathBuf, sync::OnceLock};

/// A file's name and bytes.
type File = (PathBuf, Vec<u8>);

const STREAMS: u32 = 2;
const IDENTITY: Identity = Identity {
    recording: 77,
    boot_id: [0; 16],
    clock: Clock::Fixed { monotonic_ns: 1_000, realtime_ns: 2_000 },
};

fn folder() -> PathBuf {
    std::env::temp_dir().join(format!("lowlat-fuzz-journal-{}", std::process::id()))
}

/// A recording of two streams in some files, with a gap.
fn recording() -> Vec<File> {
    let folder = folder();
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    let entry = |number: u32| StreamEntry {
        name: format!("stream {number}"),
        schema: String::new(),
        id: number,
        next_sequence: 0,
        generated_max: 0,
    };
    let options =
        Options { file_bytes_max: 32 << 10, block_bytes: 4096, sync: SyncPolicy::None, ..Options::default() };
    let options = options.bounded();
    let place = Place { streams: (0..STREAMS).map(entry).collect(), ..Place::start() };
    let mut files = Files::new(CachedDisk, &folder, IDENTITY, options.clone(), place).unwrap();
    let mut buffer = BlockBuffer::new(options.block_bytes);
    for block in 0..16 {
        let stream = u32::from(block % 2 == 1);
        buffer.begin(IDENTITY.recording, stream, 1);
        if block == 8 {
            let (first, last) = (block * 10, block * 10 + 19);
            let detail = GapReason::Overwritten.code();
            let head =
                BlockHead { first_sequence: first, last_sequence: last, detail, ..buffer.finished_head() };
            files.append_gap(&head).unwrap();
            continue;
        }
        for sequence in block / 2 * 20..block / 2 * 20 + 20 {
            let stamp = Stamp { generated: 10 * sequence, ..Stamp::default() };
            buffer.push(&Record { position: 0, sequence, stamp }, &vec![7; sequence as usize % 40]);
        }
        files.append(&mut buffer).unwrap();
    }
    files.finish().unwrap();
    let files = fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path());
    files.map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

/// One word of a block's head, which is sealed again.
fn change_head(bytes: &mut [u8], nth: u8, word: u8, value: u64) {
    let heads: Vec<_> = (FILE_HEAD_BYTES..bytes.len().saturating_sub(BLOCK_HEAD_BYTES))
        .step_by(8)
        .filter_map(|at| BlockHead::decode(&bytes[at..at + BLOCK_HEAD_BYTES]).map(|head| (at, head)))
        .collect();
    let Some((at, head)) = heads.get(usize::from(nth) % heads.len().max(1)) else { return };
    let mut head = *head;
    let small = value as u32;
    match word % 10 {
        0 => head.number = value,
        1 => head.stream = small,
        2 => head.epoch = value,
        3 => head.first_sequence = value,
        4 => head.last_sequence = value,
        5 => head.generated_min = value,
        6 => head.generated_max = value,
        7 => head.records = small,
        8 => head.body_bytes = small,
        _ => head.detail = value,
    }
    bytes[*at..*at + BLOCK_HEAD_BYTES].copy_from_slice(&head.encode());
}

fuzz_target!(|input: (Vec<(u8, u8, u8, u64)>, Vec<(u8, u16, u64)>, Option<(u8, u16)>, u64)| {
    static RECORDING: OnceLock<Vec<File>> = OnceLock::new();
    let (heads, words, cut, at) = input;
    let mut files = RECORDING.get_or_init(recording).clone();
    let count = files.len();
    for (file, nth, word, value) in heads.into_iter().take(8) {
        change_head(&mut files[usize::from(file) % count].1, nth, word, value);
    }
    for (file, place, value) in words {
        let bytes = &mut files[usize::from(file) % count].1;
        let place = usize::from(place) * 8 % bytes.len().max(1);
        bytes.iter_mut().skip(place).zip(value.to_le_bytes()).for_each(|(to, from)| *to = from);
    }
    if let Some((file, bytes)) = cut {
        files[usize::from(file) % count].1.truncate(usize::from(bytes));
    }
    let folder = folder();
    for file in fs::read_dir(&folder).unwrap() {
        fs::remove_file(file.unwrap().path()).unwrap();
    }
    for (path, bytes) in &files {
        fs::write(path, bytes).unwrap();
    }
    let Ok(recording) = Recording::open(&folder) else { return };
    verify(&recording, true, &mut |_, _| ());
    let mut payload = Vec::new();
    let mut merge = Merge::of_all(&recording);
    let end = (0..100_000).find(|_| matches!(merge.next(&mut payload), JournalRead::Ended | JournalRead::Nothing));
    assert!(end.is_some(), "endless");
    for stream in 0..STREAMS {
        let mut reader = StreamReader::new(&recording, stream);
        reader.seek_time(at);
        reader.next(&mut payload);
    }
    last_records(&recording, &[0, 1], 30, &|_, _| true);
    let mut tail = TailReader::from_start(&recording);
    (0..300).for_each(|_| drop(tail.next(&mut payload)));
    let _ = write_missing_indexes(&recording);
});
