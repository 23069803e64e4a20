//! Live view of the measurement: one line per CPU on stderr.

use crate::progress::Progress;
use lowlat_jitter_report::{LiveCpu, LiveView, live_lines};
use lowlat_jitter_run::jitter::JitterProgress;
use std::io;

/// Default number of lines, for a terminal that does not report its size.
const HEIGHT: usize = 24;
const WIDTH: usize = 80;

/// Live view; silent if stderr is not a terminal.
pub struct Live<'a> {
    progress: &'a Progress,
    width: usize,
    height: usize,
}

impl<'a> Live<'a> {
    /// Creates a view with the terminal's current size.
    pub fn new(progress: &'a Progress) -> Self {
        let size = rustix::termios::tcgetwinsize(io::stderr()).ok();
        let or = |size: Option<u16>, default| size.map_or(default, usize::from).max(1);
        Self {
            progress,
            width: or(size.map(|size| size.ws_col).filter(|columns| *columns > 0), WIDTH),
            height: or(size.map(|size| size.ws_row).filter(|rows| *rows > 0), HEIGHT),
        }
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
