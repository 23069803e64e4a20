//! Pages of 2 MiB, reserved for the duration of a run if the user allows it.

use crate::output;
use anyhow::{Context, ensure};
use std::{
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

const POOL: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB";

/// The reserved pool, for code that ends the process without unwinding.
static RESERVED: Mutex<Option<Pool>> = Mutex::new(None);

/// A pool of huge pages, and its number of pages before the reservation.
#[derive(Debug, Clone)]
struct Pool {
    folder: PathBuf,
    before: u64,
}

/// A reservation of pages; dropping it releases them.
#[derive(Debug)]
pub struct Reserved(());

impl Reserved {
    /// Reserves pages until `pages` are free. Prints how to release them manually.
    pub fn pages(pages: u64) -> anyhow::Result<Self> {
        Self::in_pool(Path::new(POOL), pages)
    }

    fn in_pool(folder: &Path, pages: u64) -> anyhow::Result<Self> {
        let file = folder.join("nr_hugepages");
        let before = number(&file)?;
        let free = number(&folder.join("free_hugepages"))?;
        let wanted = before + pages.saturating_sub(free);
        let shown = file.display();
        // Stored before the write: a signal between the two writes the old number again, which
        // changes nothing.
        let pool = Pool { folder: folder.to_owned(), before };
        RESERVED.lock().unwrap_or_else(PoisonError::into_inner).replace(pool);
        let reserved = Self(());
        std::fs::write(&file, wanted.to_string()).with_context(|| {
            format!("cannot write {wanted} to {shown}\nhint: run it as root to reserve huge pages")
        })?;
        let found = number(&file)?;
        ensure!(
            found >= wanted,
            "{shown}: the kernel reserved {found} of {wanted} pages: memory is too fragmented or too small\nhint: reserve them \
             soon after boot"
        );
        output::talk(&format!(
            "reserved {wanted} pages of 2 MiB until the end; if lowlat is killed, release them: echo {before} > {shown}"
        ));
        Ok(reserved)
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        give_back();
    }
}

/// Releases the reservation, once.
pub fn give_back() {
    let Some(pool) = RESERVED.lock().unwrap_or_else(PoisonError::into_inner).take() else { return };
    let file = pool.folder.join("nr_hugepages");
    if let Err(error) = std::fs::write(&file, pool.before.to_string()) {
        output::talk(&format!(
            "lowlat: cannot release huge pages: {error}\nhint: as root, run echo {} > {}",
            pool.before,
            file.display()
        ));
    }
}

fn number(file: &Path) -> anyhow::Result<u64> {
    let shown = file.display();
    let text = std::fs::read_to_string(file).with_context(|| {
        format!("cannot read {shown}\nhint: check that this kernel supports huge pages of 2 MiB")
    })?;
    text.trim()
        .parse()
        .with_context(|| format!("{shown}: found \"{}\", expected a number of pages", text.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A single test, because a process has only one pool.
    #[test]
    fn pages_are_reserved_and_released() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name);
        let total = || std::fs::read_to_string(file("nr_hugepages")).unwrap();
        assert!(
            format!("{:#}", Reserved::in_pool(folder.path(), 5).unwrap_err()).contains("supports huge pages")
        );
        std::fs::write(file("nr_hugepages"), "10\n").unwrap();
        std::fs::write(file("free_hugepages"), "4\n").unwrap();
        let reserved = Reserved::in_pool(folder.path(), 50).unwrap();
        assert_eq!(total(), "56", "so that 50 are free");
        drop(reserved);
        assert_eq!(total(), "10");
        // As a second Ctrl-C does.
        let reserved = Reserved::in_pool(folder.path(), 50).unwrap();
        give_back();
        assert_eq!(total(), "10");
        std::fs::write(file("nr_hugepages"), "99").unwrap();
        drop(reserved);
        assert_eq!(total(), "99", "released only once");
        std::fs::write(file("free_hugepages"), "many").unwrap();
        assert!(format!("{:#}", Reserved::in_pool(folder.path(), 5).unwrap_err()).contains("found \"many\""));
    }
}
