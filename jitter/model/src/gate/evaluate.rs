//! Evaluates a run against its gate.

use super::{Gate, GateClause, GateKey};
use crate::{CauseShares, CpuStudy, JitterStudy, Percentile};
use lowlat_host::{CpuId, statistics::RateInterval};
use serde::{Deserialize, Serialize};

/// Result of a gate for a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct GateOutcome {
    pub gate: String,
    /// Verdict over all rows ([`Verdict::of_all`]).
    pub verdict: Verdict,
    /// One per clause and CPU, in order of the clauses.
    pub rows: Vec<GateRow>,
}

/// One limit on one CPU.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct GateRow {
    /// The CPU; `None` for all together.
    pub cpu: Option<CpuId>,
    /// Key of the clause: "max".
    pub key: String,
    /// The limit as written: "<10us".
    pub limit_text: String,
    /// The limit, in the unit [`GateRow::unit`].
    pub limit: f64,
    /// The measured value in [`GateRow::unit`]; `None` if there is none.
    pub value: Option<f64>,
    /// The value in the unit of the limit: "12.345us"; "-" if there is none.
    pub value_text: String,
    /// "ns", "/s", "%", or empty for a plain number.
    pub unit: String,
    pub verdict: Verdict,
    /// A note on the verdict; empty if none is needed.
    pub note: String,
}

/// Result of comparing a value with its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The value meets the limit.
    Held,
    /// The value does not meet it.
    Broken,
    /// The run cannot show it. It fails like a broken limit.
    #[default]
    NotShown,
}

impl Verdict {
    pub fn word(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Broken => "broken",
            Self::NotShown => "not shown",
        }
    }

    /// That of several together: broken if one is, otherwise not shown if one is not shown, otherwise held.
    pub fn of_all(verdicts: impl IntoIterator<Item = Self>) -> Self {
        let rank = |one: &Self| [Self::Held, Self::NotShown, Self::Broken].iter().position(|of| of == one);
        verdicts.into_iter().max_by_key(rank).unwrap_or(Self::Held)
    }

    fn of(is_held: bool) -> Self {
        if is_held { Self::Held } else { Self::Broken }
    }
}

impl GateOutcome {
    /// True if all rows held; otherwise the run fails.
    pub fn is_held(&self) -> bool {
        self.verdict == Verdict::Held
    }

    /// The rows that did not hold.
    pub fn failed(&self) -> impl Iterator<Item = &GateRow> {
        self.rows.iter().filter(|row| row.verdict != Verdict::Held)
    }
}

impl GateRow {
    /// One line for people: "CPU 5: max 12.345us, limit <10us: broken".
    pub fn line(&self) -> String {
        let place = self.cpu.map_or_else(|| "all CPUs".to_owned(), |cpu| format!("CPU {cpu}"));
        let note = if self.note.is_empty() { String::new() } else { format!(" ({})", self.note) };
        let Self { key, value_text, limit_text, .. } = self;
        format!("{place}: {key} {value_text}, limit {limit_text}: {}{note}", self.verdict.word())
    }
}

/// A verdict on a value.
struct Judged {
    value: Option<f64>,
    verdict: Verdict,
    note: String,
}

impl Judged {
    fn plain(clause: &GateClause, value: f64) -> Self {
        let verdict = Verdict::of(clause.comparison.holds(value, clause.limit()));
        Self { value: Some(value), verdict, note: String::new() }
    }

    fn not_shown(note: impl Into<String>) -> Self {
        Self { value: None, verdict: Verdict::NotShown, note: note.into() }
    }

    /// Applies the verdict to the whole requested time: a limit held in a part of it may not hold in all of
    /// it.
    fn for_all_of(self, cpu: &CpuStudy) -> Self {
        if self.verdict != Verdict::Held || cpu.missed_s <= 0.0 {
            return self;
        }
        let (ran, missed) = (short(cpu.runtime_s), short(cpu.missed_s));
        let note = format!("held for {ran} s, but {missed} s more were to be sampled");
        Self { verdict: Verdict::NotShown, note, ..self }
    }

