//! Comparison of two measurements, in words shared by the terminal and the page.

use lowlat_host::statistics::RateInterval;
use lowlat_results::compare::{
    CauseVerdict, Comparison, Explanation, Figures, HarmVerdict, LengthVerdict, PercentilePair, Quantity,
    QuantityHarm, RateRatio, RunSummary, SECONDS_MIN, SettingChange,
};
use lowlat_text::text::joined;
use lowlat_text::units::{clean, count, duration, percent, plural, rate, span};

/// Returns one sentence on the result of the comparison.
pub fn headline(comparison: &Comparison) -> String {
    if !comparison.has_rates() {
        if let Some(workloads) = &comparison.workloads {
            return format!("{}.", lowlat_cores_report::changes_headline(workloads));
        }
        let measured = |runs: &[RunSummary]| runs.iter().any(|run| run.is_measured);
        let why = match (measured(&comparison.before), measured(&comparison.after)) {
            (true, true) => "no side has samples",
            (true, false) => "only the first side measured interruptions",
            (false, true) => "only the second side measured interruptions",
            (false, false) => "neither side measured interruptions",
        };
        return format!("Only settings are compared: {why}.");
    }
    let harm = &comparison.harm;
    let told = |verdict| {
        let of = harm.quantities.iter().filter(|of| of.verdict == verdict).map(change_clause);
        of.collect::<Vec<_>>().join("; ")
    };
    match harm.verdict {
        HarmVerdict::Worse => format!("Worse after: {}.", told(HarmVerdict::Worse)),
        HarmVerdict::Better => format!("Better after: {}.", told(HarmVerdict::Better)),
        HarmVerdict::Traded => {
            format!(
                "Traded. Better after: {}. Worse after: {}.",
                told(HarmVerdict::Better),
                told(HarmVerdict::Worse)
            )
        }
        HarmVerdict::NoDifferenceShown => {
            let all: Vec<String> = harm.quantities.iter().map(change_clause).collect();
            let margin = lowlat_results::compare::MARGIN * 100.0;
            format!("No difference beyond {margin:.0} % is shown: {}.", all.join("; "))
        }
        HarmVerdict::SurroundingsDiffered => {
            let all: Vec<String> = harm.quantities.iter().map(change_clause).collect();
            let load = harm.load.map_or_else(String::new, |load| {
                let [before, after] = load.map(|share| percent(share * 100.0));
                format!(" The other CPUs were busy {before} of the time before, {after} after.")
            });
            format!(
                "No verdict, because other load made the difference, of this host or of its hypervisor: {}.{load} Compare \
                 runs at the same load.",
                all.join("; ")
            )
        }
        HarmVerdict::TooShort => {
            let [before, after] = harm.seconds;
            format!(
                "Too short for a verdict: {before} whole seconds before and {after} after; each side needs {SECONDS_MIN}."
            )
        }
    }
}

/// Returns "time lost 1.20 ms -> 9.84 ms per second and CPU".
pub fn change_clause(of: &QuantityHarm) -> String {
    let [before, after] = [of.before, of.after].map(|value| amount(of.quantity, value));
    format!("{} {before} -> {after}{}", quantity_name(of.quantity), quantity_unit(of.quantity))
}

/// Names a quantity of harm.
pub fn quantity_name(of: Quantity) -> &'static str {
    match of {
        Quantity::Lost => "time lost",
        Quantity::Long => "interruptions of 10 us or longer",
        Quantity::Longest => "longest of a second",
        Quantity::Wait => "p99.9 of time",
    }
}

/// Returns what the figures of a quantity are of.
pub fn quantity_unit(of: Quantity) -> &'static str {
    match of {
        Quantity::Lost => " per second and CPU",
        Quantity::Long => " per second of running",
        Quantity::Longest => " (median)",
        Quantity::Wait => "",
    }
}

/// Formats the figure of a quantity.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
pub fn amount(of: Quantity, value: f64) -> String {
    match of {
        Quantity::Long => rate(value),
        _ if value <= 0.0 => "0".to_owned(),
        _ if value < 1.0 => "< 1 ns".to_owned(),
        _ => duration(value.round() as u64),
    }
}

/// Formats the time that a cause takes of each second; a dash if it is not known.
pub fn lost_per_s(ns: Option<f64>) -> String {
    ns.map_or_else(|| "-".to_owned(), |ns| amount(Quantity::Lost, ns))
}

