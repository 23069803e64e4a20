//! The writing thread.

use super::{Buffer, Files, RecordError, Storage, Written};
use crate::layout::{BlockHead, manifest::StreamEntry};
use std::{
    sync::mpsc::{Receiver, RecvTimeoutError, SyncSender},
    time::Duration,
};

/// What the writing thread is told.
pub enum Job {
    /// A block to write.
    Block(Buffer),
    /// A gap to write down.
    Gap(BlockHead),
    /// A stream that comes new.
    Stream(StreamEntry),
}

/// How often an idle thread looks whether a sync is due.
const IDLE: Duration = Duration::from_millis(100);

/// Writes until the senders are gone, then ends the recording. After an error it takes no more, so that the sender
/// learns of it with its next block.
pub fn run<S: Storage>(
    mut files: Files<S>,
    jobs: &Receiver<Job>,
    empty: &SyncSender<Buffer>,
) -> Result<Written, RecordError> {
    loop {
        match jobs.recv_timeout(IDLE) {
            Ok(Job::Block(mut buffer)) => {
                files.append(&mut buffer)?;
                // Nobody takes it any more when the recorder is gone.
                empty.try_send(buffer).ok();
            }
            Ok(Job::Gap(head)) => files.append_gap(&head)?,
            Ok(Job::Stream(entry)) => files.add_stream(entry)?,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return files.finish(),
        }
        files.sync_if_due()?;
    }
}