    fn of(clause: &GateClause, value: Option<f64>, missing: impl FnOnce() -> String) -> Self {
        value.map_or_else(|| Self::not_shown(missing()), |value| Self::plain(clause, value))
    }
}

impl Gate {
    /// Evaluates a study against the gate.
    pub fn evaluate(&self, study: &JitterStudy) -> GateOutcome {
        let mut rows = Vec::new();
        for clause in self.clauses() {
            if clause.key.is_of_all() {
                rows.push(row(clause, None, judge_all(clause, study)));
            } else if study.cpus.is_empty() && study.missing.is_empty() {
                rows.push(row(clause, None, Judged::not_shown("no CPU was measured")));
            } else {
                let judged = |cpu: &CpuStudy| {
                    row(clause, Some(cpu.cpu), judge(clause, cpu, study.threshold_ns).for_all_of(cpu))
                };
                rows.extend(study.cpus.iter().map(judged));
                let missing = |cpu| row(clause, Some(cpu), Judged::not_shown("its sampler died"));
                rows.extend(study.missing.iter().map(missing));
            }
        }
        let verdict = Verdict::of_all(rows.iter().map(|row| row.verdict));
        GateOutcome { gate: self.to_string(), verdict, rows }
    }
}

fn row(clause: &GateClause, cpu: Option<CpuId>, judged: Judged) -> GateRow {
    let text = |value: f64| short(value / clause.unit.factor()) + clause.unit.text();
    GateRow {
        cpu,
        key: clause.key.name().to_owned(),
        limit_text: clause.limit_text(),
        limit: clause.limit(),
        value: judged.value,
        value_text: judged.value.map_or_else(|| "-".to_owned(), text),
        unit: clause.unit.base().text().to_owned(),
        verdict: judged.verdict,
        note: judged.note,
    }
}

/// Evaluates all CPUs together against a clause.
fn judge_all(clause: &GateClause, study: &JitterStudy) -> Judged {
    match clause.key {
        GateKey::Threshold => Judged::plain(clause, study.threshold_ns as f64),
        GateKey::RateAll => {
            let Some(rate) = RateInterval::of(study.all.count, study.all.core_seconds) else {
                return Judged::not_shown("nothing was sampled");
            };
            let judged = judge_rate(clause, &rate);
            let is_whole = study.missing.is_empty() && study.cpus.iter().all(|cpu| cpu.missed_s <= 0.0);
            if judged.verdict == Verdict::Held && !is_whole {
                let note = "held, but not every CPU was sampled for the whole run".to_owned();
                return Judged { verdict: Verdict::NotShown, note, ..judged };
            }
            judged
        }
        _ => judge_share(clause, study),
    }
}

/// Evaluates one CPU against a clause that is not about all together.
fn judge(clause: &GateClause, cpu: &CpuStudy, threshold_ns: u64) -> Judged {
    // Also if it is not a number, as a hostile document may have it.
    if cpu.runtime_s.is_nan() || cpu.runtime_s <= 0.0 {
        return Judged::not_shown("nothing was sampled");
    }
    let ran = short(cpu.runtime_s);
    let not_carried = || match cpu.count {
        0 => format!("no interruption in {ran} s; limit max, rate or a percentile over time"),
        count => format!("too few interruptions ({count}); run longer"),
    };
    let time_not_carried = || format!("too few interruptions ({} in {ran} s); run longer", cpu.count);
    match clause.key {
        GateKey::Max => judge_max(clause, cpu, threshold_ns),
        GateKey::Mean => Judged::of(clause, cpu.length_ns_mean, not_carried),
        GateKey::Percentile(quantile) => Judged::of(clause, find(&cpu.percentiles, quantile), not_carried),
        GateKey::TimePercentile(quantile) => {
            Judged::of(clause, find(&cpu.time_percentiles, quantile), time_not_carried)
        }
        GateKey::Rate => cpu
            .rate
            .map_or_else(|| Judged::not_shown("nothing was sampled"), |rate| judge_rate(clause, &rate)),
        GateKey::RateHigh => Judged::of(clause, cpu.rate.map(|rate| rate.per_s_high), not_carried),
        GateKey::Count => Judged::plain(clause, cpu.count as f64),
        GateKey::Lost => Judged::of(clause, cpu.lost_share.map(|share| share * 100.0), not_carried),
        GateKey::Runtime => Judged::plain(clause, cpu.runtime_s * 1e9),
        _ => Judged::not_shown("known only for all CPUs together"),
    }
}

