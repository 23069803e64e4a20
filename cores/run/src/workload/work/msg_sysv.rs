//! System V message queues.

use crate::workload::{Kind, Scale, Workload, WorkloadError, WorkloadJob, removal::Removal, work::done};

pub const WORKLOAD: Workload = Workload {
    name: "msg-sysv",
    about: "one process sends messages of 4 bytes to another through a System V queue",
    unit: "messages",
    kind: Kind::Processes { per_copy: 2, make },
};

const MODE: i32 = 0o600;
/// Bytes of a message, as in stress-ng.
const BYTES: usize = 4;

/// A message with its type.
#[repr(C)]
struct Message {
    kind: libc::c_long,
    text: [u8; BYTES],
}

fn make(scale: Scale<'_>) -> Result<WorkloadJob, WorkloadError> {
    let create = || {
        // SAFETY: numbers only.
        let id = unsafe { libc::msgget(libc::IPC_PRIVATE, libc::IPC_CREAT | MODE) };
        done(id.into()).map(|()| id)
    };
    let queues =
        Removal::of(remove, scale.copies, create).map_err(WorkloadError::cannot("make System V queues"))?;
    Ok(Box::new(move |copy, is_counted, pace| {
        let queue = queues.id(copy);
        let mut message = Message { kind: 1, text: [0; BYTES] };
        if !is_counted {
            // SAFETY: the message has BYTES after its type, and lives through the call.
            let send = || unsafe { libc::msgsnd(queue, (&raw const message).cast(), BYTES, 0) };
            return pace.serve(|| done(send().into()));
        }
        pace.count(|| {
            // SAFETY: the message has room for BYTES after its type, and lives through the call.
            let got = unsafe { libc::msgrcv(queue, (&raw mut message).cast(), BYTES, 0, 0) };
            done(i64::try_from(got).unwrap_or(0))
        })
    }))
}

pub fn remove(queue: i32) {
    // SAFETY: IPC_RMID does not use the buffer.
    unsafe { libc::msgctl(queue, libc::IPC_RMID, std::ptr::null_mut()) };
}
