//! Words and numbers that all texts share.

use lowlat_host::statistics::MedianInterval;
pub use lowlat_text::units::rate as per_second;
use lowlat_text::units::{count, duration, plural, size};
use lowlat_workload::{Cell, Idle, Place, Purpose, Setting, UNBOUNDED, Verdict, WorkloadRecord, verdict};

/// "10.4 [9.9, 10.8]", or the ratio alone if there are too few rounds for an interval.
pub fn ratio(of: &MedianInterval) -> String {
    with_interval(of, "")
}

/// Formats a ratio: "10.4x [9.9, 10.8]".
pub fn times(of: &MedianInterval) -> String {
    with_interval(of, "x")
}

fn with_interval(of: &MedianInterval, unit: &str) -> String {
    // Two digits that count, also of a ratio such as 0.031.
    let small = [9.995, 0.1, 0.01, 0.001].into_iter().take_while(|bound| of.median < *bound).count();
    let number =
        |value: f64| if value > UNBOUNDED { "∞".to_owned() } else { format!("{value:.*}", small + 1) };
    if of.is_interval() {
        format!("{}{unit} [{}, {}]", number(of.median), number(of.low), number(of.high))
    } else {
        format!("{}{unit}", number(of.median))
    }
}

/// A ratio, marked if it shows no difference.
pub fn judged(of: &MedianInterval) -> String {
    match verdict(of) {
        Verdict::NoDifferenceShown => format!("{}, no difference shown", ratio(of)),
        Verdict::NothingCounted => format!("{}, no verdict", ratio(of)),
        Verdict::Faster | Verdict::Slower | Verdict::TooFewRounds => ratio(of),
    }
}

/// Formats an interval: "42,001 to 44,210".
pub fn interval(of: &MedianInterval, number: fn(f64) -> String) -> String {
    if of.is_interval() {
        format!("{} to {}", number(of.low), number(of.high))
    } else {
        lowlat_text::columns::NONE.to_owned()
    }
}

/// Bytes per second: "17 MiB".
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "`as` saturates as intended")]
pub fn bytes(value: f64) -> String {
    size(value as u64)
}

/// A time in nanoseconds: "5.1 us".
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "`as` saturates as intended")]
pub fn time(ns: f64) -> String {
    duration(ns as u64)
}

/// Names a workload with its copies: "pipe, 4 copies".
pub fn named(workload: &str, copies: u32) -> String {
    let copies = if copies == 1 { "1 copy".to_owned() } else { format!("{} copies", count(copies.into())) };
    format!("{workload}, {copies}")
}

/// A place in words: of two processes that wait for each other, or of many.
pub fn place(place: Place, copies: u32, has_clusters: bool) -> &'static str {
    match (place, copies, has_clusters) {
        (Place::Kernel, ..) => "kernel's choice",
        (Place::One, ..) => "same CPU",
        (Place::Pack, 1, _) => "same cluster",
        (Place::Pack, ..) => "packed",
        (Place::Spread, 1, true) => "across clusters",
        (Place::Spread, 1, false) => "across cores",
        (Place::Spread, ..) => "spread",
    }
}

/// A setting in words: "same CPU, no idle states".
pub fn setting(of: Setting, copies: u32, has_clusters: bool) -> String {
    let idle = if of.idle == Idle::None { " without idle states" } else { "" };
    format!("{}{idle}", place(of.place, copies, has_clusters))
}

/// "7 rounds in random order, medians with 95 % intervals."
pub fn how(record: &WorkloadRecord) -> String {
    let rounds = plural(record.rounds, "round");
    format!("{rounds}, each of every row in random order; medians over rounds with 95 % intervals.")
}

