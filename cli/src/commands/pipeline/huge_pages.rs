//! Huge pages for the duration of a run, released however it ends.

use crate::output;
use lowlat_tune_run::huge_pages::HugePages;
use std::sync::{Mutex, PoisonError};

/// The reservation, for code that ends the process without unwinding.
static RESERVED: Mutex<Option<HugePages>> = Mutex::new(None);

/// Pages are reserved while it lives.
#[derive(Debug)]
pub struct Reserved(());

impl Reserved {
    /// Reserves pages until `pages` are free. Prints how to release them manually.
    pub fn pages(pages: u64) -> anyhow::Result<Self> {
        let pool = HugePages::reserve(pages)?;
        let (before, now, file) = (pool.before, pool.now, HugePages::file());
        RESERVED.lock().unwrap_or_else(PoisonError::into_inner).replace(pool);
        output::talk(&format!(
            "reserved {now} pages of 2 MiB until the end; if lowlat is killed, release them: echo {before} > {file}"
        ));
        Ok(Self(()))
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        give_back();
    }
}

/// Releases the reservation. A second call does nothing.
pub fn give_back() {
    let pool = RESERVED.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(Err(error)) = pool.map(HugePages::release) {
        output::talk(&format!("lowlat: {error}"));
    }
}
