//! Limits of dirty memory, of which the kernel sets one to 0 when the other is written.

use super::{
    super::{Part, prepare},
    host::{Host, plan_of},
};
use lowlat_plan::Plan;
use lowlat_settings::change::Target as PlanTarget;
use lowlat_undo::{
    Comparison, Faults, HostError, OnFailure, State, Target, TargetSpec, UndoError, UndoLog, UndoStep, Writer,
};
use std::{fs, path::PathBuf};

/// Values with the kernel's rule (mm/page-writeback.c): writing a share sets the bytes to 0 and the reverse; bytes of 0
/// are rejected.
#[derive(Debug)]
struct Coupled {
    root: PathBuf,
}

impl Coupled {
    fn number(&self, path: &str) -> u64 {
        fs::read_to_string(self.root.join(&path[1..])).unwrap().trim().parse().unwrap()
    }
}

impl Target for Coupled {
    fn kind(&self) -> &'static str {
        "value"
    }

    fn outlives_boot(&self, _: &TargetSpec) -> bool {
        false
    }

    fn read(&self, writer: &Writer, spec: &TargetSpec) -> Result<State, HostError> {
        writer.read_value(&spec.name)
    }

    fn write(&self, writer: &Writer, spec: &TargetSpec, to: &State) -> Result<(), HostError> {
        let State::Value(text) = to else { panic!("{to}") };
        let to: u64 = text.trim().parse().unwrap();
        if spec.name.ends_with("_bytes") && to == 0 {
            let source = std::io::Error::from_raw_os_error(22);
            return Err(HostError::Attribute { path: spec.name.clone(), source });
        }
        let before = self.number(&spec.name);
        let written = writer.write_value(&spec.name, text);
        let other = match spec.name.strip_suffix("_bytes") {
            Some(stem) => Some(format!("{stem}_ratio")),
            None => spec.name.strip_suffix("_ratio").map(|stem| format!("{stem}_bytes")),
        };
        // In one call with the write, whatever of it a fault makes fail behind.
        if let Some(other) = other.filter(|_| before != to && self.number(&spec.name) == to) {
            fs::write(self.root.join(&other[1..]), "0\n").unwrap();
        }
        written
    }

    fn clear(&self, writer: &Writer, spec: &TargetSpec) -> Result<(), HostError> {
        writer.clear(&spec.name, true)
    }

    fn settle(&self, writer: &Writer, spec: &TargetSpec) -> Result<(), HostError> {
        self.clear(writer, spec)
    }
}

const SHARE: &str = "/proc/sys/vm/dirty_ratio";
const BYTES: &str = "/proc/sys/vm/dirty_bytes";
const BACKGROUND_SHARE: &str = "/proc/sys/vm/dirty_background_ratio";
const BACKGROUND_BYTES: &str = "/proc/sys/vm/dirty_background_bytes";

/// A host on which bytes set one limit, and a share the other.
fn host() -> Host {
    Host::of(&[
        (SHARE, "0|"),
        (BYTES, "1073741824|"),
        (BACKGROUND_SHARE, "10|"),
        (BACKGROUND_BYTES, "0|"),
        ("/proc/sys/vm/swappiness", "60|"),
    ])
}

fn plan() -> Plan {
    let sysctl = |key: &str| PlanTarget::Sysctl { key: key.to_owned() };
    plan_of(vec![
        (sysctl("vm.dirty_background_ratio"), "3"),
        (sysctl("vm.dirty_ratio"), "10"),
        (sysctl("vm.swappiness"), "10"),
    ])
}

fn open(host: &Host, faults: Faults) -> Result<UndoLog, UndoError> {
    Ok(host.log_with(faults)?.with_target(Box::new(Coupled { root: host.root.clone() })))
}

fn steps(host: &Host, log: &UndoLog) -> Vec<UndoStep> {
    let preparation = prepare(&plan(), &host.snapshot(), log, Part::RunTime).unwrap();
    assert_eq!(preparation.left, []);
    preparation.steps.into_iter().map(|prepared| prepared.step).collect()
}

