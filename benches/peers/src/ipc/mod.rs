//! Compares trading processes, and the transports below them, with those of other projects.

mod floor;
mod handover;
mod kungfu;
mod matrix;
mod one_way;
mod pipeline;
mod star;
mod throughput;
mod trial;

use anyhow::Context;
use serde::Serialize;
use std::sync::atomic::{AtomicBool, Ordering};
use trial::{Subject, arguments};

/// Set when the user interrupts the program. Processes with children end those first.
static STOP: AtomicBool = AtomicBool::new(false);

/// Processes that talk over shared memory, beside others'.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    bench: Bench,
}

#[derive(Debug, clap::Subcommand)]
enum Bench {
    /// One run of a model of Kungfu's notification: a star of sockets that wakes everybody
    KungfuModel(arguments::Arguments),
    /// One run of the same processes over lowlat-ipc alone
    IpcStar(arguments::Arguments),
    /// One run of bare processes with one ring and one futex each
    Floor(arguments::Arguments),
    /// All of them in rounds, over loads, ways to wait and pinning; ratios with their quartiles
    Matrix(matrix::Arguments),
    /// One message from one process to another: lowlat-ipc beside other transports, spinning and parked
    OneWay(one_way::Arguments),
    /// Messages per second from one process to several that spin, and what each loses
    Throughput(throughput::Arguments),
    #[command(hide = true)]
    Role(arguments::RoleArguments),
    #[command(hide = true)]
    End(one_way::EndArguments),
    #[command(hide = true)]
    ThroughputProcess(throughput::ProcessArguments),
}

/// Runs the chosen subcommand.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    match &arguments.bench {
        Bench::Role(role) => return arguments::play(role),
        Bench::End(end) => return one_way::play(end),
        Bench::ThroughputProcess(process) => return throughput::play(process),
        _ => {}
    }
    ctrlc::set_handler(|| STOP.store(true, Ordering::Relaxed)).context("cannot take signals")?;
    match &arguments.bench {
        Bench::KungfuModel(arguments) => {
            anyhow::ensure!(kungfu::missing().is_none(), "{}", kungfu::missing().unwrap_or_default());
            print_trial(Subject::KungfuModel, arguments)
        }
        Bench::IpcStar(arguments) => print_trial(Subject::IpcStar, arguments),
        Bench::Floor(arguments) => print_trial(Subject::Floor, arguments),
        Bench::Matrix(arguments) => matrix::run(arguments, &STOP),
        Bench::OneWay(arguments) => one_way::run(arguments, &STOP),
        Bench::Throughput(arguments) => throughput::run(arguments, &STOP),
        Bench::Role(_) | Bench::End(_) | Bench::ThroughputProcess(_) => Ok(()),
    }
}

/// A trial as a document.
#[derive(Debug, Serialize)]
struct TrialDocument<'a> {
    document: &'static str,
    schema_version: u32,
    /// Name of the subject that ran.
    subject: &'static str,
    /// The subject is a model of another project's program.
    is_model: bool,
    #[serde(flatten)]
    record: &'a lowlat_pipeline::PipelineRecord,
}

fn print_trial(subject: Subject, arguments: &arguments::Arguments) -> anyhow::Result<()> {
    let record = trial::run(subject, &arguments.parameters(), &STOP)?;
    let document = TrialDocument {
        document: "lowlat-peers-trial",
        schema_version: 1,
        subject: subject.name(),
        is_model: subject == Subject::KungfuModel,
        record: &record,
    };
    println!("{}", serde_json::to_string_pretty(&document)?);
    Ok(())
}
