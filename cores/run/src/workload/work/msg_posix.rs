//! POSIX message queues.

use crate::workload::{Kind, Scale, Workload, WorkloadError, WorkloadJob, work::done};
use std::{ffi::CString, io};

pub const WORKLOAD: Workload = Workload {
    name: "msg-posix",
    about: "one process sends messages of 4 bytes to another through a POSIX queue",
    unit: "messages",
    kind: Kind::Processes { per_copy: 2, make },
};

/// Messages that a queue holds: the kernel's default limit.
const DEPTH: libc::c_long = 10;
const BYTES: usize = 4;
const MODE: libc::mode_t = 0o600;

/// Open queues; their names are already removed, so the kernel removes them with the last process.
struct PosixQueues(Vec<libc::mqd_t>);

fn make(scale: Scale<'_>) -> Result<WorkloadJob, WorkloadError> {
    let mut queues = PosixQueues(Vec::with_capacity(scale.copies));
    for copy in 0..scale.copies {
        queues.0.push(open(copy).map_err(WorkloadError::cannot(
            "make a POSIX queue (RLIMIT_MSGQUEUE and /proc/sys/fs/mqueue limit them)",
        ))?);
    }
    Ok(Box::new(move |copy, is_counted, pace| {
        let queue = queues.0.get(copy).copied().unwrap_or(-1);
        let mut text = [0; BYTES];
        if !is_counted {
            // SAFETY: the text lives through the call and has BYTES.
            return pace.serve(|| done(unsafe { libc::mq_send(queue, text.as_ptr(), BYTES, 0) }.into()));
        }
        pace.count(|| {
            // SAFETY: the text lives through the call and has room for BYTES, the queue's size of messages.
            let got = unsafe { libc::mq_receive(queue, text.as_mut_ptr(), BYTES, std::ptr::null_mut()) };
            done(i64::try_from(got).unwrap_or(0))
        })
    }))
}

fn open(copy: usize) -> io::Result<libc::mqd_t> {
    let name = CString::new(format!("/lowlat-{}-{copy}", std::process::id()))?;
    // SAFETY: plain data, in which zero is the default.
    let mut form: libc::mq_attr = unsafe { std::mem::zeroed() };
    form.mq_maxmsg = DEPTH;
    form.mq_msgsize = libc::c_long::try_from(BYTES).unwrap_or(0);
    let flags = libc::O_CREAT | libc::O_EXCL | libc::O_RDWR | libc::O_CLOEXEC;
    // SAFETY: the name ends with a zero, and the form lives through the call.
    let queue = unsafe { libc::mq_open(name.as_ptr(), flags, MODE, &raw mut form) };
    done(queue.into())?;
    // SAFETY: the name ends with a zero.
    done(unsafe { libc::mq_unlink(name.as_ptr()) }.into()).map(|()| queue)
}

impl Drop for PosixQueues {
    fn drop(&mut self) {
        for queue in &self.0 {
            // SAFETY: it was opened in `open` and is closed once.
            unsafe { libc::mq_close(*queue) };
        }
    }
}
