//! Events: changes between two intervals.

use crate::watch::cpu_row::{CpuRow, State, per_second};
use lowlat_host::CpuId;
use lowlat_jitter::watch::RanThread;
use lowlat_plan::verify::{Row, Verification};
use lowlat_text::units;
use serde::Serialize;
use std::collections::BTreeMap;

/// New intruders of a CPU that have an event each.
const INTRUDERS_MAX: usize = 3;

/// A change during a watch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Event {
    /// Time at which it was noticed, in milliseconds since 1970.
    pub at_unix_ms: u64,
    pub level: Level,
    /// The affected object: "CPU 3", "eth0", "vm.swappiness".
    pub subject: String,
    pub text: String,
}

/// Severity of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// It returned to normal, or is only worth knowing.
    Info,
    /// It costs time or packets.
    Warning,
    /// Something differs from the plan.
    Fault,
}

/// Events of one interval, all with its time.
pub(crate) struct Events {
    pub(crate) at_unix_ms: u64,
    pub(crate) found: Vec<Event>,
}

impl Events {
    pub(crate) fn at(at_unix_ms: u64) -> Self {
        Self { at_unix_ms, found: Vec::new() }
    }

    pub(crate) fn add(&mut self, level: Level, subject: impl Into<String>, text: impl Into<String>) {
        let (at_unix_ms, subject, text) = (self.at_unix_ms, subject.into(), text.into());
        self.found.push(Event { at_unix_ms, level, subject, text });
    }

    /// Intruders on a CPU that were not there in the interval before, the longest first.
    pub(crate) fn intruders(&mut self, cpu: CpuId, threads: &[&RanThread]) {
        let named = if threads.len() > INTRUDERS_MAX { INTRUDERS_MAX - 1 } else { threads.len() };
        for thread in threads.iter().take(named) {
            let text = match thread.ran_ns {
                Some(ns) => format!("intruder {} ran for {}", thread.label(), units::duration(ns)),
                None => format!("intruder {} came from another CPU", thread.label()),
            };
            self.add(Level::Fault, format!("CPU {cpu}"), text);
        }
        if threads.len() > named {
            self.add(Level::Fault, format!("CPU {cpu}"), format!("{} more intruders", threads.len() - named));
        }
    }

    /// A CPU whose verdict changed.
    pub(crate) fn state(&mut self, before: State, row: &CpuRow, elapsed_ns: u64) {
        // Intruders have their own events.
        if before == row.state || row.state == State::Intruder {
            return;
        }
        let subject = format!("CPU {}", row.cpu);
        let top = row.causes.first().map(|top| {
            format!(": {} {}/s", top.cause.label(), units::rate(per_second(top.count, elapsed_ns)))
        });
        match row.state {
            state @ (State::Ticking | State::Interrupted) => {
                self.add(Level::Warning, subject, format!("{}{}", state.word(), top.unwrap_or_default()));
            }
            State::Unknown => {
                self.add(Level::Warning, subject, "unknown: its interrupts or threads cannot be read");
            }
            State::Quiet => self.add(Level::Info, subject, "quiet again"),
            State::Shared | State::Intruder => {}
        }
    }

    /// Counters of lost packets that increased.
    pub(crate) fn drops(&mut self, nic: &str, increase: &BTreeMap<String, u64>) {
        let counters: Vec<String> =
            increase.iter().map(|(name, count)| format!("{name} +{}", units::count(*count))).collect();
        if !counters.is_empty() {
            self.add(Level::Warning, nic, format!("lost packets: {}", counters.join(", ")));
        }
    }

    /// Rows of the plan that differ from the previous check.
    pub(crate) fn settings(&mut self, before: &Verification, after: &Verification) {
        let faulty = |verification: &Verification, what: &str| {
            verification.rows.iter().any(|row| row.what == what && row.standing.is_fault())
        };
        for row in &after.rows {
            let was_faulty = faulty(before, &row.what);
            if row.standing.is_fault() && !was_faulty {
                self.add(Level::Fault, row.what.clone(), fault(row));
            } else if was_faulty && !row.standing.is_fault() {
                self.add(Level::Info, row.what.clone(), format!("{} again", row.standing.word()));
            }
        }
    }
}

/// Describes how a row of the plan differs: "overridden by /etc/sysctl.d/x.conf: 60 instead of 0".
pub(crate) fn fault(row: &Row) -> String {
    let by = row.by.as_ref().map(|by| format!(" by {}", by.name)).unwrap_or_default();
    let observed = row.observed.known().map_or("unreadable", String::as_str);
    format!("{}{by}: {observed} instead of {}", row.standing.word(), row.planned)
}
