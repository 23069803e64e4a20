//! One gate for several documents: how many keep it.

use super::{
    arguments::{Arguments, Format},
    exit_of, judge,
};
use crate::{
    documents,
    output::{self, Exit},
};
use anyhow::{Context, ensure};
use lowlat_jitter::gate::{GateOutcome, GateRow, Verdict};
use serde::Serialize;
use std::path::Path;

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

/// Judges each document of --from, and prints one line for each.
pub fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    let gate = arguments.gate.as_ref().context(
        "cannot show several documents at once\nhint: name one, or judge them with --gate, or compare them with `lowlat report compare`",
    )?;
    let outputs = &arguments.outputs;
    let is_of_one = outputs.longest.is_some() || outputs.hlog.is_some() || outputs.files.are_asked_for();
    ensure!(
        !is_of_one && outputs.form() != Format::Sysjitter,
        "cannot write several documents into one file or table\nhint: with several documents, --gate takes only --json"
    );
    let judged = |file| {
        let mut document = documents::read(file)?;
        judge(&mut document, Some(gate))?;
        let outcome = document.jitter().and_then(|jitter| jitter.gate.clone());
        Ok(Judged { file, outcome: outcome.context("the gate was not evaluated")? })
    };
    let all: Vec<Judged<'_>> =
        arguments.from.iter().map(|file| judged(file)).collect::<anyhow::Result<_>>()?;
    let count = |verdict| all.iter().filter(|of| of.outcome.verdict == verdict).count();
    let [held, broken, not_shown] = [Verdict::Held, Verdict::Broken, Verdict::NotShown].map(count);
    let verdict = Verdict::of_all(all.iter().map(|of| of.outcome.verdict));
    if outputs.form() == Format::Json {
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
