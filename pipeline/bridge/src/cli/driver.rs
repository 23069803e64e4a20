//! `lowlat-bridge driver`.

use super::interrupted;
use clap::Args;
use lowlat_bridge::aeron::drive;
use std::path::PathBuf;

/// Run until Ctrl-C. Environment variables AERON_* apply: AERON_THREADING_MODE, AERON_TERM_BUFFER_LENGTH, ...
#[derive(Debug, Args)]
#[command(after_help = "Example: lowlat-bridge driver --dir /dev/shm/aeron-md")]
pub struct DriverArgs {
    /// Directory of the driver, in memory
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
}

pub fn run(arguments: &DriverArgs) -> anyhow::Result<()> {
    let is_over = interrupted()?;
    let dir = &arguments.dir;
    Ok(drive(dir, &is_over, || eprintln!("media driver runs in {}", dir.display()))?)
}
