//! The media driver. Messages of IPC do not go through it, but it is no bystander either: it moves the limit up to which a
//! publication may write behind its readers, and clears what they have read, so it has to run once in each window.

use super::{text, told};
use rusteron_media_driver::{
    AeronDriver, AeronDriverContext, AeronIdleStrategyKind,
    bindings::aeron_threading_mode_enum::AERON_THREADING_MODE_SHARED,
};
use std::{ffi::CStr, path::Path};

/// Bytes of a term. A publication has three terms, and may be half of one ahead of its reader.
const TERM_BYTES: usize = 1 << 20;
/// Sleep of the driver between two checks of its publications, ns. Half a term is some 5,000 messages, which take
/// longer than this on every machine, so that no publication waits for the driver.
const REST_NS: &CStr = c"200000";

/// Starts a driver with one thread that sleeps between its checks. It ends when dropped; the creator of the folder
/// removes the folder.
pub fn start(folder: &Path) -> anyhow::Result<AeronDriver> {
    let context = told("settings of a driver", AeronDriverContext::new())?;
    told("folder", context.set_dir(&text(folder)?))?;
    told("threads", context.set_threading_mode(AERON_THREADING_MODE_SHARED))?;
    // Must be set before the strategy, which reads it.
    told("rest", context.set_shared_idle_strategy_init_args(REST_NS))?;
    told("rest", context.set_shared_idle_strategy_kind(AeronIdleStrategyKind::Sleeping))?;
    told("terms", context.set_ipc_term_buffer_length(TERM_BYTES))?;
    told("memory that is there before the run", context.set_term_buffer_sparse_file(false))?;
    let driver = told("driver", AeronDriver::new(&context))?;
    told("driver", driver.start(false))?;
    Ok(driver)
}
