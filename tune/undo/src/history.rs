//! The state that results from all records.

use super::{Event, LoggedState, Record, TargetSpec};

/// A step that has changed the host, or may have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The plan that it belongs to.
    pub plan: String,
    pub step: String,
    /// The boot in which it was applied. Values do not survive it.
    pub boot: String,
    /// Start time in milliseconds since 1970.
    pub unix_ms: u64,
    pub target: TargetSpec,
    pub old: LoggedState,
    pub new: LoggedState,
    /// Directories that it created, outermost first.
    pub directories: Vec<String>,
    pub progress: Progress,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// It was about to change the host; only the host shows whether it did.
    Intended,
    /// It changed the host, and this was read back.
    Done(LoggedState),
    /// It failed and left this, which is neither the old nor the new state.
    Left(LoggedState),
}

/// A plan in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanEntry {
    pub id: String,
    /// Time of its first start in milliseconds since 1970.
    pub unix_ms: u64,
    /// True if it was started and has neither been finished nor rolled back.
    pub is_open: bool,
}

/// Plans and active steps, in order of their start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct History {
    /// All plans that were started. Plans without active steps from before the last compaction are not
    /// included.
    pub plans: Vec<PlanEntry>,
    /// The active steps, without those that were rolled back.
    pub entries: Vec<Entry>,
}

impl History {
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
                let entry = Entry { plan, step, boot, unix_ms, target, old, new, directories, progress };
                self.entries.push(entry);
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

    /// The entry of a step, if it is active.
    pub fn entry(&self, plan: &str, step: &str) -> Option<&Entry> {
        self.entries.iter().rfind(|e| e.plan == plan && e.step == step)
    }

    /// True if the plan was started and has neither been finished nor rolled back.
    pub fn is_open(&self, plan: &str) -> bool {
        self.plans.iter().any(|p| p.is_open && p.id == plan)
    }

    /// A plan other than `plan` that is in progress and has changed something.
    pub(super) fn other_unfinished(&self, plan: &str) -> Option<&str> {
        let open = self
            .plans
            .iter()
            .find(|p| p.is_open && p.id != plan && self.entries.iter().any(|entry| entry.plan == p.id));
        open.map(|p| p.id.as_str())
    }
}
