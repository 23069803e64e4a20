//! Headline of `lowlat pipeline size` and the lines below it: what runs confirm, apart from what the model
//! predicts.

use crate::pipeline::terminal::{strategies_words, trimmed, whole};
use lowlat_pipeline::size::{CapacityLimit, Cores, Load, Prediction, SizeDocument, predict};
use lowlat_text::units::{count, duration, percent, plural};

/// The answer. A number that no run confirms is called predicted, and no goal is claimed that no run kept.
pub fn headline(document: &SizeDocument) -> String {
    let answer = &document.answer;
    let goal = duration(whole(document.goal.p99_ns));
    let load = |strategies: u32| {
        format!(
            "{} of {} quotes/s each, {}",
            strategies_words(strategies),
            trimmed(document.rate_each_per_s),
            document.load.mode.word()
        )
    };
    let predicted =
        || format!("predicted, not checked: {}{}", strategies_words(answer.predicted), interval(document));
    match (answer.checked, answer.broken) {
        (Some(checked), _) => {
            let more = if answer.is_extrapolated { format!("; {}", predicted()) } else { String::new() };
            format!("Checked with {}: tick to order within {goal} at p99{more}", load(checked))
        }
        (None, Some(broken)) => {
            let more = if answer.predicted > 0 { format!("; {}", predicted()) } else { String::new() };
            format!("The run with {} missed the goal of {goal}{more}", load(broken))
        }
        (None, None) if answer.predicted == 0 => format!(
            "Predicted, not checked: not even one strategy of {} quotes/s meets the goal",
            trimmed(document.rate_each_per_s)
        ),
        (None, None) => format!("Predicted, not checked: {}{}", load(answer.predicted), interval(document)),
    }
}

/// Formats the range of the prediction, by the spread of the runs.
fn interval(document: &SizeDocument) -> String {
    match document.answer.predicted_range {
        Some([low, high]) if low < high => {
            format!(" ({} to {} by the spread of the runs)", count(low.into()), count(high.into()))
        }
        _ => String::new(),
    }
}

/// Describes the CPU time of other programs during the checks.
fn others(document: &SizeDocument) -> String {
    let busy: Vec<f64> = document.checked.iter().filter_map(|point| point.measured.others_busy()).collect();
    let ends =
        [f64::min, f64::max].map(|of| busy.iter().copied().reduce(of).map(|cpus| format!("{cpus:.2}")));
    match ends {
        [Some(low), Some(high)] if low == high => {
            format!("other programs kept {low} CPUs busy during the runs")
        }
        [Some(low), Some(high)] => format!("other programs kept {low} to {high} CPUs busy during the runs"),
        _ => "it is unknown what else ran on the machine".to_owned(),
    }
}

/// Lines that qualify the headline: the goal, why no run confirms it, what the model expects.
pub fn notes(document: &SizeDocument) -> Vec<String> {
    let goal = format!(
        "goal: tick to order within {} at p99, CPUs at most {:.0} % busy; CPU use is predicted, not checked",
        duration(whole(document.goal.p99_ns)),
        document.goal.utilisation * 100.0
    );
    let mut notes = vec![goal];
    notes.extend(unchecked(document).map(str::to_owned));
    notes.extend(broken(document));
    notes.push(expected(document));
    notes.extend((!document.checked.is_empty()).then(|| others(document)));
    notes
}

/// Returns the reason why no run confirms the goal; `None` if one confirms or refutes it.
fn unchecked(document: &SizeDocument) -> Option<&'static str> {
    if document.answer.checked.or(document.answer.broken).is_some() {
        return None;
    }
    let has_p99 = document.checked.iter().any(|point| point.measured.stages.t2o.p99_ns.is_some());
    Some(if document.checked.is_empty() {
        "no run was checked"
    } else if has_p99 {
        "the model predicts busier CPUs than the goal allows for every checked number"
    } else {
        "no run had enough orders for a p99, so none confirms the goal; use a longer --duration or a larger --check"
    })
}

/// The run that bounds the answer.
fn broken(document: &SizeDocument) -> Option<String> {
    let broken = document.answer.broken?;
    let point = document.checked.iter().find(|point| point.load.strategies == broken)?;
    let t2o = &point.measured.stages.t2o;
    let seen = [("p99", t2o.p99_ns), ("p50", t2o.p50_ns)];
    let over = seen.iter().find_map(|(name, ns)| {
        ns.filter(|ns| *ns as f64 > document.goal.p99_ns).map(|ns| format!("{} at {name}", duration(ns)))
    });
    let why = over.unwrap_or_else(|| "it fell behind, lost records or left orders unanswered".to_owned());
    Some(format!("a run with {} missed the goal: {why}", strategies_words(broken)))
}

fn expected(document: &SizeDocument) -> String {
    let cores = match document.load.cores {
        Cores::Shared { cpus } => format!("all processes on {}", plural(cpus, "CPU")),
        Cores::Own { strategy_cpus } => {
            format!("md and td on separate CPUs, strategies on {}", plural(strategy_cpus, "CPU"))
        }
    };
    match &document.capacity.expected {
        Some(of) => {
            let limit = match document.capacity.limit {
                CapacityLimit::P99 => "one more exceeds the latency limit",
                CapacityLimit::Utilisation => "one more keeps a CPU busier than the goal allows",
                CapacityLimit::Numbers => "a run supports no more strategies",
            };
            let strategies = strategies_words(document.capacity.strategies);
            format!("predicted for {strategies}: {}; {limit}; {cores}", prediction(document, of))
        }
        None => format!("{}; {cores}", alone(document)),
    }
}

/// A prediction such as "41.2 us at p50, 118 us at p99, the busiest CPU 4.21 %".
fn prediction(document: &SizeDocument, of: &Prediction) -> String {
    let has_p99 = document.fit.points > 0 || !document.costs.is_tail_from_max;
    let tail = if has_p99 { "at p99" } else { "maximum (too few orders for a p99)" };
    format!(
        "{} at p50, {} {tail}, the busiest CPU {}",
        duration(whole(of.p50_ns)),
        duration(whole(of.p99_ns)),
        percent(of.utilisation * 100.0)
    )
}

/// Explains why a single strategy misses the goal, and what to do about it.
fn alone(document: &SizeDocument) -> String {
    let one = Load { strategies: 1, rate_per_s: document.rate_each_per_s, ..document.load };
    let predicted = predict(&document.costs, &one).map(|of| document.fit.correct(&of));
    match (predicted, document.capacity.limit) {
        (None, _) => "one strategy needs more CPU time than the host has; lower --rate".to_owned(),
        (Some(of), CapacityLimit::P99) => format!(
            "predicted for 1 strategy: {}; raise --goal, or dedicate CPUs to its processes",
            prediction(document, &of)
        ),
        (Some(of), _) => format!(
            "predicted for 1 strategy: {}; lower --rate, or raise --utilisation",
            prediction(document, &of)
        ),
    }
}
