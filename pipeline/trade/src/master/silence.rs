//! Detects silent nodes.

use super::{Happened, Master, Standing};
use lowlat_ipc::liveness::Life;
use lowlat_node::Refusal;

/// Interval of checks of all nodes.
const LOOK_NS: u64 = 250_000_000;

impl Master {
    /// Reports nodes that fall silent, and those that are active again.
    pub(super) fn look_for_silence(&mut self, now_ns: u64) {
        let silence_ns_max = self.options.silence_ns_max;
        if now_ns.saturating_sub(self.looked_ns) < LOOK_NS.min(silence_ns_max) {
            return;
        }
        self.looked_ns = now_ns;
        self.retire_left();
        for member in &mut self.members {
            let silence_ns = member.silence_ns(now_ns);
            match member.standing {
                Standing::Running if silence_ns > silence_ns_max => {
                    member.standing = Standing::Silent;
                    let reason = match member.owner.life() {
                        Life::Stopped => "its process is stopped (SIGSTOP or a debugger)".to_owned(),
                        Life::Dead => "its process has ended".to_owned(),
                        Life::Alive => format!(
                            "its process has not polled for {} ms: it is busy, or gets no CPU time",
                            silence_ns / 1_000_000
                        ),
                        Life::Unknown => "the state of its process is unknown (/proc)".to_owned(),
                    };
                    self.happened.push(Happened::Silent { name: member.name.clone(), reason });
                }
                Standing::Silent if silence_ns <= silence_ns_max => {
                    member.standing = Standing::Running;
                    self.happened.push(Happened::Back { name: member.name.clone() });
                }
                _ => {}
            }
        }
    }

    /// Drops a node: it is fenced, and may be restarted under its name.
    pub fn drop_node(&mut self, name: &str) -> Result<(), Refusal> {
        let number = self.find(name)?;
        self.hear_out(number);
        self.bury(number, "dropped on request", Standing::Dead);
        Ok(())
    }
}
