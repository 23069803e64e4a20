//! Pages of 2 MiB, reserved for the duration of a run.
//!
//! A reservation is a plan of a separate undo log, rolled back when the reservation ends. If lowlat is killed, the next
//! reservation rolls it back; a reboot empties the pool anyway.

use crate::flow::FlowError;
use lowlat_undo::{
    Comparison, OnFailure, PrivateDirectory, State, TargetSpec, UndoError, UndoLog, UndoStep, Writer,
};
use std::path::Path;

const POOL: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB";
/// Parent of lowlat's own directories, and the names of the log's.
const STATE: &str = "/var/lib";
const LOG: [&str; 2] = ["lowlat", "huge-pages"];
const PLAN: &str = "huge-pages";

/// A reservation of huge pages.
#[derive(Debug)]
pub struct HugePages {
    log: UndoLog,
    /// Pages of the pool before the reservation.
    pub before: u64,
    /// Pages of the pool now.
    pub now: u64,
}

impl HugePages {
    /// The pool's file, for messages.
    pub fn file() -> String {
        format!("{POOL}/nr_hugepages")
    }

    /// Reserves pages on this host until `pages` are free. Rolls back what a run that was killed left reserved.
    ///
    /// # Errors
    /// Not root, no pool, or too little memory; then the pool is as before.
    pub fn reserve(pages: u64) -> Result<Self, FlowError> {
        Self::reserve_in(Path::new(STATE), Writer::live()?, pages)
    }

    fn reserve_in(state: &Path, writer: Writer, pages: u64) -> Result<Self, FlowError> {
        let (total, free) = (Self::file(), format!("{POOL}/free_hugepages"));
        // Read before anything is made: without a pool there is nothing to do.
        let found = writer.read_value(&total)?;
        number(&total, &found)?;
        let free = number(&free, &writer.read_value(&free)?)?;
        let dir = PrivateDirectory::create(state, &LOG)?;
        let mut log = UndoLog::open(dir, writer, |_| true)?;
        let left = log.rollback_where(|_| true);
        if !left.is_complete() {
            // The pool was changed outside lowlat since, and that value stays.
            log.give_up_where(|_| true)?;
        }
        let target = TargetSpec::value(total.clone(), Comparison::Number);
        let old = log.present(&target)?;
        let before = number(&total, &old)?;
        // Pages that a killed run had left were among the free ones.
        let free = free.saturating_sub(number(&total, &found)?.saturating_sub(before));
        let now = before + pages.saturating_sub(free);
        let step = UndoStep { id: "pool".into(), target, old, new: State::Value(now.to_string()) };
        log.apply(PLAN, &[step], OnFailure::RollBack).map_err(|error| match error {
            UndoError::Step { .. } => FlowError::Refused(format!(
                "cannot reserve {now} pages of 2 MiB: {error}\nhint: reserve them soon after boot, before memory is \
                 fragmented"
            )),
            other => other.into(),
        })?;
        Ok(Self { log, before, now })
    }

    /// Releases the reservation.
    ///
    /// # Errors
    /// The pool was changed outside lowlat since, or it cannot be written.
    pub fn release(mut self) -> Result<(), FlowError> {
        let report = self.log.rollback_where(|_| true);
        if report.is_complete() {
            return Ok(());
        }
        Err(FlowError::Refused(format!(
            "cannot release huge pages: {report}\nhint: as root, run echo {} > {POOL}/nr_hugepages",
            self.before
        )))
    }
}

fn number(path: &str, state: &State) -> Result<u64, FlowError> {
    let State::Value(text) = state else {
        return Err(FlowError::Refused(format!(
            "cannot read {POOL}: it does not exist\nhint: check that this kernel supports huge pages of 2 MiB"
        )));
    };
    let raw = text.trim();
    raw.parse()
        .map_err(|_| FlowError::Refused(format!("{path}: found \"{raw}\", expected a number of pages")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// A host with a pool of ten pages, four of them free.
    fn host() -> tempfile::TempDir {
        let host = tempfile::tempdir().unwrap();
        fs::create_dir_all(host.path().join(&POOL[1..])).unwrap();
        fs::create_dir(host.path().join("state")).unwrap();
        set(&host, "nr_hugepages", "10\n");
        set(&host, "free_hugepages", "4\n");
        host
    }

    fn set(host: &tempfile::TempDir, file: &str, text: &str) {
        fs::write(host.path().join(&POOL[1..]).join(file), text).unwrap();
    }

    fn total(host: &tempfile::TempDir) -> String {
        fs::read_to_string(host.path().join(&POOL[1..]).join("nr_hugepages")).unwrap().trim().to_owned()
    }

    fn reserve(host: &tempfile::TempDir, pages: u64) -> Result<HugePages, FlowError> {
        HugePages::reserve_in(&host.path().join("state"), Writer::below(host.path()).unwrap(), pages)
    }

    #[test]
    fn pages_are_reserved_and_released() {
        let host = host();
        let reserved = reserve(&host, 50).unwrap();
        assert_eq!((reserved.before, reserved.now, total(&host).as_str()), (10, 56, "56"));
        reserved.release().unwrap();
        assert_eq!(total(&host), "10");
        reserve(&host, 4).unwrap().release().unwrap();
        assert_eq!(total(&host), "10", "enough were free");
    }

    #[test]
    fn the_next_reservation_releases_what_a_killed_run_left() {
        let host = host();
        drop(reserve(&host, 50).unwrap());
        assert_eq!(total(&host), "56", "nobody released it");
        set(&host, "free_hugepages", "50\n");
        let next = reserve(&host, 20).unwrap();
        assert_eq!((next.before, next.now), (10, 26));
        next.release().unwrap();
        assert_eq!(total(&host), "10");
    }

    #[test]
    fn a_pool_that_somebody_else_has_set_is_left_alone() {
        let host = host();
        let reserved = reserve(&host, 50).unwrap();
        set(&host, "nr_hugepages", "99\n");
        let error = reserved.release().unwrap_err().to_string();
        assert!(error.starts_with("cannot release huge pages") && error.contains("echo 10 >"), "{error}");
        assert_eq!(total(&host), "99");
        set(&host, "free_hugepages", "99\n");
        reserve(&host, 1).unwrap().release().unwrap();
        assert_eq!(total(&host), "99");
    }

    #[test]
    fn a_host_without_a_pool_has_nothing_to_reserve() {
        let host = host();
        set(&host, "free_hugepages", "many\n");
        let error = reserve(&host, 5).unwrap_err().to_string();
        assert!(error.contains("found \"many\", expected a number of pages"), "{error}");
        fs::remove_dir_all(host.path().join("sys")).unwrap();
        assert!(reserve(&host, 5).unwrap_err().to_string().contains("supports huge pages of 2 MiB"));
        assert_eq!(fs::read_dir(host.path().join("state")).unwrap().count(), 0, "nothing was made");
    }
}
