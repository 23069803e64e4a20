//! Statuses, their texts, and the boundary that no panic crosses.

use crate::text::Text;
use lowlat_ipc::stream;
use lowlat_node::{JoinError, NodeEnded, NodePublishError};
use std::{
    any::Any,
    cell::RefCell,
    ffi::c_char,
    fmt::Display,
    mem,
    panic::{AssertUnwindSafe, catch_unwind},
};

/// Result of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Status {
    /// Success.
    Ok = 0,
    /// An invalid argument: NULL, not UTF-8, or a number out of range.
    Argument = 1,
    /// The program was compiled with the header of another version.
    Version = 2,
    /// The node is in use: its handler is running, or another thread is in one of its functions.
    Busy = 3,
    /// No master listens at the socket.
    Unreachable = 4,
    /// The master refused this node, when it joined or later, or the stream refused this record.
    Refused = 5,
    /// The master did not answer, or closed the connection.
    Silent = 6,
    /// The master's data is unusable: processes of different versions, or no memory to map.
    Unusable = 7,
    /// A system error.
    System = 8,
    /// The node joined without a stream.
    NoStream = 9,
    /// The master dropped this process, and another may have replaced it. Exit and restart.
    Fenced = 10,
    /// The master died without stopping its nodes, and they stop with it.
    MasterGone = 11,
    /// The payload is too long for the stream.
    TooLong = 12,
    /// A subscriber that must not lose records has no room. Retry once it has read.
    NoCredit = 13,
    /// The record has another kind, or is damaged.
    WrongRecord = 14,
    /// The recording cannot be read.
    Journal = 15,
    /// The recording has no more records.
    End = 16,
    /// The node belongs to the process that this one was forked from. Join in this process.
    Forked = 17,
    /// The run's master has no ledger of td, with the open orders and positions of strategies.
    NoLedger = 18,
    /// td changes its ledger all the time, or died in the middle of a change. Try again.
    LedgerBusy = 19,
    /// The array is too small for all of them.
    TooMany = 20,
    /// A bug in this library. The handle is unusable: release it.
    Internal = 99,
}

/// Largest error text, in bytes.
const TEXT_BYTES: usize = 1024;

thread_local! {
    static LAST: RefCell<Text<TEXT_BYTES>> = const { RefCell::new(Text::new()) };
}

/// Text of the last call of this thread that did not return LOWLAT_STATUS_OK: what was found, what was
/// expected, and what to do. "" before the first. Valid until the next such call of this thread.
#[unsafe(no_mangle)]
pub extern "C" fn lowlat_last_error() -> *const c_char {
    LAST.with(|last| last.borrow().as_ptr())
}

/// A nonzero number of the calling thread, unique among running threads.
pub fn this_thread() -> usize {
    LAST.with(|last| std::ptr::from_ref(last).addr())
}

/// Stores the text for [`lowlat_last_error`].
pub fn fail(status: Status, text: &dyn Display) -> Status {
    LAST.with(|last| {
        // A Display that calls back into this library would find it borrowed; none does.
        if let Ok(mut last) = last.try_borrow_mut() {
            last.set_to(text);
        }
    });
    status
}

/// Runs the body of a C function. Turns a panic into a status, and calls `on_panic`.
pub fn guard(work: impl FnOnce() -> Result<(), Status>, on_panic: impl FnOnce()) -> Status {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => Status::Ok,
        Ok(Err(status)) => status,
        Err(panic) => {
            on_panic();
            let words = words_of(&*panic);
            let text = format_args!("bug in lowlat: {words}\nhint: release the handle, and report this");
            let status = fail(Status::Internal, &text);
            // Its drop might panic as well.
            mem::forget(panic);
            status
        }
    }
}

fn words_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a message")
}

pub fn null(what: &str) -> Status {
    fail(Status::Argument, &format_args!("{what} is NULL\nhint: give it a value"))
}

pub fn of_join(error: &JoinError) -> Status {
    let status = match error {
        JoinError::Name { .. } => Status::Argument,
        JoinError::Unreachable { .. } => Status::Unreachable,
        JoinError::Refused { .. } => Status::Refused,
        JoinError::Silent { .. } | JoinError::Closed { .. } => Status::Silent,
        JoinError::Unusable { .. } => Status::Unusable,
        JoinError::Other(_) => Status::System,
    };
    fail(status, error)
}

pub fn of_publish(error: NodePublishError) -> Status {
    let status = match error {
        NodePublishError::NoStream => Status::NoStream,
        NodePublishError::Forked { .. } => Status::Forked,
        NodePublishError::Instrument { .. } => Status::Argument,
        NodePublishError::Refused(stream::PublishError::Fenced { .. }) => Status::Fenced,
        NodePublishError::Refused(stream::PublishError::TooLong { .. }) => Status::TooLong,
        NodePublishError::Refused(stream::PublishError::NoCredit { .. }) => Status::NoCredit,
        NodePublishError::Refused(_) => Status::Refused,
    };
    fail(status, &error)
}

pub fn of_ended(ended: &NodeEnded) -> Status {
    let status = match ended {
        NodeEnded::Fenced => Status::Fenced,
        NodeEnded::Refused { .. } => Status::Refused,
        NodeEnded::MasterGone => Status::MasterGone,
        NodeEnded::Forked { .. } => Status::Forked,
    };
    fail(status, ended)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    fn last() -> String {
        // SAFETY: the function returns a zero-terminated text, valid until the next failure of this thread.
        unsafe { CStr::from_ptr(lowlat_last_error()) }.to_str().unwrap().to_owned()
    }

    #[test]
    fn a_panic_becomes_a_status_with_its_message() {
        let mut told = false;
        assert_eq!(guard(|| panic!("seven {}", 7), || told = true), Status::Internal);
        assert!(told && last().contains("seven 7"), "{}", last());
        let status = guard(|| std::panic::panic_any(5_u8), || ());
        assert_eq!((status, last().contains("without a message")), (Status::Internal, true));
    }

    #[test]
    fn error_texts_are_per_thread_and_outlive_successful_calls() {
        assert_eq!(guard(|| Err(null("node")), || panic!()), Status::Argument);
        assert!(last().contains("node is NULL"));
        std::thread::spawn(|| assert_eq!(last(), "")).join().unwrap();
        assert_eq!(guard(|| Ok(()), || panic!()), Status::Ok);
        assert!(last().contains("node is NULL"));
    }

    #[test]
    fn refusals_have_distinct_statuses() {
        let too_long = stream::PublishError::TooLong { bytes: 9, bytes_max: 8 };
        for (error, status) in [
            (NodePublishError::NoStream, Status::NoStream),
            (NodePublishError::Forked { pid: 7 }, Status::Forked),
            (stream::PublishError::Fenced { successor: 2 }.into(), Status::Fenced),
            (too_long.into(), Status::TooLong),
            (stream::PublishError::NoCredit { subscriber: 3 }.into(), Status::NoCredit),
            (stream::PublishError::Kind { kind: 0xffff }.into(), Status::Refused),
        ] {
            assert_eq!(of_publish(error), status);
            assert_eq!(last(), error.to_string());
        }
        for (ended, status) in [
            (NodeEnded::Fenced, Status::Fenced),
            (NodeEnded::Refused { reason: "join once".to_owned() }, Status::Refused),
            (NodeEnded::MasterGone, Status::MasterGone),
            (NodeEnded::Forked { pid: 7 }, Status::Forked),
        ] {
            assert_eq!(of_ended(&ended), status);
            assert_eq!(last(), ended.to_string());
        }
    }
}
