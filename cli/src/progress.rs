//! Progress line on stderr, on a terminal only.

use crate::output;
use indicatif::{HumanDuration, ProgressBar, ProgressState, ProgressStyle};
use lowlat_jitter_run::jitter::JitterProgress;
use std::{fmt, time::Duration};

/// Progress of the current activity.
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// Creates an empty progress line. indicatif draws on stderr, and only if that is a terminal.
    pub fn new() -> Self {
        let bar = ProgressBar::new_spinner();
        bar.enable_steady_tick(Duration::from_millis(200));
        Self { bar }
    }

    /// Shows an activity of unknown length.
    pub fn say(&self, what: impl AsRef<str>) {
        self.bar.set_message(output::own_styles(what.as_ref()).into_owned());
    }

    /// Shows the start of a measurement.
    pub fn start(&self, duration: Duration) {
        let style = ProgressStyle::with_template("{elapsed:>4} [{bar:30}] {left:>4} left  {msg}");
        let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
        // The length is the run's time in milliseconds, so the time left is known, not estimated.
        self.bar.set_style(style.with_key("left", |state: &ProgressState, out: &mut dyn fmt::Write| {
            let left_ms = state.len().unwrap_or(0).saturating_sub(state.pos());
            let _ = write!(out, "{:#}", HumanDuration(Duration::from_millis(left_ms)));
        }));
        self.bar.set_length(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX));
        self.bar.set_message("measuring interruptions");
        // The samplers' own reports move the bar: a ticking thread would be one more interruption.
        self.bar.disable_steady_tick();
    }

    /// Stops the animation: a ticking thread would be one more interruption.
    pub fn stand_still(&self) {
        self.bar.set_style(
            ProgressStyle::with_template("{msg}").unwrap_or_else(|_| ProgressStyle::default_bar()),
        );
        self.bar.disable_steady_tick();
    }

    /// Returns whether the line is not drawn.
    pub fn is_hidden(&self) -> bool {
        self.bar.is_hidden()
    }

    /// Shows how far the measurement is.
    pub fn show(&self, now: &JitterProgress) {
        self.bar.set_position(u64::try_from(now.elapsed.as_millis()).unwrap_or(u64::MAX));
        self.bar.set_message(format!("{} interruptions on {} CPUs", now.interruption_count, now.cpu_count));
    }

    /// Clears the line.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
