//! The steps prepared so far, and the rules common to all kinds of steps.

use super::{NotPrepared, Note, Preparation, Prepared};
use lowlat_host::{CpuSet, HostSnapshot, Reading};
use lowlat_plan::Plan;
use lowlat_undo::{Comparison, HostError, State, TargetSpec, UndoError, UndoLog, UndoStep};
use std::collections::{BTreeMap, BTreeSet};

/// Steps and skipped changes of a plan so far.
#[derive(Debug)]
pub(super) struct Gathering<'a> {
    pub(super) plan: &'a Plan,
    pub(super) host: &'a HostSnapshot,
    log: &'a UndoLog,
    result: Preparation,
    /// The index of the step of each place, by kind and identity.
    places: BTreeMap<(String, String), usize>,
    /// Names whose changes are already prepared together, by kind.
    groups: BTreeSet<(&'static str, String)>,
}

impl<'a> Gathering<'a> {
    pub(super) fn new(plan: &'a Plan, host: &'a HostSnapshot, log: &'a UndoLog) -> Self {
        let result = Preparation::default();
        Self { plan, host, log, result, places: BTreeMap::new(), groups: BTreeSet::new() }
    }

    /// The value that a change wants.
    pub(super) fn after(&self, change: usize) -> &'a str {
        self.plan.changes.get(change).map_or("", |planned| &planned.after)
    }

    pub(super) fn finish(self) -> Preparation {
        self.result
    }

    /// Returns true for the first change with the name.
    pub(super) fn is_first_of(&mut self, kind: &'static str, name: &str) -> bool {
        self.groups.insert((kind, name.to_owned()))
    }

    pub(super) fn leave(&mut self, change: usize, reason: impl Into<String>) {
        self.result.left.push(NotPrepared { change, reason: reason.into() });
    }

    pub(super) fn note(&mut self, change: usize, text: impl Into<String>) {
        self.result.notes.push(Note { change, text: text.into() });
    }

    /// The present state; none if it cannot be read, in which case the change is skipped with the reason.
    pub(super) fn present(&mut self, change: usize, spec: &TargetSpec) -> Result<Option<State>, UndoError> {
        match self.log.present(spec) {
            Ok(state) => Ok(Some(state)),
            // An unregistered kind is a bug of the program, not a fault of the host.
            Err(error @ UndoError::Host(HostError::UnknownKind { .. })) => Err(error),
            Err(error) => {
                self.leave(change, error.to_string());
                Ok(None)
            }
        }
    }

    /// The present state, if it can be read. Reports nothing otherwise.
    pub(super) fn glance(&self, spec: &TargetSpec) -> Option<State> {
        self.log.present(spec).ok()
    }

    /// The value at `spec`; none if it is missing or cannot be read, in which case the change is skipped
    /// with the reason.
    pub(super) fn present_value(
        &mut self,
        change: usize,
        spec: &TargetSpec,
    ) -> Result<Option<String>, UndoError> {
        match self.present(change, spec)? {
            Some(State::Value(text)) => match unparsable(spec, &text) {
                None => return Ok(Some(text)),
                Some(reason) => self.leave(change, reason),
            },
            Some(State::Absent) => self.leave(change, gone(self.host, spec)),
            Some(other) => self.leave(change, format!("{} is {other}, expected a value", spec.name)),
            None => {}
        }
        Ok(None)
    }

    /// Adds a step that changes an existing value to `new`.
    pub(super) fn value(&mut self, change: usize, spec: TargetSpec, new: &str) -> Result<(), UndoError> {
        match self.present_value(change, &spec)? {
            Some(old) => self.step(change, spec, State::Value(old), State::Value(new.to_owned())),
            None => Ok(()),
        }
    }

    /// Adds a step, or joins it to an existing step for the same place.
    pub(super) fn step(
        &mut self,
        change: usize,
        target: TargetSpec,
        old: State,
        new: State,
    ) -> Result<(), UndoError> {
        self.step_of(&[change], target, old, new)
    }

    /// Adds a step that applies several changes.
    pub(super) fn step_of(
        &mut self,
        changes: &[usize],
        target: TargetSpec,
        old: State,
        new: State,
    ) -> Result<(), UndoError> {
        let Some((change, also)) = changes.split_first() else { return Ok(()) };
        let place = match self.log.place(&target) {
            Ok(place) => (target.kind.clone(), place),
            Err(error) => {
                for change in changes {
                    self.leave(*change, error.to_string());
                }
                return Ok(());
            }
        };
        let id = format!("{} {}", target.kind, target.name);
        if let Some(there) = self.places.get(&place).and_then(|at| self.result.steps.get_mut(*at)) {
            if !target.comparison.same(&there.step.new, &new) {
                let what = "target and different values";
                return Err(UndoError::twice(&there.step.id, &id, what));
            }
            let more =
                changes.iter().filter(|change| **change != there.change && !there.also.contains(change));
            let more: Vec<usize> = more.copied().collect();
            there.also.extend(more);
            return Ok(());
        }
        self.places.insert(place, self.result.steps.len());
        let step = UndoStep { id, target, old, new };
        self.result.steps.push(Prepared { change: *change, also: also.to_vec(), step });
        Ok(())
    }
}

/// The reason why the text does not fit the comparison; none if it does.
fn unparsable(spec: &TargetSpec, text: &str) -> Option<String> {
    let expected = match spec.comparison {
        Comparison::CpuList if CpuSet::parse_list(text).is_err() => "a CPU list such as 0-3,8",
        Comparison::CpuMask if CpuSet::parse_mask(text).is_err() => "a CPU mask such as ff,00000000",
        _ => return None,
    };
    Reading::<()>::unparsable(&spec.name, text, expected).missing_in_words()
}

/// The reason for a missing target.
fn gone(host: &HostSnapshot, spec: &TargetSpec) -> String {
    let name = &spec.name;
    if spec.kind != "value" {
        return format!("{name} no longer exists");
    }
    let nic = name.strip_prefix("/sys/class/net/").and_then(|rest| rest.split('/').next());
    match nic {
        Some(nic) if !host.nics.iter().any(|found| found.name == nic) => {
            format!("interface {nic} no longer exists ({name})")
        }
        _ if name.starts_with("/sys/kernel/debug/") => {
            format!("{name} is missing: unsupported by this kernel, or debugfs is not mounted or locked down")
        }
        _ => format!("{name} is missing: unsupported by this kernel or host"),
    }
}

/// Parses the CPU list that a change wants.
pub(super) fn cpu_list(gathering: &mut Gathering<'_>, change: usize) -> Option<CpuSet> {
    let text = gathering.after(change);
    let cpus = CpuSet::parse_list(text);
    if cpus.is_err() {
        gathering.leave(change, format!("the plan contains {text:?}, expected a CPU list such as 0-3,8"));
    }
    cpus.ok()
}
