//! Steps that the host rejects are skipped; any other failure rolls back everything.

use super::{super::*, Host, host::file};
use rustix::io::Errno;
use std::{cell::RefCell, collections::BTreeMap};

/// Targets with a text, some of which reject changes.
#[derive(Debug, Default)]
struct Things {
    texts: RefCell<BTreeMap<String, String>>,
    /// Text that "slow" shows once more: the one before the last write.
    before: RefCell<Option<String>>,
}

impl Things {
    fn text(&self, name: &str) -> String {
        self.texts.borrow().get(name).cloned().unwrap_or_else(|| "start".to_owned())
    }
}

impl Target for Things {
    fn kind(&self) -> &'static str {
        "thing"
    }

    fn read(&self, _: &Writer, spec: &TargetSpec) -> Result<State, HostError> {
        Ok(State::Value(self.before.take().unwrap_or_else(|| self.text(&spec.name))))
    }

    /// A target's name is its behaviour: "errno 5", "shy" (reports success and does nothing), "stuck" (always
    /// does something else), "slow" (shows the old text once), "ok".
    fn write(&self, _: &Writer, spec: &TargetSpec, to: &State) -> Result<(), HostError> {
        let State::Value(text) = to else { panic!("{to}") };
        if let Some(errno) = spec.name.strip_prefix("errno ") {
            let source = std::io::Error::from_raw_os_error(errno.parse().unwrap());
            return Err(HostError::Io { doing: "set", path: spec.name.clone(), source });
        }
        let text = match spec.name.as_str() {
            "shy" => return Ok(()),
            "stuck" => "odd".to_owned(),
            "told" => {
                let what = "the service is masked".to_owned();
                return Err(HostError::Refused { path: spec.name.clone(), what });
            }
            _ => text.clone(),
        };
        if spec.name == "slow" {
            self.before.replace(Some(self.text(&spec.name)));
        }
        self.texts.borrow_mut().insert(spec.name.clone(), text);
        Ok(())
    }
}

fn thing(name: &str) -> UndoStep {
    let target = TargetSpec { kind: "thing".into(), name: name.into(), comparison: Comparison::Exact };
    let (old, new) = (State::Value("start".into()), State::Value("new".into()));
    UndoStep { id: name.to_owned(), target, old, new }
}

fn apply(host: &Host, names: &[&str]) -> (UndoLog, Result<ApplyReport, UndoError>) {
    let mut log = host.open(Faults::none()).unwrap().with_target(Box::new(Things::default()));
    let steps: Vec<UndoStep> = names.iter().map(|name| thing(name)).collect();
    let result = log.apply("p", &steps, OnFailure::SkipRefused);
    (log, result)
}

#[test]
fn what_is_refused_is_reported_and_the_rest_continues() {
    let refusals = [
        Errno::IO,
        Errno::INVAL,
        Errno::BUSY,
        Errno::NODEV,
        Errno::NXIO,
        Errno::OPNOTSUPP,
        Errno::PERM,
        Errno::ACCESS,
        Errno::SRCH,
    ];
    for errno in refusals {
        let host = Host::new();
        let name = format!("errno {}", errno.raw_os_error());
        let (mut log, result) = apply(&host, &["ok 1", &name, "shy", "told", "ok 2"]);
        let report = result.unwrap();
        assert_eq!(report.done, ["ok 1", "ok 2"]);
        let failed: Vec<&str> = report.failed.iter().map(|(step, _)| step.as_str()).collect();
        assert_eq!(failed, [&name, "shy", "told"]);
        assert!(report.failed[1].1.contains("wrote \"new\", read back \"start\""), "{:?}", report.failed);
        assert_eq!(log.history().entries.len(), 2, "what was refused is not in force");
        assert!(!log.history().is_open("p"));
        assert!(log.rollback_where(|_| true).is_complete());
    }
}

/// Like an interrupt that is being moved: the first value read is not final, for apply and rollback.
#[test]
fn what_shows_its_old_state_for_a_moment_is_waited_for() {
    let host = Host::new();
    let (mut log, result) = apply(&host, &["slow"]);
    assert_eq!(result.unwrap().done, ["slow"]);
    let report = log.rollback_where(|_| true);
    assert!(report.is_complete(), "{report:?}");
    assert_eq!(log.present(&thing("slow").target).unwrap(), State::Value("start".into()));
}

