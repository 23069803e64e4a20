//! Nodes that show no sign of life.

use super::{Happened, Master, Standing};
use lowlat_ipc::liveness::Life;

/// Time between two looks at all nodes.
const LOOK_NS: u64 = 250_000_000;

impl Master {
    /// Looks at the heartbeats.
    pub(super) fn look_for_silence(&mut self, now_ns: u64) {
        let Some(silence_ns_max) = self.options.silence_ns_max else { return };
        if now_ns.saturating_sub(self.looked_ns) < LOOK_NS.min(silence_ns_max) {
            return;
        }
        self.looked_ns = now_ns;
        let mut silent = Vec::new();
        for member in &mut self.members {
            let silence_ns = now_ns.saturating_sub(member.counters.heartbeat_ns());
            match member.standing {
                Standing::Running if silence_ns > silence_ns_max => {
                    member.standing = Standing::Silent;
                    let reason = match member.owner.life() {
                        Life::Stopped => {
                            "its process is stopped (SIGSTOP, or a debugger); let it go on".to_owned()
                        }
                        Life::Dead => "its process is dead".to_owned(),
                        Life::Alive => format!(
                            "its process runs and has not polled for {} ms; it is busy with something else, or gets no CPU",
                            silence_ns / 1_000_000
                        ),
                        Life::Unknown => "/proc does not tell what its process does".to_owned(),
                    };
                    self.happened
                        .push(Happened::Silent { name: member.name.clone(), reason: reason.clone() });
                    silent.push((member.number, member.name.clone(), reason));
                }
                Standing::Silent if silence_ns <= silence_ns_max => {
                    member.standing = Standing::Running;
                    self.happened.push(Happened::Back { name: member.name.clone() });
                }
                _ => {}
            }
        }
        if self.options.gives_up_silent {
            for (number, name, reason) in silent {
                self.bury(number, &format!("given up: {reason}"), Standing::Dead);
                self.kill_program(&name);
            }
        }
    }

    /// Gives a node up: it is fenced, and may be started again under its name.
    pub fn give_up(&mut self, name: &str) -> Result<(), super::MasterError> {
        let number = self.find(name)?;
        self.bury(number, "given up by the master's user", Standing::Dead);
        Ok(())
    }
}
