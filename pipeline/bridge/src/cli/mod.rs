//! The subcommands and their common parts: where the run and the driver are, and how they are interrupted.

pub mod driver;
pub mod receive;
pub mod send;

use anyhow::Context;
use clap::Args;
use lowlat_bridge::HopFigures;
use lowlat_node::{Wait, address::RunFolder};
use serde_json::json;
use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

/// The run on this host.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct Run {
    /// Name of the run
    #[arg(long, value_name = "NAME")]
    run: Option<String>,
    /// Run folder
    #[arg(long, value_name = "PATH")]
    folder: Option<PathBuf>,
}

impl Run {
    /// Returns the path of the master's socket.
    pub fn socket(&self) -> anyhow::Result<PathBuf> {
        let folder = match (&self.run, &self.folder) {
            (Some(name), _) => RunFolder::named(name),
            (None, folder) => RunFolder::at(&folder.clone().unwrap_or_default()),
        };
        Ok(folder?.socket())
    }
}

/// The connection to the other host.
#[derive(Debug, Args)]
pub struct CarrierArguments {
    /// Directory of the media driver on this host
    #[arg(long, value_name = "DIR")]
    pub driver: PathBuf,
    /// Channel of Aeron, the same on both hosts: aeron:udp?endpoint=HOST:PORT with the receiver's address, or a
    /// multicast group
    #[arg(long, value_name = "URI")]
    pub channel: String,
    /// Stream of the channel, the same on both hosts
    #[arg(long, value_name = "NUMBER", default_value_t = 1001)]
    pub stream_id: i32,
}

/// How to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum WaitArgument {
    /// Spin, on a dedicated core
    Fast,
    /// Sleep
    #[default]
    Parked,
}

impl From<WaitArgument> for Wait {
    fn from(wait: WaitArgument) -> Self {
        match wait {
            WaitArgument::Fast => Self::Fast,
            WaitArgument::Parked => Self::Parked,
        }
    }
}

/// Set by Ctrl-C and SIGTERM.
pub fn interrupted() -> anyhow::Result<Arc<AtomicBool>> {
    let is_over = Arc::new(AtomicBool::new(false));
    let set = Arc::clone(&is_over);
    // Relaxed: the word does not order other memory.
    ctrlc::set_handler(move || set.store(true, Ordering::Relaxed)).context("cannot handle Ctrl-C")?;
    Ok(is_over)
}

/// Returns true if Ctrl-C or SIGTERM arrived.
pub fn is_set(is_over: &AtomicBool) -> bool {
    is_over.load(Ordering::Relaxed)
}

/// Latencies inside one end, for the result.
pub fn hop(figures: &HopFigures) -> serde_json::Value {
    let HopFigures { count, p50_ns, p99_ns, latency_ns_max } = figures;
    json!({"count": count, "p50_ns": p50_ns, "p99_ns": p99_ns, "latency_ns_max": latency_ns_max})
}
