//! A run while it goes on: a small table on stderr, on a terminal only.

use super::runner::RunProgress;
use crate::progress::Progress;
use lowlat_report::{PipelineLive, pipeline_live_lines};
use std::io;

/// A terminal that does not tell its size.
const WIDTH: usize = 80;
const HEIGHT: usize = 24;

/// The live view; silent where stderr is no terminal.
pub struct Live {
    progress: Progress,
    width: usize,
    height: usize,
}

impl Live {
    /// As large as the terminal is now.
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

    /// Shows how far a run is.
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

    /// Clears it.
    pub fn finish(&self) {
        self.progress.finish();
    }
}