#[test]
fn what_is_not_a_refusal_rolls_back_everything() {
    for errno in [Errno::NOSPC, Errno::INTR, Errno::NOMEM, Errno::ROFS, Errno::MFILE] {
        let host = Host::new();
        let (log, result) = apply(&host, &["ok", &format!("errno {}", errno.raw_os_error()), "after"]);
        let Err(UndoError::Step { rolled_back, .. }) = result else { panic!("{errno}: {result:?}") };
        assert!(rolled_back.is_complete());
        assert!(log.history().entries.is_empty());
        assert_eq!(log.present(&thing("ok").target).unwrap(), State::Value("start".into()));
    }
}

#[test]
fn what_cannot_be_rolled_back_is_not_a_refusal() {
    let host = Host::new();
    let (log, result) = apply(&host, &["ok", "stuck", "after"]);
    let Err(UndoError::Step { step, rolled_back, .. }) = result else { panic!("{result:?}") };
    assert_eq!((step.as_str(), rolled_back.left.len()), ("stuck", 1));
    assert_eq!(log.present(&thing("ok").target).unwrap(), State::Value("start".into()));
}

/// EIO of a disk is a failing disk, and EACCES of a file is not the kernel's rejection.
#[test]
fn errors_of_files_are_not_refusals() {
    let host = Host::new();
    let (start, mut plan) = (host.tree(true), host.plan());
    plan.insert(2, host.step("into", TargetSpec::file("/etc/a"), file("", 0o644)));
    let mut log = host.open(Faults::none()).unwrap();
    let error = log.apply("p", &plan, OnFailure::SkipRefused).unwrap_err();
    assert!(matches!(error, UndoError::Step { .. }), "{error}");
    assert_eq!(host.tree(true), start);
}

/// Whatever operation fails with EIO: the value's step is skipped, or everything is rolled back, and never
/// anything in between.
#[test]
fn an_error_at_every_operation() {
    let mut skipped = 0;
    for at in 0.. {
        let host = Host::new();
        let (start, plan) = (host.tree(true), host.plan());
        let applied = host
            .open(Faults::error_at(at, Errno::IO.raw_os_error()))
            .and_then(|mut log| log.apply("p", &plan, OnFailure::SkipRefused));
        match &applied {
            Ok(report) if report.failed.is_empty() => {
                assert!(at > 30 && skipped > 0, "{skipped}");
                return;
            }
            Ok(report) => {
                skipped += 1;
                let failed: Vec<&str> = report.failed.iter().map(|(step, _)| step.as_str()).collect();
                assert_eq!(failed, ["value"], "error at {at}");
                assert_eq!(report.done.len(), plan.len() - 1);
                let value = std::fs::read_to_string(host.root.join("sys/devices/x/value")).unwrap();
                assert_eq!(value, "0\n");
            }
            Err(UndoError::Step { .. }) => assert_eq!(host.tree(true), start, "error at {at}"),
            Err(_) => {}
        }
        assert!(host.open(Faults::none()).unwrap().rollback_where(|_| true).is_complete());
        assert_eq!(host.tree(true), start, "error at {at}");
    }
}

#[test]
fn a_full_disk_is_not_a_refusal() {
    for at in 0.. {
        let host = Host::new();
        let (start, plan) = (host.tree(true), host.plan());
        let applied = host
            .open(Faults::full_from(at))
            .and_then(|mut log| log.apply("p", &plan, OnFailure::SkipRefused));
        if let Ok(report) = applied {
            assert!(report.failed.is_empty() && at > 30, "{:?}", report.failed);
            return;
        }
        assert!(host.open(Faults::none()).unwrap().rollback_where(|_| true).is_complete());
        assert_eq!(host.tree(true), start, "full from {at}");
    }
}

/// A real attribute: oom_score_adj accepts nothing beyond 1000.
#[test]
fn the_running_kernel_s_refusal_is_one() {
    let writer = Writer::live().unwrap();
    let error = writer.write_value("/proc/self/oom_score_adj", "5000").unwrap_err();
    assert!(error.is_refusal(), "{error}");
    assert!(error.to_string().contains("the kernel rejected the value"), "{error}");
    let error = writer.write_value("/proc/self/no_such_attribute", "1").unwrap_err();
    assert!(error.is_refusal(), "{error}");
}
