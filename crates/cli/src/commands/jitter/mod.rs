//! `lowlat jitter`: every interruption, its length and its cause.

mod arguments;
mod compare;
mod live;
mod measure;
mod outputs;
mod ready;

use super::Subcommand;
use crate::{documents, output::Exit};
use anyhow::Context;
use arguments::Arguments;
use clap::{ArgMatches, FromArgMatches};
use lowlat_jitter::{self as jitter, RemedyContext};
use lowlat_result::ResultDocument;
use outputs::Outputs;

pub const COMMAND: Subcommand = Subcommand { name: "jitter", declare: arguments::declare, run };

fn run(matches: &ArgMatches) -> anyhow::Result<Exit> {
    let arguments = Arguments::from_arg_matches(matches)?;
    if let Some(files) = &arguments.compare {
        return compare::run(files, &arguments.outputs);
    }
    let outputs = Outputs::prepare(&arguments.outputs)?;
    let mut document = match &arguments.from {
        Some(file) => documents::read(file)?,
        None => measure::run(&arguments)?,
    };
    study(&mut document)?;
    if let (Some(gate), Some(study)) = (&arguments.gate, &document.jitter_study) {
        document.gate = Some(gate.evaluate(study));
    }
    outputs.write(&document)?;
    Ok(match &document.gate {
        _ if document.is_interrupted && arguments.from.is_none() => Exit::Interrupted,
        Some(gate) if arguments.gate.is_some() && !gate.is_held() => Exit::Findings,
        _ => Exit::Clean,
    })
}

/// Studies the record anew, so that an old document is read with what this version knows.
fn study(document: &mut ResultDocument) -> anyhow::Result<()> {
    let record = document.jitter.as_ref().context(
        "the document holds no jitter measurement; take one that lowlat jitter or lowlat assess wrote",
    )?;
    let context =
        RemedyContext { host: &document.snapshot, allocation: &document.allocation, role: &document.role };
    document.jitter_study = Some(jitter::study_with(record, Some(&context))?);
    Ok(())
}