fn apply(host: &Host, faults: Faults) -> Result<Vec<String>, UndoError> {
    let mut log = open(host, faults)?;
    let steps = steps(host, &log);
    Ok(log.apply("p", &steps, OnFailure::SkipRefused)?.done)
}

fn roll_back(host: &Host, faults: Faults) -> bool {
    let report = open(host, faults).map(|mut log| log.rollback_where(|_| true));
    report.is_ok_and(|report| report.is_complete() && report.not_recorded.is_none())
}

/// Share and bytes of both limits. Both values of one limit must never be 0, which would stop every writer.
fn limits(host: &Host) -> [u64; 4] {
    let number = |path| host.text(path).trim().parse().unwrap();
    let limits = [SHARE, BYTES, BACKGROUND_SHARE, BACKGROUND_BYTES].map(number);
    assert!(limits[..2] != [0, 0] && limits[2..] != [0, 0], "{limits:?}");
    limits
}

const BEFORE: [u64; 4] = [0, 1 << 30, 10, 0];
const AFTER: [u64; 4] = [10, 0, 3, 0];

#[test]
fn bytes_that_the_kernel_takes_away_come_back() {
    let host = host();
    let id = |path| format!("value {path}");
    let all = [BACKGROUND_SHARE, SHARE, BYTES, "/proc/sys/vm/swappiness"].map(id);
    assert_eq!(apply(&host, Faults::none()).unwrap(), all);
    assert_eq!(limits(&host), AFTER);
    assert_eq!(apply(&host, Faults::none()).unwrap(), Vec::<String>::new());
    assert!(roll_back(&host, Faults::none()));
    assert_eq!(limits(&host), BEFORE);
}

/// A crash, or an error that rolls back everything, at each operation of the apply; then both ways to recover.
#[test]
fn bytes_come_back_whatever_happens_in_the_apply() {
    for at in 0.. {
        let mut is_through = false;
        for fault in [Faults::crash_at, |at| Faults::error_at(at, 28)] {
            for is_finished in [false, true] {
                let host = host();
                let done = apply(&host, fault(at));
                is_through = done.is_ok();
                let now = limits(&host);
                if matches!(&done, Err(UndoError::Step { rolled_back, .. }) if rolled_back.is_complete()) {
                    assert_eq!(now, BEFORE, "at {at}: {done:?}");
                }
                if is_finished {
                    apply(&host, Faults::none()).unwrap();
                    assert_eq!(limits(&host), AFTER, "at {at}");
                }
                assert!(roll_back(&host, Faults::none()), "at {at}");
                assert_eq!(limits(&host), BEFORE, "at {at}, finished: {is_finished}");
            }
        }
        if is_through {
            assert!(at > 20, "only {at} operations");
            return;
        }
    }
}

#[test]
fn bytes_come_back_whatever_happens_in_the_rollback() {
    for at in 0.. {
        let host = host();
        apply(&host, Faults::none()).unwrap();
        let is_through = roll_back(&host, Faults::crash_at(at));
        limits(&host);
        assert!(roll_back(&host, Faults::none()), "crash at {at}");
        assert_eq!(limits(&host), BEFORE, "crash at {at}");
        if is_through {
            assert!(at > 10, "only {at} operations");
            return;
        }
    }
}

/// A limit that is set by a share has no bytes to record.
#[test]
fn bytes_of_0_are_no_step() {
    let host = host();
    for (path, text) in [(SHARE, "20|"), (BYTES, "0|")] {
        host.put(path, text);
    }
    let log = open(&host, Faults::none()).unwrap();
    assert!(steps(&host, &log).iter().all(|step| !step.target.name.ends_with("_bytes")));
    let same = |a: &UndoStep| a.target.comparison == Comparison::Number;
    assert!(steps(&host, &log).iter().all(same));
}
