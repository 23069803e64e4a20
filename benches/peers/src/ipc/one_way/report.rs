//! Ratios of the rounds, as text and as a document.

use super::subject::{Subject, Wait};
use crate::rounds::Ratio;
use lowlat_pipeline::StageFigures;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Figures of all subjects in one round.
pub type Round = BTreeMap<Subject, StageFigures>;

/// A ratio of two transports over all rounds.
#[derive(Debug, Serialize)]
struct Compared {
    wait: Wait,
    /// Name of the figure: `p50` or `p99`.
    figure: &'static str,
    above: Subject,
    below: Subject,
    ratio: Option<Ratio>,
    text: String,
}

#[derive(Debug, Serialize)]
struct OneWayDocument<'a> {
    document: &'static str,
    schema_version: u32,
    cpus: &'a [u32],
    payload_bytes: usize,
    /// Number of round trips whose mean is one sample of a spinning transport.
    batch: u64,
    left_out: BTreeMap<&'static str, &'static str>,
    ratios: Vec<Compared>,
    rounds: &'a [Round],
}

/// Prints one line per round to stderr, as progress.
pub fn print_round(number: u32, round: &Round) {
    let figures: Vec<String> = round
        .iter()
        .filter_map(|(subject, figures)| Some(format!("{} {}", subject.name(), figures.p50_ns?)))
        .collect();
    eprintln!("round {number:>2}, median one way in ns: {}", figures.join(", "));
}

/// Prints ratios, or the document.
pub fn print(
    rounds: &[Round],
    cpus: &[u32],
    batch: u64,
    absent: &[Subject],
    is_json: bool,
) -> anyhow::Result<()> {
    let ratios = compare(rounds);
    if is_json {
        let document = OneWayDocument {
            document: "lowlat-peers-one-way",
            schema_version: 1,
            cpus,
            payload_bytes: crate::ipc::trial::message::PAYLOAD_BYTES,
            batch,
            left_out: absent.iter().map(|one| (one.name(), one.missing().unwrap_or_default())).collect(),
            ratios,
            rounds,
        };
        println!("{}", serde_json::to_string_pretty(&document)?);
        return Ok(());
    }
    for wait in [Wait::Spin, Wait::Park] {
        match wait {
            Wait::Spin => println!("Spinning, CPUs {cpus:?}: medians of means of {batch} trips"),
            Wait::Park => println!("Parked, CPUs {cpus:?}: single trips"),
        }
        for row in ratios.iter().filter(|row| row.wait == wait) {
            println!("  {:<4} {:>17} / {:<17} {}", row.figure, row.above.name(), row.below.name(), row.text);
        }
    }
    Ok(())
}

/// Compares every subject with its floor, and each of lowlat's with each of the others.
fn compare(rounds: &[Round]) -> Vec<Compared> {
    let here: BTreeSet<Subject> = rounds.iter().flat_map(Round::keys).copied().collect();
    let mut pairs = Vec::new();
    for subject in here.iter().copied() {
        let floor = subject.wait().floor();
        if subject != floor {
            pairs.push((subject, floor));
        }
    }
    for ours in here.iter().copied().filter(|subject| subject.is_ours()) {
        let others = here.iter().copied();
        let others = others.filter(|other| other.wait() == ours.wait() && !other.is_ours());
        pairs.extend(others.filter(|other| *other != ours.wait().floor()).map(|other| (ours, other)));
    }
    let mut rows = Vec::new();
    for (above, below) in pairs {
        let wait = above.wait();
        rows.push(row(rounds, "p50", above, below, |figures| figures.p50_ns));
        // The tail of means of many trips says little.
        if wait == Wait::Park {
            rows.push(row(rounds, "p99", above, below, |figures| figures.p99_ns));
        }
    }
    rows
}

fn row(
    rounds: &[Round],
    figure: &'static str,
    above: Subject,
    below: Subject,
    value: impl Fn(&StageFigures) -> Option<u64>,
) -> Compared {
    let of = |round: &Round, subject| round.get(&subject).and_then(&value).map(|value| value as f64);
    let pairs: Vec<_> =
        rounds.iter().filter_map(|round| Some((of(round, above)?, of(round, below)?))).collect();
    let ratio = Ratio::of(&pairs);
    let text = ratio.map_or("no round has trips enough for it".to_owned(), |ratio| ratio.text());
    Compared { wait: above.wait(), figure, above, below, ratio, text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(line: u64, stream: u64, ringfire: u64) -> Round {
        let figures = |p50_ns| StageFigures { p50_ns: Some(p50_ns), ..StageFigures::default() };
        [(Subject::Line, line), (Subject::LowlatStream, stream), (Subject::Ringfire, ringfire)]
            .map(|(subject, p50_ns)| (subject, figures(p50_ns)))
            .into()
    }

    #[test]
    fn a_tie_is_called_one() {
        let rounds: Vec<_> = (0..6).map(|n| round(50, 100, if n % 2 == 0 { 99 } else { 101 })).collect();
        let rows = compare(&rounds);
        let text = |above, below| {
            rows.iter()
                .find(|row| (row.above, row.below) == (above, below))
                .map(|row| row.text.clone())
                .unwrap()
        };
        assert!(text(Subject::LowlatStream, Subject::Line).starts_with("2.000"));
        assert!(text(Subject::LowlatStream, Subject::Ringfire).contains("no difference shown"));
        assert_eq!(rows.len(), 3);
    }
}
