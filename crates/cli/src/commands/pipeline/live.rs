//! Live view of a run: a small table on stderr, on a terminal only.

use super::runner::RunProgress;
use crate::progress::Progress;
use lowlat_report::{PipelineLive, pipeline_live_lines};
use std::io;

/// Size for a terminal that does not report its own.
const WIDTH: usize = 80;
const HEIGHT: usize = 24;

/// The live view; silent if stderr is not a terminal.
pub struct Live {
    progress: Progress,
    width: usize,
    height: usize,
}

impl Live {
    /// Adapts to the terminal's current size.
    pub fn new() -> Self {
        let progress = Progress::new();
        progress.stand_still();
        let size = rustix::termios::tcgetwinsize(io::stderr()).ok();
        let or = |size: Option<u16>, default| size.filter(|size| *size > 0).map_or(default, usize::from);
        Self {
            progress,
            width: or(size.map(|size| size.ws_col), WIDTH),
            height: or(size.map(|size| size.ws_row), HEIGHT),
        }
    }

    /// Shows the progress of a run.
    pub fn show(&self, title: &str, duration_s: f64, now: &RunProgress) {
        if self.progress.is_hidden() {
            return;
        }
        let RunProgress { elapsed_s, joined, processes, ticks, orders, lost, t2o_p50_ns } = now;
        let lines = pipeline_live_lines(&PipelineLive {
            title,
            elapsed_s: *elapsed_s,
            duration_s,
            ticks: *ticks,
            orders: *orders,
            lost: *lost,
            stages: None,
            joined: (*joined, *processes),
            t2o_p50_ns: *t2o_p50_ns,
            width: self.width,
            height: self.height,
        });
        self.progress.say(lines.join("\n"));
    }

    /// Clears the view.
    pub fn finish(&self) {
        self.progress.finish();
    }
}
