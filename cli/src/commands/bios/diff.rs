//! `lowlat bios diff`: the settings in which two servers differ.

use super::source::read_files;
use crate::{exit::Exit, output};
use clap::Args;
use lowlat_bios::{BiosDiff, BiosFacts};
use lowlat_redfish::Resource;
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
pub struct DiffArgs {
    /// Saved settings of the first server: a file, or a directory that --save wrote
    #[arg(value_name = "LEFT")]
    left: PathBuf,
    /// Saved settings of the second server
    #[arg(value_name = "RIGHT")]
    right: PathBuf,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &DiffArgs) -> anyhow::Result<Exit> {
    let (left, right) = (read(&arguments.left)?, read(&arguments.right)?);
    let diff = BiosDiff::of(&left, &right);
    output::print_as(arguments.json, &diff, |width| lowlat_tune_report::bios_diff_text(&diff, width))?;
    Ok(match (diff.differences.is_empty(), diff.compared) {
        (true, 0) => Exit::NotJudged,
        (true, _) => Exit::Clean,
        (false, _) => Exit::Findings,
    })
}

fn read(path: &Path) -> anyhow::Result<BiosFacts> {
    if !path.is_dir() {
        return read_files(&[path.to_owned()], None);
    }
    let at = |resource: Resource| Some(path.join(resource.file_name())).filter(|file| file.exists());
    let files = [Resource::System, Resource::Bios, Resource::Settings].into_iter().filter_map(at);
    read_files(&files.collect::<Vec<_>>(), at(Resource::Registry).as_deref())
}
