//! Aeron as the carrier: media driver, publication and subscription.

mod driver;
mod publication;
mod subscription;

pub use driver::drive;
pub use publication::Publication;
pub use subscription::Subscription;

use lowlat_node::Refusal;
use rusteron_media_driver::{Aeron, AeronCError, AeronContext};
use std::{
    ffi::CString,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

/// Longest wait for an answer of the driver.
const ANSWER_MAX: Duration = Duration::from_secs(10);

/// The refusal for an error of Aeron; `doing` is the attempted operation.
fn refused(doing: &str, source: AeronCError, next: &str) -> Refusal {
    // Aeron keeps its error text only until its next call.
    Refusal::new(format!("cannot {doing}: {}\nhint: {next}", source.capture_errmsg()))
}

/// A client of the media driver in `dir`.
#[derive(Debug)]
pub struct Link {
    aeron: Aeron,
    /// The error reported by its conductor's thread.
    failed: Arc<Mutex<Option<String>>>,
}

impl Link {
    /// Connects to a running driver.
    pub fn open(dir: &Path) -> Result<Self, Refusal> {
        let failed = Arc::new(Mutex::new(None));
        let aeron = client(dir, Arc::clone(&failed)).map_err(|source| {
            let doing = format!("reach a media driver in {}", dir.display());
            refused(&doing, source, "start one in that directory: lowlat-bridge driver")
        })?;
        Ok(Self { aeron, failed })
    }

    /// The first background error, such as the end of the driver.
    fn failed(&self) -> Option<String> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn client(dir: &Path, failed: Arc<Mutex<Option<String>>>) -> Result<Aeron, AeronCError> {
    let context = AeronContext::new()?;
    context.set_dir(&text(&dir.display().to_string()))?;
    // Without a handler Aeron ends the process.
    context.set_error_handler(Some(move |code: i32, words: &str| {
        let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
        failed.get_or_insert_with(|| format!("Aeron error {code}: {words}"));
    }))?;
    let aeron = Aeron::new(&context)?;
    aeron.start()?;
    Ok(aeron)
}

/// A text for C. It is truncated at a zero byte, as in C.
fn text(text: &str) -> CString {
    let bytes: Vec<u8> = text.bytes().take_while(|byte| *byte != 0).collect();
    CString::new(bytes).unwrap_or_default()
}
