//! Compressed data files, as they were before.
//!
//! The bytes of a data file in pieces, each an independent frame of Zstandard, with a table of them at the end (zstd's
//! seekable format). Offsets, and so blocks and indexes, are those of the data file.

use crate::bytes::{narrow, u32_at, wide};
use std::{
    collections::VecDeque,
    fs::File,
    io,
    os::unix::fs::FileExt,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread::{self, Thread},
};
use zstd_safe::DCtx;

/// Bytes of the data file in a frame.
pub const FRAME_BYTES: usize = 256 << 10;
/// Largest frame that is read, decompressed and compressed.
const FRAME_BYTES_MAX: usize = 4 << 20;
/// Decompressed frames that are kept for one reader. Each further one has one more: their blocks, which are read in turn,
/// share frames.
const KEPT: usize = 16;
/// Largest number of frames that are kept: 64 MiB.
const KEPT_MAX: usize = 256;
/// Frames that a second thread decompresses before they are read.
const AHEAD: usize = 8;
const CLOSED: usize = usize::MAX;
const TABLE_MAGIC: u32 = 0x184d_2a5e;
const FOOTER_MAGIC: u32 = 0x8f92_eab1;
const SKIPPABLE_HEAD_BYTES: usize = 8;
const ENTRY_BYTES: u64 = 8;
const FOOTER_BYTES: usize = 9;
/// Byte in place of those that cannot be decompressed: no head of a block, and no record, has only these.
const DAMAGED: u8 = 0xff;

/// Where a frame starts in its file, and where its data starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Frame {
    at: u64,
    start: u64,
}

/// A frame's bytes, once one of the threads has decompressed it.
type Decompressed = Arc<OnceLock<io::Result<Vec<u8>>>>;

/// A compressed data file, open for reading.
#[derive(Debug)]
pub struct PackedFile {
    frames: Arc<Frames>,
    /// The thread that decompresses ahead; `None` if it could not be started.
    ahead: OnceLock<Option<Thread>>,
}

#[derive(Debug)]
struct Frames {
    file: File,
    /// The frames, and one that starts at the end of the last.
    all: Vec<Frame>,
    /// The frame after the one that was read last: 0 before the first, [`CLOSED`] after the last.
    next: AtomicUsize,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    frames: VecDeque<(usize, Decompressed)>,
    /// Readers that have shared the file so far.
    readers: usize,
}

impl PackedFile {
    /// Opens a file by its table. Without an intact one the frames are found one by one, up to the first damage.
    pub fn open(file: File, bytes: u64) -> io::Result<Self> {
        let frames = match read_table(&file, bytes)? {
            Some(frames) => frames,
            None => find_frames(&file, bytes)?,
        };
        let frames = Frames { file, all: frames, next: AtomicUsize::new(0), kept: Mutex::default() };
        Ok(Self { frames: Arc::new(frames), ahead: OnceLock::new() })
    }

    /// Another reader uses it.
    pub fn share(&self) {
        self.frames.kept().readers += 1;
    }

    /// Decompresses what follows in a second thread from now on.
    pub fn read_ahead(&self) {
        self.ahead.get_or_init(|| {
            let frames = Arc::clone(&self.frames);
            // Without the thread, reading is only slower.
            let thread =
                thread::Builder::new().name("lowlat-ahead".to_owned()).spawn(move || frames.run_ahead());
            thread.ok().map(|thread| thread.thread().clone())
        });
    }

    /// Tells the thread that decompresses ahead which frame comes next.
    fn note_next(&self, frame: usize) {
        if let Some(Some(ahead)) = self.ahead.get() {
            // Pairs with the load in `run_ahead`.
            self.frames.next.store(frame, Ordering::Release);
            ahead.unpark();
        }
    }

    /// Bytes of the data file.
    pub fn bytes(&self) -> u64 {
        self.frames.all.last().map_or(0, |end| end.start)
    }

    /// Reads bytes of the data file; fewer only at its end.
    pub fn read(&self, mut bytes: &mut [u8], mut offset: u64) -> io::Result<usize> {
        let mut total = 0;
        while !bytes.is_empty() && offset < self.bytes() {
            let frames = &*self.frames;
            let at = frames.all.partition_point(|frame| frame.start <= offset) - 1;
            self.note_next(at + 1);
            let frame = frames.frame(at);
            let data = frame.get_or_init(|| frames.decompress(at)).as_ref();
            let data = data.map_err(|error| io::Error::new(error.kind(), error.to_string()))?;
            let begin = narrow(offset - frames.all.get(at).map_or(0, |frame| frame.start));
            let data = data.get(begin..).unwrap_or_default();
            let (now, rest) = bytes.split_at_mut(data.len().min(bytes.len()));
            now.copy_from_slice(data.get(..now.len()).unwrap_or_default());
            (total, offset) = (total + now.len(), offset + wide(now.len()));
            bytes = rest;
        }
        Ok(total)
    }
}

impl Drop for PackedFile {
    fn drop(&mut self) {
        self.note_next(CLOSED);
    }
}

