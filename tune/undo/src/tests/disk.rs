//! System errors at every operation: a full disk, an I/O error, a read-only file system.

use super::{super::*, Host};
use std::path::Path;

fn has_leftover(tree: &str) -> bool {
    tree.contains(".lowlat-")
}

#[test]
fn an_error_at_every_operation_leaves_the_host_as_it_was() {
    let eio = rustix::io::Errno::IO.raw_os_error();
    for at in 0.. {
        let host = Host::new();
        let (start, plan) = (host.tree(true), host.plan());
        let applied = match host.open(Faults::error_at(at, eio)) {
            Ok(mut log) => log.apply("p", &plan, OnFailure::RollBack).map(drop),
            Err(error) => Err(error),
        };
        let Err(error) = applied else {
            assert!(at > 30);
            return;
        };
        assert!(error.to_string().contains("cannot "), "{error}");
        assert!(!has_leftover(&host.tree(true)), "error at {at}");
        if matches!(error, UndoError::Step { .. }) {
            assert_eq!(host.tree(true), start, "error at {at}: {error}");
        }
        assert!(host.open(Faults::none()).unwrap().rollback_where(|_| true).is_complete());
        assert_eq!(host.tree(true), start, "error at {at}");
    }
}

#[test]
fn a_disk_full_from_every_operation_on_leaves_nothing_half_done() {
    for at in 0.. {
        let host = Host::new();
        let (start, plan) = (host.tree(true), host.plan());
        let applied = match host.open(Faults::full_from(at)) {
            Ok(mut log) => log.apply("p", &plan, OnFailure::RollBack).map(drop),
            Err(error) => Err(error),
        };
        let Err(error) = applied else {
            assert!(at > 30);
            return;
        };
        assert!(error.to_string().contains("free space and try again"), "{error}");
        assert!(!has_leftover(&host.tree(true)), "full from {at}");
        // Each target is old or new, complete.
        let writer = host.writer(Faults::none());
        for step in &plan {
            let read = if step.target.kind == "value" { Writer::read_value } else { Writer::read_file };
            let present = read(&writer, &step.target.name).unwrap();
            let same = |a| step.target.comparison.same(a, &present);
            assert!(same(&step.old) || same(&step.new), "full from {at}: {present}");
        }
        // After space is available again.
        let mut log = host.open(Faults::none()).unwrap();
        assert!(log.rollback_where(|_| true).is_complete(), "full from {at}");
        assert_eq!(host.tree(true), start, "full from {at}");
    }
}

/// A small memory file system, removed at the end.
struct Mounted<'a>(&'a Path);

impl<'a> Mounted<'a> {
    fn new(at: &'a Path, options: &std::ffi::CStr) -> Option<Self> {
        use rustix::mount::{MountFlags, mount};
        match mount("tmpfs", at, "tmpfs", MountFlags::empty(), options) {
            Ok(()) => Some(Self(at)),
            Err(errno) => {
                eprintln!("skipped: mounting a small tmpfs: {errno}");
                None
            }
        }
    }
}

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        let _ = rustix::mount::unmount(self.0, rustix::mount::UnmountFlags::DETACH);
    }
}

#[test]
fn a_disk_that_is_really_full() {
    let host = Host::new();
    std::fs::create_dir(&host.log).unwrap();
    let Some(_mounted) = Mounted::new(&host.log, c"size=32k,mode=700") else { return };
    let (start, mut plan) = (host.tree(true), host.plan());
    plan.push(host.step(
        "large",
        TargetSpec::file("/etc/large"),
        super::host::file(&"x".repeat(20_000), 0o644),
    ));
    let mut log = host.open(Faults::none()).unwrap();
    let error = log.apply("p", &plan, OnFailure::RollBack).unwrap_err();
    assert!(error.to_string().contains("free space and try again"), "{error}");
    assert_eq!(host.tree(true), start);
    drop(log);
    let report = host.open(Faults::none()).unwrap().rollback_where(|_| true);
    assert!(report.is_complete(), "{report}");
    assert_eq!(host.tree(true), start);
}

#[test]
fn a_read_only_directory_is_reported_and_nothing_is_done() {
    let host = Host::new();
    let made = host.root.join("etc/default");
    let Some(mounted) = Mounted::new(&made, c"") else { return };
    rustix::mount::mount_remount(&made, rustix::mount::MountFlags::RDONLY, "").unwrap();
    let (start, mut plan) = (host.tree(true), host.plan());
    plan.push(host.step("read-only", TargetSpec::file("/etc/default/x/y"), super::host::file("x", 0o644)));
    let mut log = host.open(Faults::none()).unwrap();
    let error = log.apply("p", &plan, OnFailure::RollBack).unwrap_err();
    assert!(error.to_string().contains("/etc/default/x") && error.to_string().contains("remount"), "{error}");
    assert_eq!(host.tree(true), start);
    drop(mounted);
}
