//! Pages of 2 MiB, reserved for the time of a run when the user allows it.

use crate::output;
use anyhow::{Context, ensure};
use std::{
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

const POOL: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB";

/// What is reserved now, for whoever ends the process without unwinding.
static RESERVED: Mutex<Option<Pool>> = Mutex::new(None);

/// A pool, and how many pages it had before.
#[derive(Debug, Clone)]
struct Pool {
    folder: PathBuf,
    before: u64,
}

/// Pages that are given back when the value goes.
#[derive(Debug)]
pub struct Reserved(());

impl Reserved {
    /// Reserves so many pages that `pages` are free, and says how to give them back by hand.
    pub fn pages(pages: u64) -> anyhow::Result<Self> {
        Self::in_pool(Path::new(POOL), pages)
    }

    fn in_pool(folder: &Path, pages: u64) -> anyhow::Result<Self> {
        let file = folder.join("nr_hugepages");
        let before = number(&file)?;
        let free = number(&folder.join("free_hugepages"))?;
        let wanted = before + pages.saturating_sub(free);
        let shown = file.display();
        // Before the write: a signal between the two gives back what is already there, which changes nothing.
        let pool = Pool { folder: folder.to_owned(), before };
        RESERVED.lock().unwrap_or_else(PoisonError::into_inner).replace(pool);
        let reserved = Self(());
        std::fs::write(&file, wanted.to_string())
            .with_context(|| format!("cannot write {wanted} to {shown}; reserving huge pages needs root"))?;
        let found = number(&file)?;
        ensure!(
            found >= wanted,
            "{shown}: {found} pages after {wanted} were asked for; memory is too fragmented or too small, so reserve them \
             soon after boot"
        );
        output::talk(&format!(
            "{wanted} pages of 2 MiB are reserved until the end; if this is killed, give them back: echo {before} > {shown}"
        ));
        Ok(reserved)
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        give_back();
    }
}

/// Gives back what is reserved, once.
pub fn give_back() {
    let Some(pool) = RESERVED.lock().unwrap_or_else(PoisonError::into_inner).take() else { return };
    let file = pool.folder.join("nr_hugepages");
    if let Err(error) = std::fs::write(&file, pool.before.to_string()) {
        output::talk(&format!(
            "lowlat: cannot give huge pages back: {error}; as root: echo {} > {}",
            pool.before,
            file.display()
        ));
    }
}

fn number(file: &Path) -> anyhow::Result<u64> {
    let shown = file.display();
    let text = std::fs::read_to_string(file)
        .with_context(|| format!("cannot read {shown}; this kernel may have no huge pages of 2 MiB"))?;
    text.trim()
        .parse()
        .with_context(|| format!("{shown}: found \"{}\", expected a number of pages", text.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One test, as there is one pool in a process.
    #[test]
    fn pages_are_reserved_and_given_back() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name);
        let total = || std::fs::read_to_string(file("nr_hugepages")).unwrap();
        assert!(format!("{:#}", Reserved::in_pool(folder.path(), 5).unwrap_err()).contains("no huge pages"));
        std::fs::write(file("nr_hugepages"), "10\n").unwrap();
        std::fs::write(file("free_hugepages"), "4\n").unwrap();
        let reserved = Reserved::in_pool(folder.path(), 50).unwrap();
        assert_eq!(total(), "56", "so that 50 are free");
        drop(reserved);
        assert_eq!(total(), "10");
        // As a second Ctrl-C does it.
        let reserved = Reserved::in_pool(folder.path(), 50).unwrap();
        give_back();
        assert_eq!(total(), "10");
        std::fs::write(file("nr_hugepages"), "99").unwrap();
        drop(reserved);
        assert_eq!(total(), "99", "given back once only");
        std::fs::write(file("free_hugepages"), "many").unwrap();
        assert!(format!("{:#}", Reserved::in_pool(folder.path(), 5).unwrap_err()).contains("found \"many\""));
    }
}
