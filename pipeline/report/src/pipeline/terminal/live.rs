//! Live view of a run, as text.

use crate::pipeline::terminal::{figures_table, stages};
use lowlat_pipeline::Stages;
use lowlat_text::text::cut;
use lowlat_text::units::{count, duration};

const WIDTH_MIN: usize = 40;
const BAR: usize = 16;

/// State of a run, and the size of the terminal.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PipelineLive<'a> {
    /// The load, such as "80 strategies, 800 quotes/s, parked", with the row's name in a matrix.
    pub title: &'a str,
    /// Time since the first quote, in seconds; `None` before it.
    pub elapsed_s: Option<f64>,
    /// Time for which quotes are published, in seconds.
    pub duration_s: f64,
    /// Number of quotes published so far.
    pub ticks: u64,
    /// Orders that td has read.
    pub orders: u64,
    /// Number of records lost so far.
    pub lost: u64,
    /// Latencies so far, by stage.
    pub stages: Option<&'a Stages>,
    /// Processes that have joined, and all processes; both 0 if unknown.
    pub joined: (u32, u32),
    /// Median of tick to order so far, if the stages are unknown.
    pub t2o_p50_ns: Option<u64>,
    /// Width of the terminal, in columns.
    pub width: usize,
    /// Height of the terminal, in lines.
    pub height: usize,
}

/// Lines without colours, fewer than the terminal has.
pub fn pipeline_live_lines(view: &PipelineLive<'_>) -> Vec<String> {
    let width = view.width.max(WIDTH_MIN);
    let mut lines = vec![view.title.to_owned()];
    match view.elapsed_s {
        None => lines.push(match view.joined {
            (_, 0) => "starting processes".to_owned(),
            (joined, all) => format!("starting processes: {joined} of {all}"),
        }),
        Some(elapsed_s) => lines.push(format!(
            "{elapsed_s:.0} s of {} s [{}] {} ticks, {} orders, {} lost",
            crate::pipeline::terminal::trimmed(view.duration_s),
            progress(elapsed_s / view.duration_s.max(1e-9)),
            count(view.ticks),
            count(view.orders),
            count(view.lost)
        )),
    }
    if let Some(ns) = view.t2o_p50_ns.filter(|_| view.stages.is_none()) {
        lines.push(format!("tick to order {} at p50", duration(ns)));
    }
    if let Some(stages) = view.stages {
        lines.extend(figures_table(&self::stages(stages)).lines(width));
    }
    // The cursor is on a separate line below the text.
    lines.truncate(view.height.saturating_sub(1).max(1));
    lines.iter().map(|line| cut(line, width)).collect()
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share between 0 and 1")]
fn progress(done: f64) -> String {
    let signs = ((done.clamp(0.0, 1.0) * BAR as f64).floor() as usize).min(BAR);
    format!("{:BAR$}", "#".repeat(signs))
}
