//! One gate for several documents: how many keep it.

use super::{exit_of, judge};
use crate::{documents, exit::Exit, output};
use anyhow::Context;
use lowlat_jitter::gate::{Gate, GateOutcome, GateRow, Verdict};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// JSON output: the outcome of the gate in each document.
#[derive(Serialize)]
struct Gates<'a> {
    /// Documents that keep the gate.
    held_count: usize,
    documents: Vec<Judged<'a>>,
}

#[derive(Serialize)]
struct Judged<'a> {
    file: &'a Path,
    #[serde(flatten)]
    outcome: GateOutcome,
}

/// Judges each document, and prints one line for each.
pub fn run(files: &[PathBuf], gate: &Gate, is_json: bool) -> anyhow::Result<Exit> {
    let judged = |file| {
        let mut document = documents::read(file)?;
        judge(&mut document, Some(gate))?;
        let outcome = document.jitter().and_then(|jitter| jitter.gate.clone());
        Ok(Judged { file, outcome: outcome.context("the gate was not evaluated")? })
    };
    let all: Vec<Judged<'_>> = files.iter().map(|file| judged(file)).collect::<anyhow::Result<_>>()?;
    let count = |verdict| all.iter().filter(|of| of.outcome.verdict == verdict).count();
    let [held, broken, not_shown] = [Verdict::Held, Verdict::Broken, Verdict::NotShown].map(count);
    let verdict = Verdict::of_all(all.iter().map(|of| of.outcome.verdict));
    if is_json {
        let gates = Gates { held_count: held, documents: all };
        output::print_json(&output::Document::of("lowlat-jitter-gates", &gates))?;
        return Ok(exit_of(verdict));
    }
    let line = |Judged { file, outcome }: &Judged<'_>| {
        let first = outcome.failed().find(|row| row.verdict == outcome.verdict);
        let why = first.map_or_else(|| outcome.verdict.word().to_owned(), GateRow::line);
        format!("{}: {why}\n", file.display())
    };
    let (lines, total) = (all.iter().map(line).collect::<String>(), all.len());
    output::print(&format!(
        "{lines}{held} of {total} documents keep the gate {gate}; broken: {broken}, not shown: {not_shown}.\n"
    ))?;
    Ok(exit_of(verdict))
}
