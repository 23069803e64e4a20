//! Live view of a run.

use lowlat_host::CpuId;
use lowlat_text::columns::Table;
use lowlat_text::text::cut;
use lowlat_text::units::{count, duration, percent, plural, rate, span};

/// Lines besides the rows: headline, table head, count of CPUs left out.
const FRAME: usize = 3;
/// Width of the progress bar.
const BAR: usize = 16;
/// Columns of a row; lines are not wider.
const WIDTH_MIN: usize = 40;

/// Figures of one CPU so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LiveCpu {
    pub cpu: CpuId,
    /// Number of interruptions so far.
    pub count: u64,
    pub ns_total: u64,
    /// Longest interruption; 0 if there was none.
    pub ns_max: u64,
}

/// The run so far, and the size of the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiveView<'a> {
    pub cpus: &'a [LiveCpu],
    /// Elapsed time of the run.
    pub elapsed_ns: u64,
    /// Planned time of the run.
    pub duration_ns: u64,
    pub width: usize,
    pub height: usize,
}

/// Returns plain lines without colours, fewer than the terminal has. If not every CPU fits, shows those with the
/// longest interruptions; the last line then counts the others.
pub fn live_lines(view: &LiveView<'_>) -> Vec<String> {
    let width = view.width.max(WIDTH_MIN);
    // The cursor is on a separate line below the text.
    let rows_max = view.height.saturating_sub(FRAME + 1).max(1);
    let mut shown: Vec<LiveCpu> = view.cpus.to_vec();
    if shown.len() > rows_max {
        shown.sort_by_key(|of| (std::cmp::Reverse(of.ns_max), std::cmp::Reverse(of.count), of.cpu));
        shown.truncate(rows_max);
    } else {
        shown.sort_by_key(|of| of.cpu);
    }
    let mut lines = vec![headline(view)];
    let elapsed = view.elapsed_ns as f64;
    let table = Table::of(&shown)
        .figures("CPU", 0, |of| of.cpu.to_string())
        .figures("count", 0, |of| count(of.count))
        .figures("per s", 0, |of| (elapsed > 0.0).then(|| rate(of.count as f64 * 1e9 / elapsed)))
        .figures("lost", 1, |of| (elapsed > 0.0).then(|| percent(of.ns_total as f64 * 100.0 / elapsed)))
        .figures("max", 0, |of| (of.count > 0).then(|| duration(of.ns_max)));
    lines.extend(table.lines(width));
    let left = view.cpus.len() - shown.len();
    if left > 0 {
        lines.push(format!("  and {} more", count(left as u64)));
    }
    lines.iter().map(|line| cut(line, width)).collect()
}

/// Returns "12 s of 610 s [###         ] 14 CPUs, 2.01 per s each, longest 1.28 ms".
fn headline(view: &LiveView<'_>) -> String {
    let done = (view.elapsed_ns as f64 / view.duration_ns.max(1) as f64).clamp(0.0, 1.0);
    let total = view.cpus.iter().fold(0u64, |sum, of| sum.saturating_add(of.count));
    let core_seconds = view.elapsed_ns as f64 / 1e9 * view.cpus.len() as f64;
    let each = if core_seconds > 0.0 { rate(total as f64 / core_seconds) } else { "-".to_owned() };
    let longest = view.cpus.iter().map(|of| of.ns_max).max().filter(|ns| *ns > 0);
    let longest = longest.map_or_else(String::new, |ns| format!(", longest {}", duration(ns)));
    format!(
        "{} s of {} [{}] {}, {each} per s each{longest}",
        count(view.elapsed_ns / 1_000_000_000),
        span(view.duration_ns),
        progress(done),
        plural(view.cpus.len(), "CPU")
    )
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share between 0 and 1")]
fn progress(done: f64) -> String {
    let signs = ((done * BAR as f64).floor() as usize).min(BAR);
    format!("{:BAR$}", "#".repeat(signs))
}
