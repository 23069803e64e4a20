//! A limit for how much worse the side after may be, for scripts.

use super::{Comparison, LengthVerdict};
use serde::{Deserialize, Serialize};

/// Whether the side after is worse by more than a margin.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct LimitOutcome {
    /// The margin: 0.05 for 5 %.
    pub margin: f64,
    /// The outcome.
    pub verdict: LimitVerdict,
    /// What is worse, or what cannot be excluded. One phrase each.
    pub reasons: Vec<String>,
}

/// Outcome of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitVerdict {
    /// Worse by more than the margin: a whole interval is beyond it.
    Worse,
    /// Not worse by more than the margin: every interval is within it.
    Held,
    /// Neither is shown: an interval contains the margin.
    #[default]
    NotShown,
}

impl Comparison {
    /// Checks the rate of interruptions and the percentiles over time against a margin. Percentiles of lengths do not
    /// count: with fewer interruptions they may well be longer.
    pub fn limit(&self, margin: f64) -> LimitOutcome {
        let (mut worse, mut open) = (Vec::new(), Vec::new());
        let most = 1.0 + margin;
        let rate = &self.all.rate;
        if rate.dispersion.is_none() {
            // The interval of independent events is too narrow for bursts.
            open.push("the runs are too short or too quiet to show how much the rate varies".to_owned());
        } else if rate.low > most {
            let low = (rate.low - 1.0) * 100.0;
            worse.push(format!("the rate of interruptions is at least {low:.1} % higher"));
        } else {
            match rate.high {
                Some(high) if high <= most => {}
                Some(high) => {
                    let high = (high - 1.0) * 100.0;
                    open.push(format!("the rate of interruptions may be up to {high:.1} % higher"));
                }
                // No event on either side shows nothing about the ratio of the rates.
                None => open.push("the rate of interruptions has no upper limit".to_owned()),
            }
        }
        for pair in &self.time_percentiles {
            let name = name(pair.quantile);
            let Some(of) = pair.difference else {
                open.push(format!("{name} has too few interruptions for an interval"));
                continue;
            };
            let allowed_ns = margin * pair.before_ns as f64;
            if rate.dispersion.is_some() && of.verdict == LengthVerdict::Longer && of.low_ns > allowed_ns {
                worse.push(format!("{name} is at least {} longer", length(of.low_ns)));
            } else if of.high_ns > allowed_ns {
                open.push(format!("{name} may be up to {} longer", length(of.high_ns)));
            }
        }
        // A percentile that a side lacks would hide a longer tail.
        open.extend(self.time_quantiles_left_out.iter().map(|of| format!("{} is not compared", name(*of))));
        let (verdict, reasons) = match (worse.is_empty(), open.is_empty()) {
            (false, _) => (LimitVerdict::Worse, worse),
            (true, false) => (LimitVerdict::NotShown, open),
            (true, true) => (LimitVerdict::Held, Vec::new()),
        };
        LimitOutcome { margin, verdict, reasons }
    }
}

/// "p99.9 of time".
fn name(quantile: f64) -> String {
    let percent = format!("{:.4}", quantile * 100.0);
    format!("p{} of time", percent.trim_end_matches('0').trim_end_matches('.'))
}

/// "880 ns", "58 us".
fn length(ns: f64) -> String {
    if ns < 10_000.0 { format!("{ns:.0} ns") } else { format!("{:.0} us", ns / 1e3) }
}
