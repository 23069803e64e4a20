//! The writing thread.

use super::{BlockBuffer, Files, RecordError, Storage, Written};
use crate::layout::{BlockHead, manifest::StreamEntry};
use std::{
    sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError},
    time::Duration,
};

/// A job of the writing thread.
pub enum WriteJob {
    Block(BlockBuffer),
    Gap(BlockHead),
    Stream(StreamEntry),
    End,
}

/// Interval at which an idle thread checks whether a sync is due.
const IDLE: Duration = Duration::from_millis(100);

/// Writes until the end of the recording, or until the senders are dropped without it, which cuts it short. Writes
/// pending jobs together. After an error it accepts no more, so that the sender learns of it with its next block.
pub fn run<S: Storage>(
    mut files: Files<S>,
    jobs: &Receiver<WriteJob>,
    empty: &SyncSender<BlockBuffer>,
) -> Result<Written, RecordError> {
    loop {
        let job = match jobs.try_recv() {
            Ok(job) => job,
            Err(TryRecvError::Disconnected) => break,
            Err(TryRecvError::Empty) => {
                files.settle()?;
                files.roll_if_due()?;
                match jobs.recv_timeout(IDLE) {
                    Ok(job) => job,
                    Err(RecvTimeoutError::Disconnected) => break,
                    Err(RecvTimeoutError::Timeout) => continue,
                }
            }
        };
        match job {
            WriteJob::Block(mut buffer) => {
                files.append(&mut buffer)?;
                // Fails if the recorder has been dropped.
                empty.try_send(buffer).ok();
            }
            WriteJob::Gap(head) => files.append_gap(&head)?,
            WriteJob::Stream(entry) => files.add_stream(entry)?,
            WriteJob::End => return files.finish(),
        }
        files.sync_if_due(false)?;
        files.roll_if_due()?;
    }
    files.cut_short();
    Ok(files.written())
}