/// Formats the interval of the difference of a quantity: "+8.1 ms to +9.0 ms"; a dash if it has none.
pub fn difference_text(of: &QuantityHarm) -> String {
    let text = |value: f64| match of.quantity {
        Quantity::Long if value < 0.0 => format!("-{}", rate(-value)),
        Quantity::Long => format!("+{}", rate(value)),
        _ => signed(value),
    };
    of.difference.map_or_else(|| "-".to_owned(), |[low, high]| format!("{} to {}", text(low), text(high)))
}

/// Returns the class of a difference for its colour.
pub fn class(is_more: Option<bool>) -> &'static str {
    match is_more {
        Some(true) => "more",
        Some(false) => "fewer",
        None => "same",
    }
}

/// Returns what a quantity shows, and a class for its colour.
pub fn harm_word(verdict: HarmVerdict) -> (&'static str, &'static str) {
    match verdict {
        HarmVerdict::Worse => ("worse", "more"),
        HarmVerdict::Better => ("better", "fewer"),
        HarmVerdict::Traded => ("traded", "more"),
        HarmVerdict::NoDifferenceShown => ("no difference shown", "same"),
        HarmVerdict::SurroundingsDiffered => ("other load", "same"),
        HarmVerdict::TooShort => ("too short", "same"),
    }
}

/// Formats the ratio; a dash if there is none.
pub fn ratio(of: &RateRatio) -> String {
    of.ratio.map_or_else(|| "-".to_owned(), rate)
}

/// Formats an interval: "0.0038 to 0.012", or "above 3.1" without an upper limit.
pub fn interval(of: &RateRatio) -> String {
    match of.high {
        Some(high) => format!("{} to {}", rate(of.low), rate(high)),
        None if of.low > 0.0 => format!("above {}", rate(of.low)),
        None => "no limits".to_owned(),
    }
}

/// Formats a rate with its interval: "2.00 (1.90 to 2.10)".
pub fn rate_text(of: Option<RateInterval>) -> String {
    of.map_or_else(
        || "-".to_owned(),
        |of| format!("{} ({} to {})", rate(of.per_s), rate(of.per_s_low), rate(of.per_s_high)),
    )
}

/// Returns the figures of both sides over all compared CPUs: label, before, after.
pub fn rows(comparison: &Comparison) -> Vec<(String, String, String)> {
    let both = |label: &str, of: &dyn Fn(&Figures) -> String| {
        (label.to_owned(), of(&comparison.all.before), of(&comparison.all.after))
    };
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    vec![
        both("Interruptions", &|of| count(of.count)),
        both("Core-seconds", &|of| rate(of.core_seconds)),
        both("Per second and CPU (95 %)", &|of| rate_text(of.rate)),
        both("Time lost", &|of| or_dash(of.lost_share.map(|share| percent(share * 100.0)))),
        both("Longest", &|of| or_dash(of.length_ns_max.map(duration))),
    ]
}

/// One percentile of both sides, in words.
pub struct PercentileRow {
    /// Name of the percentile: "p99.9 of time".
    pub label: String,
    pub before: String,
    pub after: String,
    /// The interval of the difference: "-1.20 us to -310 ns"; a dash if there is none.
    pub interval: String,
    pub verdict: LengthVerdict,
}

/// Returns the percentiles that both sides support: those of lengths, then those of time.
pub fn percentile_rows(comparison: &Comparison) -> Vec<PercentileRow> {
    let wait = |ns: u64| if ns == 0 { "0".to_owned() } else { duration(ns) };
    let row = |label: String, pair: &PercentilePair| PercentileRow {
        label,
        before: wait(pair.before_ns),
        after: wait(pair.after_ns),
        interval: pair
            .difference
            .map_or_else(|| "-".to_owned(), |of| format!("{} to {}", signed(of.low_ns), signed(of.high_ns))),
        verdict: pair.difference.map_or(LengthVerdict::NoDifferenceShown, |of| of.verdict),
    };
    let lengths = comparison.percentiles.iter().map(|pair| row(quantile("p", pair.quantile), pair));
    // If neither side waits at all, there is nothing to show.
    let waits = comparison.time_percentiles.iter().filter(|pair| pair.before_ns > 0 || pair.after_ns > 0);
    let waits = waits.map(|pair| row(format!("{} of time", quantile("p", pair.quantile)), pair));
    lengths.chain(waits).collect()
}

/// Formats a difference with its sign: "+310 ns", "-1.20 us", "0".
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn signed(ns: f64) -> String {
    let whole = ns.abs().round() as u64;
    match (whole, ns < 0.0) {
        (0, _) => "0".to_owned(),
        (whole, true) => format!("-{}", duration(whole)),
        (whole, false) => format!("+{}", duration(whole)),
    }
}

