//! Live view of a run: a small table on stderr, on a terminal only.

use crate::{output, progress::Progress};
use lowlat_pipeline_report::pipeline_live_lines;
use lowlat_trade::run::{Progress as RunProgress, Turn};

/// The live view; silent if stderr is not a terminal.
pub struct Live {
    progress: Progress,
    /// Columns and lines of the terminal.
    size: (usize, usize),
}

impl Live {
    /// Adapts to the terminal's current size.
    pub fn new() -> Self {
        let progress = Progress::new();
        progress.stand_still();
        Self { progress, size: output::stderr_size() }
    }

    /// Shows the progress of a run.
    pub fn show(&self, title: &str, duration_s: f64, now: &RunProgress) {
        if self.progress.is_hidden() {
            return;
        }
        let lines = pipeline_live_lines(title, duration_s, now, self.size);
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
