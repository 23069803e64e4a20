//! Facts about the host other than its CPUs: intruders, settings, network, pipelines.

use super::wrapped;
use crate::watch::{
    event::{Level, fault},
    watcher::{Settings, Watch},
};
use lowlat_host::Reading;
use lowlat_jitter::watch::Place;
use lowlat_plan::verify::{Standing, Verification};
use lowlat_text::units;
use ratatui::{
    style::{Color, Style},
    text::{Line, Span},
};

/// Width of the labels, with the space behind them.
const LABEL_WIDTH: usize = 11;
/// Items listed under a label.
const ITEMS_MAX: usize = 3;

/// One or more lines for each part.
pub(super) fn lines(watch: &Watch, width: usize) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    for (label, items) in [
        ("Intruders", intruders(watch)),
        ("Settings", settings(watch)),
        ("Network", network(watch)),
        ("Pipelines", pipelines(watch)),
    ] {
        add(&mut lines, label, items, width);
    }
    lines
}

/// A text with its colour.
type Item = (String, Style);

fn good(text: impl Into<String>) -> Item {
    (text.into(), Style::new().fg(Color::Green))
}

fn plain(text: impl Into<String>) -> Item {
    (text.into(), Style::new())
}

fn at(level: Level, text: impl Into<String>) -> Item {
    (text.into(), level.style())
}

fn add(lines: &mut Vec<Line<'static>>, label: &str, mut items: Vec<Item>, width: usize) {
    if items.len() > ITEMS_MAX {
        let rest = items.len() - (ITEMS_MAX - 1);
        items.truncate(ITEMS_MAX - 1);
        items.push(plain(format!("and {rest} more")));
    }
    let mut label = label;
    for (text, style) in items {
        for words in wrapped(&text, width.saturating_sub(LABEL_WIDTH)) {
            let label = std::mem::take(&mut label);
            lines.push(Line::from(vec![
                Span::raw(format!("{label:<LABEL_WIDTH$}")),
                Span::styled(words, style),
            ]));
        }
    }
}

fn intruders(watch: &Watch) -> Vec<Item> {
    let quiet = &watch.subject.quiet;
    if quiet.is_empty() {
        return vec![plain("not judged: this host isolates no CPU; name CPUs with --cpus")];
    }
    if watch.interval_count == 0 {
        return vec![plain("-")];
    }
    if let Some(why) = watch.last.interval.threads.missing_in_words() {
        return vec![at(Level::Warning, format!("unknown: {why}"))];
    }
    let found: Vec<Item> = watch
        .intruders()
        .map(|thread| {
            let time = match thread.ran_ns {
                Some(ns) => format!("ran for {}", units::duration(ns)),
                None => "came from another CPU".to_owned(),
            };
            let allowed =
                thread.cpus_allowed.known().map_or_else(String::new, |cpus| format!(", may use {cpus:#}"));
            at(Level::Fault, format!("CPU {}: {} {time}{allowed}", thread.cpu, thread.label()))
        })
        .collect();
    if found.is_empty() {
        let count = |wanted| watch.threads.iter().filter(|(place, _)| *place == wanted).count();
        let (pinned, bound) = (count(Place::Pinned), count(Place::Bound));
        if pinned + bound == 0 {
            return vec![good("none")];
        }
        let (pinned, bound) = (units::plural(pinned, "pinned thread"), units::plural(bound, "thread"));
        return vec![good(format!("none; {pinned} and {bound} of the kernel ran"))];
    }
    found
}

fn settings(watch: &Watch) -> Vec<Item> {
    match &watch.settings {
        Settings::Unchecked => vec![plain("being compared with the plan in force")],
        Settings::NoPlan => vec![plain("no plan is in force; `lowlat tune apply` sets one")],
        Settings::Unreadable(why) => vec![at(Level::Warning, format!("unknown: {why}"))],
        Settings::Compared(verification) => compared(verification, watch),
    }
}

fn compared(verification: &Verification, watch: &Watch) -> Vec<Item> {
    let counts = &verification.counts;
    let age_s = watch.last.at_unix_ms.saturating_sub(watch.settings_unix_ms) / 1_000;
    let pending = match counts.pending {
        0 => String::new(),
        count => format!(", {count} wait for the reboot"),
    };
    let summary = format!(
        "{} of {} held{pending} (plan {}, compared {age_s} s ago)",
        counts.held,
        counts.rows(),
        verification.plan_id.chars().take(8).collect::<String>(),
    );
    let faults = verification.rows.iter().filter(|row| row.standing.is_fault());
    let faults: Vec<Item> =
        faults.map(|row| at(level(row.standing), format!("{} {}", row.what, fault(row)))).collect();
    let summary = if faults.is_empty() { good(summary) } else { plain(summary) };
    [vec![summary], faults].concat()
}

fn level(standing: Standing) -> Level {
    if standing == Standing::Unreadable { Level::Warning } else { Level::Fault }
}

fn network(watch: &Watch) -> Vec<Item> {
    if watch.interval_count == 0 {
        return vec![plain("-")];
    }
    if watch.drops.is_empty() {
        let nics = units::plural(watch.last.interval.drops.len(), "interface");
        return vec![good(format!("no packets lost on {nics}"))];
    }
    let of_nic = |(nic, counters): (&String, &std::collections::BTreeMap<String, u64>)| {
        let counters: Vec<String> =
            counters.iter().map(|(name, count)| format!("{name} {}", units::count(*count))).collect();
        at(Level::Warning, format!("{nic} lost packets: {}", counters.join(", ")))
    };
    watch.drops.iter().map(of_nic).collect()
}

fn pipelines(watch: &Watch) -> Vec<Item> {
    match &watch.last.pipelines {
        Reading::Known(runs) if runs.is_empty() => vec![plain("none running")],
        Reading::Known(runs) => runs.iter().map(|run| plain(format!("{run} is running"))).collect(),
        unknown => {
            let why = unknown.missing_in_words().map(|why| format!("unknown: {why}"));
            vec![plain(why.unwrap_or_else(|| "-".to_owned()))]
        }
    }
}