/// Returns the change of a setting; `None` if it did not change.
pub fn change_of<'a>(comparison: &'a Comparison, id: &str) -> Option<&'a SettingChange> {
    comparison.setting_changes.iter().find(|change| change.id == id)
}

/// Returns the changed settings that explain nothing, by direction and impact.
pub fn other_changes(comparison: &Comparison) -> Vec<&SettingChange> {
    let ranked = &comparison.explanations;
    if ranked.is_empty() {
        return comparison.setting_changes.iter().collect();
    }
    let rest = ranked.iter().filter(|of| !of.explains());
    rest.filter_map(|of| change_of(comparison, &of.id)).collect()
}

/// Returns what a setting explains: "13.2 us less per second and CPU, 96 % of the time of all causes that became
/// rarer".
pub fn explained_text(of: &Explanation) -> String {
    let (more, all) = match of.is_more {
        Some(true) => (" more", "grew"),
        Some(false) => (" less", "shrank"),
        None => (" of difference", "changed"),
    };
    if of.ns_per_s > 0.0 {
        let share =
            of.share.map(|share| format!(", {} of the time by which causes {all}", percent(share * 100.0)));
        format!(
            "{}{more} per second and CPU{}",
            lowlat_text::units::duration_fine(of.ns_per_s),
            share.unwrap_or_default()
        )
    } else {
        format!("{}{more} events per second and CPU", rate(of.count_per_s))
    }
}

/// Returns one sentence if no setting explains the difference; `None` if one does, or if settings are not compared.
pub fn unexplained_text(comparison: &Comparison) -> Option<&'static str> {
    if comparison.explanations.iter().any(Explanation::explains) || comparison.all.before.rate.is_none() {
        return None;
    }
    let differs = comparison.causes.iter().any(|of| of.verdict != CauseVerdict::NoDifferenceShown);
    Some(match (differs, comparison.explanations.is_empty()) {
        (true, true) if comparison.differences.is_empty() => {
            "Causes differ, but no setting that lowlat judges does."
        }
        (true, true) => {
            "Causes differ, but no setting that lowlat judges does. Other facts of the host do: see below."
        }
        (true, false) => "Causes differ, but no setting that differs is known to remove or bring them.",
        (false, _) => "No difference of a cause is shown, so none is explained.",
    })
}

/// Returns "p99.9" for "p" and 0.999.
fn quantile(letter: &str, quantile: f64) -> String {
    let text = format!("{:.4}", quantile * 100.0);
    format!("{letter}{}", text.trim_end_matches('0').trim_end_matches('.'))
}

/// Describes one run of a side: "2026-03-02T08:15:30Z, kernel 6.1.0-25-amd64, 610 s on 14 CPUs".
pub fn run_text(run: &RunSummary) -> String {
    let told = |before: &str, text: &str| (!text.is_empty()).then(|| format!("{before}{}", clean(text)));
    let measured = if run.cpus.is_empty() {
        let what = if run.is_measured { "compared" } else { "measured" };
        [Some(format!("interruptions not {what}")), None, None]
    } else {
        let length = format!("{} on {}", span(run.duration_ns), plural(run.cpus.len(), "CPU"));
        let threshold = format!("threshold {}", duration(run.threshold_ns));
        [Some(length), Some(threshold), run.real_time.as_deref().map(clean)]
    };
    joined([told("", &run.started_at), told("kernel ", &run.kernel)].into_iter().chain(measured), ", ")
}

/// Formats a changed setting: "wrong, 1 -> good, 3600".
pub fn change_text(change: &SettingChange) -> String {
    let side = |verdict: &str, observed: &str| match observed {
        "" => verdict.to_owned(),
        observed => format!("{verdict}, {observed}"),
    };
    let before = side(change.verdict_before.word(), &change.observed_before);
    let after = side(change.verdict_after.word(), &change.observed_after);
    clean(&format!("{before} -> {after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_without_an_upper_limit_are_marked() {
        let of = |ratio, low, high| RateRatio { ratio, low, high, ..RateRatio::default() };
        assert_eq!(interval(&of(Some(0.5), 0.25, Some(0.9))), "0.25 to 0.90");
        assert_eq!(interval(&of(None, 3.2, None)), "above 3.20");
        assert_eq!(interval(&of(None, 0.0, None)), "no limits");
        assert_eq!((quantile("p", 0.999_99), quantile("p", 0.5)), ("p99.999".to_owned(), "p50".to_owned()));
    }
}