/// Without an interruption it is only known that the longest gap is below the threshold.
fn judge_max(clause: &GateClause, cpu: &CpuStudy, threshold_ns: u64) -> Judged {
    if let Some(max) = cpu.length_ns_max {
        return Judged::plain(clause, max as f64);
    }
    let note = format!("no interruption of {threshold_ns} ns or longer in {} s", short(cpu.runtime_s));
    let verdict = if clause.limit() < threshold_ns as f64 {
        Verdict::NotShown
    } else {
        Verdict::of(clause.comparison.is_upper())
    };
    Judged { value: None, verdict, note }
}

/// The measured rate decides; the note says if its interval crosses the limit.
fn judge_rate(clause: &GateClause, rate: &RateInterval) -> Judged {
    let mut judged = Judged::plain(clause, rate.per_s);
    let is_held = judged.verdict == Verdict::Held;
    let (far, way) = if is_held == clause.comparison.is_upper() {
        (rate.per_s_high, "reaches")
    } else {
        (rate.per_s_low, "starts at")
    };
    if clause.comparison.holds(far, clause.limit()) != is_held {
        let (word, far) = (judged.verdict.word(), short(far));
        judged.note = format!("{word}, but the interval {way} {far}/s: run longer to show it");
    }
    judged
}

/// Evaluates a share of the interruption time against its clause. Time that was not traced may belong to any
/// share.
fn judge_share(clause: &GateClause, study: &JitterStudy) -> Judged {
    if study.cpus.is_empty() || study.all.core_seconds.is_nan() || study.all.core_seconds <= 0.0 {
        return Judged::not_shown("nothing was sampled");
    }
    if study.all.count == 0 {
        let note = "no interruption, so there is no time to divide".to_owned();
        let verdict = if clause.comparison.is_upper() { Verdict::Held } else { Verdict::NotShown };
        return Judged { value: None, verdict, note };
    }
    let Some(shares) = study.shares else {
        return Judged::not_shown("no causes were recorded");
    };
    let judged = Judged::plain(clause, share_of(clause.key, &shares) * 100.0);
    let most = share_of(clause.key, &shares) * 100.0 + shares.not_traced * 100.0;
    let is_turned = clause.key != GateKey::NotTraced
        && clause.comparison.holds(most, clause.limit()) != (judged.verdict == Verdict::Held);
    if is_turned {
        let part = short(shares.not_traced * 100.0);
        let note = format!("{part}% of the interruption time was not traced, which could change the result");
        return Judged { verdict: Verdict::NotShown, note, ..judged };
    }
    judged
}

fn share_of(key: GateKey, shares: &CauseShares) -> f64 {
    match key {
        GateKey::Named => shares.named,
        GateKey::EntryExit => shares.entry_exit,
        GateKey::Firmware => shares.firmware_or_hypervisor,
        GateKey::NotTraced => shares.not_traced,
        _ => shares.unexplained,
    }
}

fn find(percentiles: &[Percentile], quantile: f64) -> Option<f64> {
    let found = percentiles.iter().find(|one| (one.quantile - quantile).abs() < 1e-9);
    found.map(|one| one.length_ns as f64)
}

/// A number with six significant digits, without trailing zeros: "0.0171527", "12345.7".
fn short(number: f64) -> String {
    let decimals = if number == 0.0 { 0.0 } else { (5.0 - number.abs().log10().floor()).clamp(0.0, 12.0) };
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let text = format!("{number:.*}", decimals as usize);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}
