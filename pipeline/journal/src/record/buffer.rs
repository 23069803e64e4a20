//! A block that is being filled.

use crate::{
    bytes::wide,
    layout::{BLOCK_HEAD_BYTES, BlockHead, block_bytes, body_seed, encode_record, record_bytes},
};
use lowlat_ipc::stream::Record;

/// Records of one stream, as they will be in the file. Allocated once and reused.
#[derive(Debug)]
pub struct BlockBuffer {
    /// Head and body; as long as the largest block, whatever it contains.
    bytes: Vec<u8>,
    /// Number of bytes filled, including the head.
    filled: usize,
    head: BlockHead,
}

impl BlockBuffer {
    /// Allocates blocks of this size. Writes every byte once, so that no page fault occurs later: zeros alone
    /// might only be promised by the allocator.
    pub fn new(block_bytes: usize) -> Self {
        Self { bytes: vec![1; block_bytes], filled: BLOCK_HEAD_BYTES, head: BlockHead::default() }
    }

    /// Clears it for records of this recording, stream and epoch.
    pub fn begin(&mut self, recording: u64, stream: u32, epoch: u64) {
        let body_crc = body_seed(recording, stream, epoch);
        let generated_min = u64::MAX;
        self.head = BlockHead { recording, stream, epoch, generated_min, body_crc, ..BlockHead::default() };
        self.filled = BLOCK_HEAD_BYTES;
    }

    /// The head of its contents.
    pub fn head(&self) -> &BlockHead {
        &self.head
    }

    pub fn is_empty(&self) -> bool {
        self.head.records == 0
    }

    /// Adds a record; returns false if it does not fit. An empty buffer grows for a record longer than itself.
    #[inline]
    pub fn push(&mut self, record: &Record, payload: &[u8]) -> bool {
        let end = self.filled + record_bytes(payload.len());
        if end > self.bytes.len() {
            if !self.is_empty() {
                return false;
            }
            self.bytes.resize(end.next_multiple_of(64), 0);
        }
        let Some(place) = self.bytes.get_mut(self.filled..end) else { return false };
        let head = &mut self.head;
        head.body_crc = encode_record(place, record, payload, head.body_crc);
        if head.records == 0 {
            head.first_sequence = record.sequence;
        }
        head.last_sequence = record.sequence;
        head.records += 1;
        head.generated_min = head.generated_min.min(record.stamp.generated);
        head.generated_max = head.generated_max.max(record.stamp.generated);
        self.filled = end;
        true
    }

    /// The whole block as written, with this head.
    pub fn seal(&mut self, head: &BlockHead) -> &[u8] {
        let bytes = crate::bytes::narrow(block_bytes(head.body_bytes));
        if self.bytes.len() < bytes {
            self.bytes.resize(bytes, 0);
        }
        if let Some(fill) = self.bytes.get_mut(self.filled..bytes) {
            fill.fill(0);
        }
        crate::bytes::put(&mut self.bytes, 0, &head.encode());
        self.bytes.get(..bytes).unwrap_or_default()
    }

    /// Its head with the length of the body.
    pub fn finished_head(&self) -> BlockHead {
        let body = wide(self.filled - BLOCK_HEAD_BYTES);
        BlockHead { body_bytes: u32::try_from(body).unwrap_or(u32::MAX), ..self.head }
    }
}
