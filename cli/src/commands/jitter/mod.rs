//! `lowlat jitter`: measures every interruption, with its length and its cause.

mod arguments;
pub mod gates;
mod measure;
pub mod outputs;
mod ready;

use super::Subcommand;
use crate::{documents, exit::Exit};
use anyhow::Context;
use arguments::JitterArgs;
pub use arguments::{parse_gate, parse_rank};
use clap::{ArgMatches, Args as _, FromArgMatches};
use lowlat_jitter::gate::{Gate, Verdict};
use lowlat_results::ResultDocument;
use outputs::Outputs;

pub const COMMAND: Subcommand = Subcommand { name: "jitter", declare: JitterArgs::augment_args, run };

fn run(matches: &ArgMatches) -> anyhow::Result<Exit> {
    let arguments = JitterArgs::from_arg_matches(matches)?;
    let outputs = Outputs::prepare(&arguments.outputs)?;
    let mut document = measure::run(&arguments)?;
    let gate = judge(&mut document, arguments.gate.as_ref())?;
    outputs.write(&document)?;
    Ok(match gate {
        _ if document.is_interrupted => Exit::Interrupted,
        _ if document.jitter().is_some_and(|of| of.record.was_stopped()) => Exit::Findings,
        Some(verdict) => exit_of(verdict),
        None => Exit::Clean,
    })
}

/// Returns the exit code of a gate.
pub fn exit_of(verdict: Verdict) -> Exit {
    match verdict {
        Verdict::Held => Exit::Clean,
        Verdict::Broken => Exit::Findings,
        Verdict::NotShown => Exit::NotJudged,
    }
}

/// Studies the record again, and judges the gate if one was given. Returns its verdict.
pub fn judge(document: &mut ResultDocument, gate: Option<&Gate>) -> anyhow::Result<Option<Verdict>> {
    documents::study_again(document)?;
    let jitter = document.jitter_mut().context(
        "cannot show the document: it has no jitter measurement\nhint: name one that `lowlat jitter` or `lowlat assess` wrote",
    )?;
    let outcome = gate.zip(jitter.study.as_ref()).map(|(gate, study)| gate.evaluate(study));
    let verdict = outcome.as_ref().map(|outcome| outcome.verdict);
    jitter.gate = outcome.or(jitter.gate.take());
    Ok(verdict)
}
