//! The records of one block.

use super::{JournalRead, file::DataFile};
use crate::{
    bytes::{is_zero, narrow, wide},
    damage::{DamagedPlace, Problem},
    layout::{BLOCK_HEAD_BYTES, BODY_BYTES_MAX, BlockHead, BlockKind, body_seed, decode_record},
};
use lowlat_ipc::stream::Record;

/// A block in memory, and the position in it. One buffer is reused for many blocks.
#[derive(Debug, Default)]
pub struct Block {
    bytes: Vec<u8>,
    head: Option<BlockHead>,
    at: usize,
    check: u32,
    done: u32,
}

impl Block {
    /// Reads the block of this head, which is already checked. Damage of the head alone costs no record.
    pub fn load(&mut self, file: &DataFile, head: &BlockHead) -> Option<DamagedPlace> {
        self.head = None;
        let room = file.bytes.saturating_sub(head.offset).min(head.bytes());
        self.bytes.resize(narrow(room).min(BLOCK_HEAD_BYTES + BODY_BYTES_MAX + 64), 0);
        let read = match file.read(&mut self.bytes, head.offset) {
            Ok(read) => read,
            Err(error) => return Some(file.damage(head.offset, head.bytes(), Problem::unreadable(&error))),
        };
        self.bytes.truncate(read);
        self.rewind(head);
        let is_same = self.bytes.get(..BLOCK_HEAD_BYTES) == Some(&head.encode()[..]);
        (!is_same).then(|| file.damage(head.offset, 0, Problem::BlockHead))
    }

    fn rewind(&mut self, head: &BlockHead) {
        self.check = body_seed(head.recording, head.stream, head.epoch);
        (self.head, self.at, self.done) = (Some(*head), BLOCK_HEAD_BYTES, 0);
    }

    /// Discards the records not yet read.
    pub fn clear(&mut self) {
        self.head = None;
    }

    /// The body as far as it was read: for manifests.
    pub fn body(&self) -> &[u8] {
        let bytes = self.head.map_or(0, |head| narrow(head.body_bytes.into()));
        self.bytes.get(BLOCK_HEAD_BYTES..BLOCK_HEAD_BYTES + bytes).unwrap_or_default()
    }

    /// The next record and its payload; `None` after the last one.
    pub fn next(&mut self, file: &DataFile) -> Option<Result<(Record, &[u8]), DamagedPlace>> {
        let head = self.head?;
        let body_end = BLOCK_HEAD_BYTES + narrow(head.body_bytes.into());
        if self.done == head.records {
            self.head = None;
            return self.end_damage(file, &head, body_end).map(Err);
        }
        let sequence = head.first_sequence + u64::from(self.done);
        let here = self.bytes.get(self.at..body_end.min(self.bytes.len())).unwrap_or_default();
        let decoded = decode_record(here, self.check).filter(|(record, ..)| record.sequence == sequence);
        let Some((record, payload, check, bytes)) = decoded else {
            self.head = None;
            let problem = Problem::Record { stream: head.stream, sequence };
            let lost = head.bytes().saturating_sub(wide(self.at));
            return Some(Err(file.damage(head.offset + wide(self.at), lost, problem)));
        };
        self.at += bytes;
        self.check = check;
        self.done += 1;
        Some(Ok((record, payload)))
    }

    /// Like [`Block::next`], with the payload in `payload`.
    pub fn read(&mut self, file: &DataFile, payload: &mut Vec<u8>) -> Option<JournalRead> {
        let (stream, epoch) = self.head.as_ref().map(|head| (head.stream, head.epoch))?;
        Some(match self.next(file)? {
            Ok((record, bytes)) => {
                payload.clear();
                payload.extend_from_slice(bytes);
                JournalRead::Record(super::Record { stream, epoch, record })
            }
            Err(damage) => damage.into(),
        })
    }

    /// Damage after the records of a block.
    fn end_damage(&self, file: &DataFile, head: &BlockHead, body_end: usize) -> Option<DamagedPlace> {
        let behind = self.bytes.get(body_end..).unwrap_or_default();
        let is_whole = wide(self.bytes.len()) == head.bytes() && is_zero(behind);
        let is_right = match head.kind {
            BlockKind::Records => self.at == body_end && self.check == head.body_crc,
            _ => {
                crc32c::crc32c(self.bytes.get(BLOCK_HEAD_BYTES..body_end).unwrap_or_default())
                    == head.body_crc
            }
        };
        if is_whole && is_right {
            return None;
        }
        let problem =
            if head.kind == BlockKind::Manifest && !is_right { Problem::Manifest } else { Problem::BlockEnd };
        Some(file.damage(head.offset + wide(self.at), 0, problem))
    }

    /// Returns true if every byte of it is intact. Rewinds to its first record.
    pub fn is_whole(&mut self, file: &DataFile) -> bool {
        let Some(head) = self.head else { return false };
        let is_whole = loop {
            match self.next(file) {
                None => break true,
                Some(Err(_)) => break false,
                Some(Ok(_)) => {}
            }
        };
        self.rewind(&head);
        is_whole
    }
}
