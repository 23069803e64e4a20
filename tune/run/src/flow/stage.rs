//! The stages of applying a plan. Each is a separate plan in the undo log.

/// Maximum number of rounds of one stage whose steps differ.
pub(super) const ROUNDS_MAX: usize = 64;

/// A stage. A rollback runs them backwards, so the dead-man switch, which is armed first, stays until the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ApplyStage {
    Confirm,
    /// TuneD's profile: its file, then the switch to it. The first stage that changes the host, because
    /// TuneD sets further values. Files of units that run-time changes start are written here too.
    Tuned,
    /// Numbers of queues of interfaces. A driver that changes them replaces its interrupts.
    Queues,
    /// Changes that take effect at once.
    Run,
    /// Files, and which services start at boot.
    Files,
    /// Sources of the boot loader's configuration.
    Boot,
    /// The files that the boot loader's program generates.
    Loader,
    /// The units that keep the plan in force.
    Persist,
}

impl ApplyStage {
    /// The stages in the order in which they are applied.
    pub(super) const ORDER: [Self; 8] = [
        Self::Confirm,
        Self::Tuned,
        Self::Queues,
        Self::Run,
        Self::Files,
        Self::Boot,
        Self::Loader,
        Self::Persist,
    ];

    /// The stage's name in IDs, and what it does.
    pub(super) fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Confirm => ("confirm", "arming the dead-man switch"),
            Self::Tuned => ("tuned", "preparing TuneD and units"),
            Self::Queues => ("queues", "setting queues of interfaces"),
            Self::Run => ("run", "setting run-time values"),
            Self::Files => ("files", "writing files"),
            Self::Boot => ("boot", "writing the boot loader's configuration"),
            Self::Loader => ("loader", "generating the boot menu"),
            Self::Persist => ("persist", "writing units"),
        }
    }

    /// The id of the stage of a plan: "9f86d081884c7d65/files". `round` distinguishes rounds whose steps
    /// differ: a boot menu changes with a kernel update.
    pub(super) fn id(self, plan_id: &str, round: usize) -> String {
        of_round(format!("{plan_id}/{}", self.words().0), round)
    }

    /// True if an id of the undo log belongs to this stage.
    pub(super) fn is_of(self, log_id: &str) -> bool {
        word_of(log_id) == self.words().0
    }
}

/// The ID of a stage in a later boot; `round` distinguishes rounds whose steps differ.
pub(super) fn again_id(plan_id: &str, stage: ApplyStage, boot_id: &str, round: usize) -> String {
    let boot: String = boot_id.chars().filter(char::is_ascii_alphanumeric).take(8).collect();
    let queues = if stage == ApplyStage::Queues { "-queues" } else { "" };
    of_round(format!("{plan_id}/boot-{boot}{queues}"), round)
}

fn of_round(id: String, round: usize) -> String {
    if round == 0 { id } else { format!("{id}.{round}") }
}

/// True if an id of the undo log belongs to the run-time stage in a later boot.
pub(super) fn is_again(log_id: &str) -> bool {
    word_of(log_id).starts_with("boot-")
}

/// True if an id of the undo log belongs to a run-time stage, of any boot.
pub(super) fn is_run_time(log_id: &str) -> bool {
    ApplyStage::Run.is_of(log_id) || ApplyStage::Queues.is_of(log_id) || is_again(log_id)
}

/// The plan that an id of the undo log belongs to.
pub(super) fn plan_of(log_id: &str) -> &str {
    log_id.split('/').next().unwrap_or(log_id)
}

fn word_of(log_id: &str) -> &str {
    let stage = log_id.split_once('/').map_or("", |(_, stage)| stage);
    stage.split('.').next().unwrap_or(stage)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_distinct() {
        let again = again_id("abc", ApplyStage::Run, "2f0c1b7e-0000-4000-8000-000000000000", 0);
        assert_eq!(again, "abc/boot-2f0c1b7e");
        assert_eq!(again_id("abc", ApplyStage::Queues, "../x", 2), "abc/boot-x-queues.2");
        assert!(is_run_time(&again) && is_run_time("abc/run") && !is_run_time("abc/boot"));
        assert!(ApplyStage::Boot.is_of("abc/boot") && !ApplyStage::Boot.is_of(&again));
        assert_eq!(ApplyStage::Loader.id("abc", 2), "abc/loader.2");
        assert!(ApplyStage::Loader.is_of("abc/loader.2"));
        assert_eq!((plan_of("abc/run"), plan_of("abc")), ("abc", "abc"));
    }
}
