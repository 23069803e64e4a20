//! Live view of a run: a small table on stderr, on a terminal only.

use crate::{output, progress::Progress};
use lowlat_pipeline_report::{PipelineLive, pipeline_live_lines};
use lowlat_trade::run::{Phase, Progress as RunProgress, Turn};

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
        let (width, height) = output::stderr_size();
        Self { progress, width, height }
    }

    /// Shows the progress of a run.
    pub fn show(&self, title: &str, duration_s: f64, now: &RunProgress) {
        if self.progress.is_hidden() {
            return;
        }
        let lines = pipeline_live_lines(&PipelineLive {
            title,
            elapsed_s: (now.phase != Phase::Joining).then_some(now.elapsed_s),
            duration_s,
            ticks: now.ticks_published,
            orders: now.orders,
            lost: now.lost,
            stages: None,
            joined: (now.joined, now.processes),
            t2o_p50_ns: now.t2o_p50_ns,
            width: self.width,
            height: self.height,
        });
        self.progress.say(lines.join("\n"));
    }

    /// Shows the progress of one of several runs.
    pub fn show_turn(&self, turn: &Turn<'_>, now: &RunProgress) {
        let Turn { number, total, name, parameters } = turn;
        let title =
            format!("run {number} of {total}, {name}: {}", lowlat_pipeline_report::load_words(parameters));
        self.show(&title, parameters.duration_s, now);
    }

    pub fn finish(&self) {
        self.progress.finish();
    }
}