/// Returns the doubts about the figures: those of the measurement, then those that the record shows.
pub fn caveats(record: &WorkloadRecord) -> Vec<String> {
    let mut found = record.warnings.clone();
    let named = |cell: &Cell| named(&cell.workload, cell.copies);
    for (place, cell) in record.cells.iter().enumerate() {
        let (name, under) = (named(cell), cell.setting);
        let [empty, all] = record.empty_rounds(place);
        if empty > 0 {
            found.push(format!("{name} with {under} counted nothing in {empty} of {all} rounds."));
        }
        if let Some([lower, upper]) = record.humps(place) {
            let [lower, upper] = [lower, upper].map(per_second);
            found.push(format!(
                "{name} with {under} has two humps, near {lower} and {upper} per second: a ratio depends on how many rounds \
                 meet which; find what alternates, or measure more rounds."
            ));
        }
    }
    let pairs = if record.purpose == Purpose::Compare { record.pairs() } else { Vec::new() };
    let mut has_two_policies = false;
    for pair in pairs {
        let [Some(a), Some(b)] = pair.map(|place| record.cells.get(place)) else { continue };
        let is_place_alone = Setting { place: b.setting.place, ..a.setting } == b.setting;
        if is_place_alone && !a.cpus.is_empty() && cpus(a) == cpus(b) {
            let how = if a.cpus == b.cpus {
                ", each process on the same one, so a setting was compared with itself"
            } else {
                ", in another order"
            };
            found.push(format!("{}: both sides use the same CPUs ({}){how}.", named(a), cpus(a)));
        }
        has_two_policies |= a.setting.policy != b.setting.policy && a.cpus.is_empty() && b.cpus.is_empty();
    }
    if has_two_policies {
        found.push(
            "The kernel chose the CPUs, and it wakes processes of each policy by other rules: ratios hold the place of the \
             processes too. Give both sides a place to compare policies alone."
                .to_owned(),
        );
    }
    found
}

/// One sentence for each reason.
pub fn not_measured(record: &WorkloadRecord) -> Vec<String> {
    let mut reasons: Vec<(&str, Vec<String>)> = Vec::new();
    for missing in &record.missing {
        let setting = missing.setting.map(|setting| format!(" with {setting}")).unwrap_or_default();
        let copies = missing.copies.filter(|copies| *copies > 1);
        let name = copies.map_or_else(|| missing.workload.clone(), |copies| named(&missing.workload, copies));
        let what = format!("{name}{setting}");
        match reasons.iter_mut().find(|(why, _)| *why == missing.why) {
            Some((_, whats)) if !whats.contains(&what) => whats.push(what),
            Some(_) => {}
            None => reasons.push((&missing.why, vec![what])),
        }
    }
    reasons.into_iter().map(|(why, whats)| format!("{}: {why}.", few(&whats))).collect()
}

/// The first few of a list, and how many more.
fn few(whats: &[String]) -> String {
    /// Names that are written out.
    const SHOWN: usize = 3;
    let shown: Vec<&str> = whats.iter().take(SHOWN).map(String::as_str).collect();
    match whats.len().saturating_sub(SHOWN) {
        0 => shown.join("; "),
        more => format!("{}; and {more} more", shown.join("; ")),
    }
}

pub fn cpus(cell: &Cell) -> String {
    if cell.cpus.is_empty() {
        return "any".to_owned();
    }
    cell.cpus.iter().copied().collect::<lowlat_host::CpuSet>().to_list()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_have_two_digits_that_count() {
        let of = |median: f64| MedianInterval { median, low: median / 2.0, high: median * 2.0, rounds: 7 };
        assert_eq!(ratio(&of(10.0)), "10.0 [5.0, 20.0]");
        assert_eq!(times(&of(1.5)), "1.50x [0.75, 3.00]");
        assert_eq!(ratio(&of(0.03)), "0.030 [0.015, 0.060]");
        assert_eq!(times(&MedianInterval { rounds: 5, ..of(2.0) }), "2.00x");
        let unbounded = MedianInterval { median: f64::MAX, low: 1.25, high: f64::MAX, rounds: 7 };
        assert_eq!(ratio(&unbounded), "∞ [1.2, ∞]");
    }
}
