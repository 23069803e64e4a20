//! `lowlat journal compress`.

use crate::{exit::Exit, signals};
use anyhow::ensure;
use clap::Args;
use lowlat_journal::{
    read::{Recording, verify},
    record::compress_all,
};
use std::{path::PathBuf, sync::atomic::Ordering};

#[derive(Debug, Args)]
pub struct Compress {
    /// Directory of the recording
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

pub fn run(arguments: &Compress) -> anyhow::Result<Exit> {
    let folder = &arguments.folder;
    let stop = signals::stop_flag()?;
    let damages = verify(&Recording::open(folder)?, true, &mut |_, _| ()).damage_count;
    let shown = folder.display();
    ensure!(damages == 0, "cannot compress {shown}: it is damaged\nhint: lowlat journal verify {shown}");
    compress_all(folder, &stop)?;
    // Relaxed: a lone flag.
    Ok(if stop.load(Ordering::Relaxed) { Exit::Interrupted } else { Exit::Clean })
}
