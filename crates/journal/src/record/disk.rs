//! The writing thread.

use super::{Buffer, Files, RecordError, Storage, Written};
use crate::layout::{BlockHead, manifest::StreamEntry};
use std::{
    sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError},
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

/// Writes until the senders are gone, then ends the recording. What waits is written together. After an error it takes
/// no more, so that the sender learns of it with its next block.
pub fn run<S: Storage>(
    mut files: Files<S>,
    jobs: &Receiver<Job>,
    empty: &SyncSender<Buffer>,
) -> Result<Written, RecordError> {
    loop {
        let job = match jobs.try_recv() {
            Ok(job) => job,
            Err(TryRecvError::Disconnected) => return files.finish(),
            Err(TryRecvError::Empty) => {
                files.settle()?;
                match jobs.recv_timeout(IDLE) {
                    Ok(job) => job,
                    Err(RecvTimeoutError::Disconnected) => return files.finish(),
                    Err(RecvTimeoutError::Timeout) => continue,
                }
            }
        };
        match job {
            Job::Block(mut buffer) => {
                files.append(&mut buffer)?;
                // Nobody takes it any more when the recorder is gone.
                empty.try_send(buffer).ok();
            }
            Job::Gap(head) => files.append_gap(&head)?,
            Job::Stream(entry) => files.add_stream(entry)?,
        }
        files.sync_if_due(false)?;
    }
}
