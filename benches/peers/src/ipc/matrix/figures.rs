//! Figures of a run that are compared, and their ratios over the rounds.

use super::cell::Contestant;
use crate::rounds::Ratio;
use lowlat_pipeline::PipelineRecord;
use serde::Serialize;
use std::collections::BTreeMap;

/// Figures of the contestants in one round of a cell.
pub type Round = BTreeMap<Contestant, Figures>;

/// Figures that are kept of a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Figures {
    /// Tick to order, from the writing of the quote.
    pub t2o_p50_ns: Option<u64>,
    pub t2o_p99_ns: Option<u64>,
    /// Tick to order, from the time that the quote was due.
    pub t2o_scheduled_p50_ns: Option<u64>,
    pub t2o_scheduled_p99_ns: Option<u64>,
    /// Latency from md to a strategy.
    pub md_p50_ns: Option<u64>,
    /// Latency from a strategy to td.
    pub order_p50_ns: Option<u64>,
    /// CPUs kept busy by all processes together.
    pub cpus_busy: f64,
    /// Context switches per quote.
    pub switches_per_tick: f64,
    /// Number of quotes in the schedule.
    pub ticks: u64,
    /// Number of orders that td read.
    pub orders: u64,
    /// Reasons to doubt the run.
    pub warnings: Vec<String>,
}

impl Figures {
    /// Extracts the figures from a run's record.
    pub fn of(record: &PipelineRecord) -> Self {
        let cpu_s: f64 = record.uses.iter().map(|row| row.cpu_s).sum();
        let switches: u64 =
            record.uses.iter().map(|row| row.voluntary_switches + row.involuntary_switches).sum();
        let stages = &record.stages;
        Self {
            t2o_p50_ns: stages.t2o.p50_ns,
            t2o_p99_ns: stages.t2o.p99_ns,
            t2o_scheduled_p50_ns: stages.t2o_scheduled.p50_ns,
            t2o_scheduled_p99_ns: stages.t2o_scheduled.p99_ns,
            md_p50_ns: stages.md.p50_ns,
            order_p50_ns: stages.order.p50_ns,
            cpus_busy: if record.measured_s > 0.0 { cpu_s / record.measured_s } else { 0.0 },
            switches_per_tick: switches as f64 / record.ticks_scheduled.max(1) as f64,
            ticks: record.ticks_scheduled,
            orders: record.orders,
            warnings: record.warnings.clone(),
        }
    }

    /// Formats the main figures as one line.
    pub fn text(&self) -> String {
        let us = |ns: Option<u64>| ns.map_or("-".to_owned(), |ns| format!("{:.1}", ns as f64 / 1e3));
        let mut text = format!(
            "t2o p50 {} us, p99 {} us; {:.2} CPUs busy; {:.1} switches/quote",
            us(self.t2o_p50_ns),
            us(self.t2o_p99_ns),
            self.cpus_busy,
            self.switches_per_tick
        );
        for warning in &self.warnings {
            text.push_str("; ");
            text.push_str(warning);
        }
        text
    }
}

/// A ratio of two contestants over the rounds of a cell.
#[derive(Debug, Clone, Serialize)]
pub struct Compared {
    /// Name of the compared figure.
    pub figure: &'static str,
    /// Contestant whose figure is divided.
    pub above: Contestant,
    /// Contestant by whose figure it is divided.
    pub below: Contestant,
    /// Ratio over the rounds that have both.
    pub ratio: Option<Ratio>,
    /// The ratio as text, for reports.
    pub text: String,
}

type Value = fn(&Figures) -> Option<f64>;

/// Figures that are compared. None of them is better when it is larger.
const COMPARED: [(&str, Value); 5] = [
    ("t2o p50", |figures| figures.t2o_p50_ns.map(|ns| ns as f64)),
    ("t2o p99", |figures| figures.t2o_p99_ns.map(|ns| ns as f64)),
    ("t2o p50 from schedule", |figures| figures.t2o_scheduled_p50_ns.map(|ns| ns as f64)),
    ("t2o p99 from schedule", |figures| figures.t2o_scheduled_p99_ns.map(|ns| ns as f64)),
    ("CPU time", |figures| Some(figures.cpus_busy)),
];

/// Pairs to compare: the model with lowlat and with lowlat-ipc alone, and lowlat with lowlat-ipc alone and with the least
/// that processes can do.
const PAIRS: [(Contestant, Contestant); 5] = [
    (Contestant::KungfuModel, Contestant::Lowlat),
    (Contestant::KungfuModel, Contestant::IpcStar),
    (Contestant::Lowlat, Contestant::IpcStar),
    (Contestant::Lowlat, Contestant::Floor),
    (Contestant::IpcStar, Contestant::Floor),
];

/// All ratios that the rounds can give.
pub fn compare(rounds: &[Round]) -> Vec<Compared> {
    let took_part = |contestant| rounds.iter().any(|round| round.contains_key(&contestant));
    let mut rows = Vec::new();
    for (above, below) in PAIRS.into_iter().filter(|(above, below)| took_part(*above) && took_part(*below)) {
        for (figure, value) in COMPARED {
            let pairs: Vec<_> = rounds
                .iter()
                .filter_map(|round| Some((value(round.get(&above)?)?, value(round.get(&below)?)?)))
                .collect();
            let ratio = Ratio::of(&pairs);
            let text = ratio.map_or("no round has orders enough for it".to_owned(), |ratio| ratio.text());
            rows.push(Compared { figure, above, below, ratio, text });
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(p50: u64, cpus_busy: f64) -> Figures {
        Figures { t2o_p50_ns: Some(p50), cpus_busy, ..Figures::default() }
    }

    #[test]
    fn the_model_is_divided_by_ours() {
        let rounds: Vec<Round> = [(900, 30), (1000, 50), (1100, 20), (900, 30), (1200, 40)]
            .map(|(theirs, ours)| {
                Round::from([
                    (Contestant::KungfuModel, figures(theirs, 1.0)),
                    (Contestant::IpcStar, figures(ours, 1.0)),
                ])
            })
            .into();
        let rows = compare(&rounds);
        assert_eq!(rows.len(), COMPARED.len(), "lowlat took no part");
        assert!(rows[0].text.starts_with("30.000"), "{}", rows[0].text);
        assert!(rows[1].ratio.is_none() && rows[1].text.contains("no round"));
        assert!(rows[4].text.contains("no difference shown"), "{}", rows[4].text);
    }
}
