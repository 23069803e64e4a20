//! What the records add up to.

use super::{Event, LoggedState, Record, TargetSpec};

/// A step that has changed the host, or may have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The plan it belongs to.
    pub plan: String,
    /// The step's id.
    pub step: String,
    /// The boot in which it was done. Values do not outlive it.
    pub boot: String,
    /// When it was begun, milliseconds since 1970.
    pub unix_ms: u64,
    /// What it changed.
    pub target: TargetSpec,
    /// What was there before.
    pub old: LoggedState,
    /// What was to be there.
    pub new: LoggedState,
    /// Directories that it made, outermost first.
    pub directories: Vec<String>,
    /// How far it came.
    pub progress: Progress,
}

/// How far a step came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// It was about to change the host; whether it did, the host tells.
    Intended,
    /// It did, and this was read back.
    Done(LoggedState),
    /// It failed and left this, which is neither the old nor the new state.
    Left(LoggedState),
}

/// A plan that the log knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanEntry {
    /// Its id.
    pub id: String,
    /// When it was first begun, milliseconds since 1970.
    pub unix_ms: u64,
    /// Whether it was begun and neither finished nor rolled back since.
    pub is_open: bool,
}

/// Plans and the steps in force, in the order in which they were begun.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct History {
    /// All plans that were begun. Of those that have nothing in force any more, the ones from before the log was last
    /// written anew are forgotten.
    pub plans: Vec<PlanEntry>,
    /// The steps in force: those undone or taken back are no longer among them.
    pub entries: Vec<Entry>,
}

impl History {
    pub(super) fn of(records: impl IntoIterator<Item = Record>) -> Self {
        let mut history = Self::default();
        for record in records {
            history.fold(record);
        }
        history
    }

    pub(super) fn fold(&mut self, record: Record) {
        let Record { plan, boot, unix_ms, event } = record;
        match event {
            Event::Begin => match self.plans.iter_mut().find(|p| p.id == plan) {
                Some(known) => known.is_open = true,
                None => self.plans.push(PlanEntry { id: plan, unix_ms, is_open: true }),
            },
            Event::End => {
                if let Some(known) = self.plans.iter_mut().find(|p| p.id == plan) {
                    known.is_open = false;
                }
            }
            Event::Intend { step, target, old, new, directories, again } => {
                if again {
                    self.entries.retain(|e| e.plan != plan || e.step != step);
                }
                let progress = Progress::Intended;
                self.entries.push(Entry {
                    plan,
                    step,
                    boot,
                    unix_ms,
                    target,
                    old,
                    new,
                    directories,
                    progress,
                });
            }
            Event::Done { step, read_back } => self.set(&plan, &step, Some(Progress::Done(read_back))),
            Event::Failed { step, present, .. } => self.set(&plan, &step, present.map(Progress::Left)),
            Event::Undone { step } | Event::Expired { step } => self.set(&plan, &step, None),
            Event::Compacted { .. } => {}
        }
    }

    fn set(&mut self, plan: &str, step: &str, progress: Option<Progress>) {
        let Some(at) = self.entries.iter().rposition(|e| e.plan == plan && e.step == step) else { return };
        match progress {
            Some(progress) => {
                if let Some(entry) = self.entries.get_mut(at) {
                    entry.progress = progress;
                }
            }
            None => drop(self.entries.remove(at)),
        }
    }

    /// The entry of a step, if it is in force.
    pub fn entry(&self, plan: &str, step: &str) -> Option<&Entry> {
        self.entries.iter().rfind(|e| e.plan == plan && e.step == step)
    }

    /// Whether the plan was begun and is neither finished nor rolled back.
    pub fn is_open(&self, plan: &str) -> bool {
        self.plans.iter().any(|p| p.is_open && p.id == plan)
    }

    /// A plan other than `plan` that is under way and has changed something.
    pub(super) fn other_unfinished(&self, plan: &str) -> Option<&str> {
        let open = self
            .plans
            .iter()
            .find(|p| p.is_open && p.id != plan && self.entries.iter().any(|entry| entry.plan == p.id));
        open.map(|p| p.id.as_str())
    }
}