impl Frames {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        // A panic of another reader leaves the list consistent.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Decompresses what follows the frame that is read, until nobody reads any more.
    fn run_ahead(&self) {
        let mut done = 0;
        loop {
            // Pairs with the store in `note_next`.
            let next = self.next.load(Ordering::Acquire);
            if next == CLOSED {
                return;
            }
            // A reader that is a little behind another finds what that has needed.
            if (next..next + KEPT).contains(&done) {
                thread::park();
                continue;
            }
            done = next;
            for at in next..next + AHEAD {
                _ = self.frame(at).get_or_init(|| self.decompress(at));
            }
        }
    }

    /// A frame, which the caller decompresses unless another thread does.
    fn frame(&self, at: usize) -> Decompressed {
        let Kept { frames, readers } = &mut *self.kept();
        if let Some((_, data)) = frames.iter().find(|(of, _)| *of == at) {
            return Arc::clone(data);
        }
        let data = Decompressed::default();
        frames.truncate((KEPT + *readers).min(KEPT_MAX) - 1);
        frames.push_front((at, Arc::clone(&data)));
        data
    }

    fn decompress(&self, at: usize) -> io::Result<Vec<u8>> {
        let Some([frame, next]) = self.all.get(at..at + 2) else { return Ok(Vec::new()) };
        let mut packed = vec![0; narrow(next.at - frame.at)];
        self.file.read_exact_at(&mut packed, frame.at)?;
        let mut data = vec![0; narrow(next.start - frame.start)];
        let found =
            DCtx::try_create().and_then(|mut context| context.decompress(&mut data[..], &packed).ok());
        if found != Some(data.len()) {
            data.fill(DAMAGED);
        }
        Ok(data)
    }
}

/// The frames of a file by the table at its end; `None` if there is no intact one.
fn read_table(file: &File, bytes: u64) -> io::Result<Option<Vec<Frame>>> {
    let Some(footer_at) = bytes.checked_sub(wide(FOOTER_BYTES)) else { return Ok(None) };
    let mut footer = [0; FOOTER_BYTES];
    file.read_exact_at(&mut footer, footer_at)?;
    let (count, is_plain) = (u32_at(&footer, 0), footer.get(4) == Some(&0));
    let table_bytes = u64::from(count) * ENTRY_BYTES + wide(SKIPPABLE_HEAD_BYTES + FOOTER_BYTES);
    let Some(table_at) =
        bytes.checked_sub(table_bytes).filter(|_| is_plain && u32_at(&footer, 5) == FOOTER_MAGIC)
    else {
        return Ok(None);
    };
    let mut table = vec![0; narrow(table_bytes)];
    file.read_exact_at(&mut table, table_at)?;
    if u32_at(&table, 0) != TABLE_MAGIC {
        return Ok(None);
    }
    let entries = table.get(SKIPPABLE_HEAD_BYTES..table.len() - FOOTER_BYTES);
    let mut frames = vec![Frame { at: 0, start: 0 }];
    for entry in entries.unwrap_or_default().chunks_exact(narrow(ENTRY_BYTES)) {
        frames.extend(following(frames.last(), u32_at(entry, 0) as usize, u32_at(entry, 4) as usize));
    }
    let is_whole = frames.len() == count as usize + 1 && frames.last().is_some_and(|end| end.at == table_at);
    Ok(is_whole.then_some(frames))
}

/// The frame after one of these sizes, if they are possible.
fn following(frame: Option<&Frame>, packed: usize, data: usize) -> Option<Frame> {
    let frame =
        frame.filter(|_| (1..=FRAME_BYTES_MAX).contains(&packed) && (1..=FRAME_BYTES_MAX).contains(&data))?;
    Some(Frame { at: frame.at + wide(packed), start: frame.start + wide(data) })
}

fn find_frames(file: &File, bytes: u64) -> io::Result<Vec<Frame>> {
    let mut frames = vec![Frame { at: 0, start: 0 }];
    let mut buffer = vec![0; FRAME_BYTES_MAX];
    loop {
        let at = frames.last().map_or(0, |frame| frame.at);
        let rest = narrow(bytes.saturating_sub(at)).min(buffer.len());
        let packed = buffer.get_mut(..rest).unwrap_or_default();
        file.read_exact_at(packed, at)?;
        let sizes = zstd_safe::find_frame_compressed_size(packed)
            .ok()
            .zip(zstd_safe::get_frame_content_size(packed).ok().flatten());
        let next = sizes.and_then(|(packed, data)| following(frames.last(), packed, narrow(data)));
        let Some(next) = next else { return Ok(frames) };
        frames.push(next);
    }
}

/// The table of frames of these compressed sizes and sizes.
pub fn table_of(sizes: &[[usize; 2]]) -> Vec<u8> {
    let number = |value: usize| u32::try_from(value).unwrap_or(u32::MAX).to_le_bytes();
    let entries = sizes.as_flattened().iter().flat_map(|size| number(*size));
    let content = 8 * sizes.len() + FOOTER_BYTES;
    let mut bytes: Vec<u8> =
        TABLE_MAGIC.to_le_bytes().into_iter().chain(number(content)).chain(entries).collect();
    bytes.extend(number(sizes.len()).into_iter().chain([0]).chain(FOOTER_MAGIC.to_le_bytes()));
    bytes
}
