//! Aeron as the carrier: the media driver, and a publication and a subscription of it.

mod driver;
mod publication;
mod subscription;

pub use driver::drive;
pub use publication::Publication;
pub use subscription::{PollError, Subscription};

use rusteron_media_driver::{Aeron, AeronCError, AeronContext};
use std::{
    ffi::CString,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use thiserror::Error;

/// How long the driver may take to answer.
const ANSWER_MAX: Duration = Duration::from_secs(10);

/// Why Aeron does not work.
#[derive(Debug, Error)]
#[error("cannot {doing}: {words}; {next}")]
pub struct AeronError {
    doing: String,
    words: String,
    next: &'static str,
}

impl AeronError {
    fn new(doing: String, source: AeronCError, next: &'static str) -> Self {
        // Aeron keeps its words only until its next call.
        Self { doing, words: source.capture_errmsg().to_string(), next }
    }
}

/// A client of the media driver whose folder is `dir`.
#[derive(Debug)]
pub struct Link {
    aeron: Aeron,
    /// What its conductor's thread says.
    failed: Arc<Mutex<Option<String>>>,
}

impl Link {
    /// Connects to a driver that runs.
    pub fn open(dir: &Path) -> Result<Self, AeronError> {
        let failed = Arc::new(Mutex::new(None));
        let aeron = client(dir, Arc::clone(&failed)).map_err(|source| {
            let doing = format!("reach a media driver at {}", dir.display());
            AeronError::new(doing, source, "start one on that folder: lowlat-bridge driver")
        })?;
        Ok(Self { aeron, failed })
    }

    /// What went wrong in the background, the first of it; for instance that the driver is gone.
    fn failed(&self) -> Option<String> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn client(dir: &Path, failed: Arc<Mutex<Option<String>>>) -> Result<Aeron, AeronCError> {
    let context = AeronContext::new()?;
    context.set_dir(&text(&dir.display().to_string()))?;
    // Without a handler of ours Aeron ends the process.
    context.set_error_handler(Some(move |code: i32, words: &str| {
        let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
        failed.get_or_insert_with(|| format!("Aeron error {code}: {words}"));
    }))?;
    let aeron = Aeron::new(&context)?;
    aeron.start()?;
    Ok(aeron)
}

/// For C. What comes behind a zero byte is cut off, as C would.
fn text(text: &str) -> CString {
    let bytes: Vec<u8> = text.bytes().take_while(|byte| *byte != 0).collect();
    CString::new(bytes).unwrap_or_default()
}
