//! Source of BIOS settings: files, or a service.

use super::connection::Connection;
use crate::commands::completions;
use anyhow::{Context, bail};
use clap::{ArgGroup, Args};
use lowlat_bios::{BYTES_MAX, BiosFacts, BiosReader};
use lowlat_host::Profile;
use std::{
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

// The error and the usage name both sources.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("settings").args(["file", "redfish"]).required(true).multiple(true)))]
pub struct Source {
    /// Read saved Redfish JSON: Bios, its Settings and ComputerSystem, bundled or one file each
    #[arg(long, value_name = "FILE", conflicts_with = "redfish")]
    file: Vec<PathBuf>,
    /// Read the saved attribute registry of this BIOS: accepted values, dependencies
    #[arg(long, value_name = "FILE", conflicts_with = "redfish")]
    registry: Option<PathBuf>,
    /// Judge by this profile: trading or guide-57037
    #[arg(long, value_name = "NAME", default_value_t, add = completions::profiles())]
    pub profile: Profile,
}

impl Source {
    /// Refuses files where only a service can answer.
    pub fn refuse_files(&self) -> anyhow::Result<()> {
        if self.file.is_empty() && self.registry.is_none() {
            return Ok(());
        }
        bail!("cannot send a request to a file\nhint: add --dry-run, or name the service with --redfish")
    }

    /// Reads the settings from the service or the files.
    pub fn read(&self, connection: &Connection) -> anyhow::Result<BiosFacts> {
        if connection.redfish.is_some() {
            let mut service = connection.open()?;
            let saved = service.read()?;
            service.close();
            return Ok(saved.facts()?);
        }
        connection.refuse_unused()?;
        read_files(&self.file, self.registry.as_deref())
    }
}

/// Reads saved resources of one server, and its registry.
pub fn read_files(files: &[PathBuf], registry: Option<&Path>) -> anyhow::Result<BiosFacts> {
    let next = "name a file with saved Redfish JSON";
    let mut reader = BiosReader::default();
    for path in files {
        reader.add(&path.display().to_string(), &bounded(path, next)?)?;
    }
    if let Some(path) = registry {
        reader.add_registry(&path.display().to_string(), &bounded(path, next)?);
    }
    Ok(reader.finish()?)
}

/// Reads at most one byte more than the limit: enough to refuse a file that is too long.
pub fn bounded(path: &Path, next: &str) -> anyhow::Result<Vec<u8>> {
    let shown = path.display();
    let metadata = std::fs::metadata(path).with_context(|| format!("cannot read {shown}\nhint: {next}"))?;
    if !metadata.is_file() {
        bail!("cannot read {shown}: not a regular file\nhint: {next}");
    }
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(BYTES_MAX as u64 + 1).read_to_end(&mut bytes))
        .with_context(|| format!("cannot read {shown}\nhint: {next}"))?;
    Ok(bytes)
}
