//! The pipeline for programs in C and C++: nodes that join a running master, and recordings.
//!
//! cbindgen generates `include/lowlat.h` from these files; it is committed, and a test compares it. Comments on
//! public items are therefore written for readers of C. Rules for all functions:
//!
//! * No panic leaves this library: it becomes a status, and its handle can then only be released.
//! * Errors are reported as a status, with a text in [`lowlat_last_error`]. Neither allocates.
//! * A handle is used by one thread at a time. From within a handler its node may publish, but not poll, wait
//!   or leave.
//! * A node belongs to the process that joined. In a forked process it refuses everything and harms nothing.
#![expect(
    clippy::missing_safety_doc,
    reason = "in C nothing is safe; the header documents the requirements on pointers"
)]
#![cfg_attr(test, allow(clippy::borrow_as_ptr, reason = "as C gives addresses"))]

mod decode;
mod error;
mod join;
mod journal;
mod ledger;
#[cfg(test)]
#[path = "../../trade/tests/runtime/master_thread.rs"]
#[allow(dead_code, clippy::unnecessary_wraps, reason = "other tests use the rest")]
mod master_thread;
mod node;
mod publish;
mod records;
mod text;

pub use {decode::*, error::*, join::*, journal::*, ledger::*, node::*, publish::*, records::*};

use std::ffi::{CStr, c_char};

/// Version of this interface: of its structs, statuses and functions. Joining a master and opening a recording check
/// that the program was compiled with the header of the library in use.
pub const LOWLAT_ABI_VERSION: u32 = 5;

const VERSION: &CStr = match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
    Ok(version) => version,
    Err(_) => c"",
};

/// Version of lowlat, such as "0.1.0". The text is valid as long as the program runs.
#[unsafe(no_mangle)]
pub extern "C" fn lowlat_version() -> *const c_char {
    VERSION.as_ptr()
}

/// LOWLAT_ABI_VERSION of the library; the constant is that of the header.
#[unsafe(no_mangle)]
pub extern "C" fn lowlat_abi_version() -> u32 {
    LOWLAT_ABI_VERSION
}

/// Now, in the pipeline's clock: nanoseconds of CLOCK_MONOTONIC, or of the recording in a run over one. A process has the
/// clock of the run that it joined last.
#[unsafe(no_mangle)]
pub extern "C" fn lowlat_now_ns() -> u64 {
    lowlat_node::clock::now_ns()
}
