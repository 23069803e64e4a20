//! Live view of the measurement: one line per CPU on stderr.

use crate::{output, progress::Progress};
use lowlat_jitter_report::{LiveCpu, LiveView, live_lines};
use lowlat_jitter_run::jitter::JitterProgress;

/// Live view; silent if stderr is not a terminal.
pub struct Live<'a> {
    progress: &'a Progress,
    width: usize,
    height: usize,
}

impl<'a> Live<'a> {
    /// Creates a view with the terminal's current size.
    pub fn new(progress: &'a Progress) -> Self {
        let (width, height) = output::stderr_size();
        Self { progress, width, height }
    }

    /// Shows how far the run is.
    pub fn show(&self, now: &JitterProgress) {
        if self.progress.is_hidden() {
            return;
        }
        let cpus: Vec<LiveCpu> = now
            .cpus
            .iter()
            .map(|cpu| LiveCpu {
                cpu: cpu.cpu,
                count: cpu.interruption_count,
                ns_total: cpu.interruption_ns_total,
                ns_max: cpu.interruption_ns_max,
            })
            .collect();
        let ns = |time: std::time::Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let lines = live_lines(&LiveView {
            cpus: &cpus,
            elapsed_ns: ns(now.elapsed),
            duration_ns: ns(now.duration),
            width: self.width,
            height: self.height,
        });
        self.progress.say(lines.join("\n"));
    }
}
