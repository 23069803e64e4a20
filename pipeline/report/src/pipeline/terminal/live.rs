//! Live view of a run, as text.

use crate::pipeline::terminal::trimmed;
use lowlat_pipeline::{Phase, PipelineParameters, Progress};
use lowlat_text::text::cut;
use lowlat_text::units::{count, duration};

const WIDTH_MIN: usize = 40;
const BAR: usize = 16;

/// The progress of a run of this duration, as lines without colours, fewer than a terminal of these columns and lines
/// has. `title` is the load, such as "80 strategies, 800 quotes/s, parked", with the row's name in a matrix.
pub fn pipeline_live_lines(
    title: &str,
    duration_s: f64,
    now: &Progress,
    (width, height): (usize, usize),
) -> Vec<String> {
    let width = width.max(WIDTH_MIN);
    let mut lines = vec![title.to_owned()];
    lines.push(match (now.phase, now.processes) {
        (Phase::Joining, 0) => "starting processes".to_owned(),
        (Phase::Joining, all) => format!("starting processes: {} of {all}", now.joined),
        _ => format!(
            "{:.0} s{} {} ticks, {} orders, {} lost",
            now.elapsed_s,
            if duration_s < PipelineParameters::ENDLESS_S {
                bar(now.elapsed_s, duration_s)
            } else {
                ":".to_owned()
            },
            count(now.ticks_published),
            count(now.orders),
            count(now.lost)
        ),
    });
    lines.extend(now.t2o_p50_ns.map(|ns| format!("tick to order {} at p50", duration(ns))));
    lines.truncate(height.saturating_sub(1).max(1));
    lines.iter().map(|line| cut(line, width)).collect()
}

fn bar(elapsed_s: f64, duration_s: f64) -> String {
    format!(" of {} s [{}]", trimmed(duration_s), progress(elapsed_s / duration_s.max(1e-9)))
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share between 0 and 1")]
fn progress(done: f64) -> String {
    let signs = ((done.clamp(0.0, 1.0) * BAR as f64).floor() as usize).min(BAR);
    format!("{:BAR$}", "#".repeat(signs))
}
