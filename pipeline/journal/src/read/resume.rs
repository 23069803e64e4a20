//! Finds the place where a recording resumes.

use super::{Block, Recording, file::DataFile, index::FileIndex, recording::list};
use crate::{
    layout::{BlockHead, BlockKind, END_GOES_ON, FILE_NUMBER_MAX, index_name, manifest::StreamEntry},
    record::{
        CachedDisk, Place, RecordError, Storage, decompress_file,
        identity::{Clock, Identity, boot_id},
    },
};
use rustix::fs::OFlags;
use std::{
    fs::{self, OpenOptions},
    io,
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::Path,
};

/// Returns the identity of the recording in a directory and the place where it resumes: a new file, after the last
/// record proven intact. `None` if the directory holds no recording.
pub fn resume(folder: &Path) -> Result<Option<(Identity, Place)>, RecordError> {
    let listing = list(folder).map_err(RecordError::refused(folder, "read the directory"))?;
    // A missing file keeps its number if its index exists.
    let last_file = listing.data.last().copied().unwrap_or(0).max(listing.last_index);
    if last_file == 0 {
        return Ok(None);
    }
    let other = |why: String| {
        let folder = folder.display();
        RecordError(format!("cannot resume the recording in {folder}: {why}\nhint: name a new directory"))
    };
    // The caller holds the lock, and has not written yet.
    let recording = Recording::open_as(folder, false).map_err(|error| other(error.to_string()))?;
    let number = recording.number().ok_or_else(|| other("none of its blocks can be read".to_owned()))?;
    let boot = boot_id();
    let made_in = recording.files().iter().rev().find_map(|file| file.head).map(|head| head.boot_id);
    if let Some(made_in) = made_in
        && made_in != boot
        && made_in != [0; 16]
        && boot != [0; 16]
    {
        return Err(other("the host was rebooted since, which restarted its clock".to_owned()));
    }
    let mut streams: Vec<StreamEntry> = recording.streams().to_vec();
    let mut block = 1;
    for (at, file) in recording.files().iter().enumerate().rev() {
        let Ok((_, index)) = recording.open_indexed(at) else { continue };
        if let Some(head) = index.scan.blocks.last() {
            block = block.max(head.number + 1);
            read_on(&recording, &mut streams, at);
            break;
        }
        block = block.max(file.head.map_or(1, |head| head.first_block));
    }
    if last_file == FILE_NUMBER_MAX {
        return Err(other(format!("its files are numbered up to {last_file}")));
    }
    let identity = Identity { recording: number, boot_id: boot, clock: Clock::System };
    Ok(Some((identity, Place { file: last_file + 1, block, streams })))
}

/// Makes the end of a file announce the file that now follows it, so that its loss can be detected. A file
/// without an end is unchanged. The index is removed first, since it has a copy of the end, and regenerated.
pub fn name_next_file(folder: &Path, file: u64, recording: u64) -> Result<(), RecordError> {
    decompress_file(folder, file).map_err(RecordError::refused(folder, "decompress the last file of"))?;
    let Ok(data) = DataFile::open_of(folder, file, Some(recording)) else { return Ok(()) };
    let index = FileIndex::load(&data, Some(recording), false);
    let end = index.scan.blocks.last().filter(|last| last.kind == BlockKind::End && !last.goes_on());
    let Some(end) = end else { return Ok(()) };
    let refused = |source| RecordError::refused(&data.path, "update the end of")(source);
    let index_path = folder.join(index_name(file));
    match fs::remove_file(&index_path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => return Err(refused(source)),
        _ => {}
    }
    let flags = i32::try_from((OFlags::NONBLOCK | OFlags::NOFOLLOW).bits()).unwrap_or(0);
    let out = OpenOptions::new().write(true).custom_flags(flags).open(&data.path).map_err(refused)?;
    let named = BlockHead { detail: END_GOES_ON, ..*end };
    out.write_all_at(&named.encode(), end.offset).and_then(|()| out.sync_data()).map_err(refused)?;
    if let Some(bytes) = FileIndex::load(&data, Some(recording), false).encode(&data, recording) {
        // It only saves time.
        CachedDisk.write_whole(&index_path, &bytes).ok();
    }
    Ok(())
}

/// Advances streams to the last intact record of a file. In files with an end the heads of blocks are reliable;
/// in one without an end the last block may be torn, so each stream's last block is read.
fn read_on(recording: &Recording, streams: &mut [StreamEntry], at: usize) {
    let Ok((data, index)) = recording.open_indexed(at) else { return };
    let start = recording.files().get(at).and_then(|file| file.streams.clone()).unwrap_or_default();
    let mut block = Block::default();
    for (number, stream) in (0_u32..).zip(streams) {
        if let Some(entry) = start.get(crate::bytes::narrow(number.into())) {
            (stream.next_sequence, stream.generated_max) = (entry.next_sequence, entry.generated_max);
        }
        for nth in 0..index.blocks_of(number) {
            let Some(head) = index.block_of(number, nth) else { break };
            stream.generated_max = stream.generated_max.max(head.generated_max);
            let is_last = nth + 1 == index.blocks_of(number);
            if head.kind == BlockKind::Gap || !is_last {
                stream.next_sequence = head.last_sequence + 1;
                continue;
            }
            block.load(&data, head);
            while let Some(Ok((record, _))) = block.next(&data) {
                stream.next_sequence = record.sequence + 1;
            }
        }
    }
}
