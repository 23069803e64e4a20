//! Small recordings for tests.

use crate::{
    layout::{BlockHead, GapReason, data_name, manifest::StreamEntry},
    read::{JournalRead, Merge, Recording},
    record::{
        BlockBuffer, CachedDisk, Files, Options, Place, SyncPolicy,
        identity::{Clock, Identity},
    },
};
use lowlat_ipc::stream::{Record, Stamp};
use std::{fs, path::Path};

pub const IDENTITY: Identity = Identity {
    recording: 0x00c0_ffee,
    boot_id: [0; 16],
    clock: Clock::Fixed { monotonic_ns: 1_000, realtime_ns: 2_000 },
};

pub fn options() -> Options {
    Options { file_bytes_max: 64 << 10, block_bytes: 4096, sync: SyncPolicy::None, ..Options::default() }
}

pub fn entry(name: &str) -> StreamEntry {
    StreamEntry {
        name: name.to_owned(),
        schema: "test".to_owned(),
        id: 9,
        next_sequence: 0,
        generated_max: 0,
    }
}

/// Record `sequence` of a stream, generated at `10 * sequence + stream`.
pub fn record(stream: u32, sequence: u64) -> Record {
    let stamp = Stamp {
        kind: 1,
        schema: 2,
        instrument: stream,
        source: 3,
        generated: 10 * sequence + u64::from(stream),
        trigger: 4,
        cause: 5,
    };
    Record { position: 128 * sequence, sequence, stamp }
}

/// Payload of the same record.
pub fn payload(stream: u32, sequence: u64) -> Vec<u8> {
    let length = usize::try_from((sequence * 7 + u64::from(stream)) % 23).unwrap();
    vec![u8::try_from(sequence % 251).unwrap(); length]
}

/// Writes recordings block by block.
pub struct Maker {
    pub files: Files<CachedDisk>,
    buffer: BlockBuffer,
}

impl Maker {
    pub fn new(folder: &Path, options: Options, streams: &[&str]) -> Self {
        fs::create_dir_all(folder).unwrap();
        let place = Place { streams: streams.iter().map(|name| entry(name)).collect(), ..Place::start() };
        let options = options.bounded();
        let files = Files::new(CachedDisk, folder, IDENTITY, options, place).unwrap();
        Self { files, buffer: BlockBuffer::new(options.block_bytes) }
    }

    pub fn records(&mut self, stream: u32, sequences: std::ops::Range<u64>) {
        self.buffer.begin(IDENTITY.recording, stream, 1);
        for sequence in sequences {
            assert!(self.buffer.push(&record(stream, sequence), &payload(stream, sequence)));
        }
        self.files.append(&mut self.buffer).unwrap();
    }

    pub fn gap(&mut self, stream: u32, from: u64, to: u64) {
        self.buffer.begin(IDENTITY.recording, stream, 1);
        let head = BlockHead {
            first_sequence: from,
            last_sequence: to - 1,
            detail: GapReason::Overwritten.code(),
            ..self.buffer.finished_head()
        };
        self.files.append_gap(&head).unwrap();
    }
}

/// Makes three data files useless, each in a different way: one that the system refuses to open, even for root
/// (a link to itself), one with another number, and one with other contents.
pub fn make_useless(folder: &Path, numbers: [u64; 3]) {
    let [refused, foreign, other] = numbers.map(|number| folder.join(data_name(number)));
    fs::remove_file(&refused).unwrap();
    std::os::unix::fs::symlink(&refused, &refused).unwrap();
    fs::copy(folder.join(data_name(1)), foreign).unwrap();
    fs::write(other, vec![0x55; 20_000]).unwrap();
}

/// All records of a merge.
pub fn read_all(recording: &Recording) -> Vec<JournalRead> {
    let (mut merge, mut bytes, mut reads) = (Merge::of_all(recording), Vec::new(), Vec::new());
    loop {
        match merge.next(&mut bytes) {
            JournalRead::Ended => return reads,
            read => {
                if let JournalRead::Record(found) = &read {
                    assert_eq!(found.record.stamp, record(found.stream, found.record.sequence).stamp);
                    assert_eq!(bytes, payload(found.stream, found.record.sequence));
                }
                reads.push(read);
            }
        }
        assert!(reads.len() < 1_000_000, "endless");
    }
}

/// (stream, sequence) of the records among the items.
pub fn sequences(reads: &[JournalRead]) -> Vec<(u32, u64)> {
    reads
        .iter()
        .filter_map(|read| match read {
            JournalRead::Record(record) => Some((record.stream, record.record.sequence)),
            _ => None,
        })
        .collect()
}
