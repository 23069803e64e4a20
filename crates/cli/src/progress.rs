//! Progress on stderr, on a terminal only.

use crate::output;
use indicatif::{HumanDuration, ProgressBar, ProgressState, ProgressStyle};
use lowlat_measure::jitter::JitterProgress;
use std::{fmt, time::Duration};

/// What is being done, and how far it is.
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// Says nothing yet. indicatif draws on stderr, and only when that is a terminal.
    pub fn new() -> Self {
        let bar = ProgressBar::new_spinner();
        bar.enable_steady_tick(Duration::from_millis(200));
        Self { bar }
    }

    /// A step without a measure.
    pub fn say(&self, what: impl AsRef<str>) {
        self.bar.set_message(output::own_styles(what.as_ref()).into_owned());
    }

    /// The measurement begins.
    pub fn start(&self, duration: Duration) {
        let style = ProgressStyle::with_template("{elapsed:>4} [{bar:30}] {left:>4} left  {msg}");
        let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
        // The length is the run's time in milliseconds: what is left is known from the start, not estimated.
        self.bar.set_style(style.with_key("left", |state: &ProgressState, out: &mut dyn fmt::Write| {
            let left_ms = state.len().unwrap_or(0).saturating_sub(state.pos());
            let _ = write!(out, "{:#}", HumanDuration(Duration::from_millis(left_ms)));
        }));
        self.bar.set_length(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX));
        self.bar.set_message("measuring interruptions");
        // The bar moves with the samplers' own reports; a ticking thread would be one more interruption.
        self.bar.disable_steady_tick();
    }

    /// From here on nothing moves by itself: a ticking thread would be one more interruption.
    pub fn stand_still(&self) {
        self.bar.set_style(
            ProgressStyle::with_template("{msg}").unwrap_or_else(|_| ProgressStyle::default_bar()),
        );
        self.bar.disable_steady_tick();
    }

    /// Whether nobody sees it.
    pub fn is_hidden(&self) -> bool {
        self.bar.is_hidden()
    }

    /// How far the measurement is.
    pub fn show(&self, now: &JitterProgress) {
        self.bar.set_position(u64::try_from(now.elapsed.as_millis()).unwrap_or(u64::MAX));
        self.bar.set_message(format!("{} interruptions on {} CPUs", now.interruption_count, now.cpu_count));
    }

    /// Clears the line.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
