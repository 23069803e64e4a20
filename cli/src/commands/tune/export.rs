//! `lowlat tune export`: writes the plan as files for other tools, only to `--out`.

use crate::{
    commands::{completions, help},
    exit::Exit,
    host::HostArgs,
    output, results,
};
use anyhow::{Context, bail};
use clap::{Args, builder::PossibleValuesParser};
use lowlat_host::IsolateBy;
use lowlat_host_run::output::{FileAccess, OutputDirectory, OutputError, OutputFile};
use lowlat_plan::export::{ExportedFile, FORMATS, Format};
use std::{
    io::ErrorKind,
    path::{Path, PathBuf},
};

/// Write the plan for other tools: TuneD, sysctl.d, systemd, a shell script
#[derive(Debug, Args)]
#[command(after_help = help(
    &format!("Formats:\n{}\n\nThe same host always gives the same files. Exit codes: 0 done, 2 error.", formats()),
    &[
        ("lowlat tune export --format shell --out tune.sh", "Write one script for a host without lowlat."),
        ("lowlat tune export --profile guide-57037 --format tuned --out profile", "Write the guide's TuneD profile for this host."),
        ("lowlat tune export --format sysctl", "Print the file for /etc/sysctl.d."),
    ],
))]
pub struct TuneExportArgs {
    #[command(flatten)]
    host: HostArgs,
    /// Write this format
    #[arg(long, value_name = "FORMAT", value_parser = PossibleValuesParser::new(FORMATS.iter().map(|format| format.name)))]
    format: String,
    /// Write to this directory, or to this file if the format has only one [default: stdout]
    #[arg(long, value_name = "DIR|FILE")]
    out: Option<PathBuf>,
    /// Accept the risk of this setting; repeatable
    #[arg(long, value_name = "ID", add = completions::settings())]
    accept_risk: Vec<String>,
    /// Replace existing files that differ
    #[arg(long)]
    force: bool,
}

/// The formats, each with what it is, for the help.
fn formats() -> String {
    let lines = FORMATS.iter().map(|format| format!("  {:<8} {}", format.name, format.about));
    lines.collect::<Vec<_>>().join("\n")
}

pub fn run(arguments: &TuneExportArgs) -> anyhow::Result<Exit> {
    super::check_ids(&arguments.accept_risk)?;
    let Some(format) = Format::find(&arguments.format) else { bail!("unknown format {}", arguments.format) };
    let mut host = arguments.host.read()?;
    host.role.accepted_risks.extend(arguments.accept_risk.iter().cloned());
    if host.role.isolate_by == IsolateBy::Cpuset {
        bail!(
            "cannot export isolation by cpuset: only lowlat forms the partition\nhint: remove isolate-by from the role \
             file to export boot parameters"
        );
    }
    let files = format.files(&host.context(), env!("CARGO_PKG_VERSION"));
    match &arguments.out {
        None => output::print_plain(&together(&files))?,
        Some(out) => write_all(&files, out, arguments.force)?,
    }
    Ok(Exit::Clean)
}

/// Returns one file unchanged, or several with a header line before each.
fn together(files: &[ExportedFile]) -> String {
    match files {
        [file] => file.text.clone(),
        files => {
            let parts = files.iter().map(|file| format!("==> {} <==\n{}", file.path, file.text));
            parts.collect::<Vec<_>>().join("\n")
        }
    }
}

fn write_all(files: &[ExportedFile], out: &Path, is_forced: bool) -> anyhow::Result<()> {
    let is_directory = out.is_dir() || out.as_os_str().to_string_lossy().ends_with('/');
    if files.len() > 1 && !is_directory && (out.exists() || out.extension().is_some()) {
        bail!(
            "cannot write {shown}: it names a file, and this format has {} files\nhint: name a directory, such as --out {shown}/",
            files.len(),
            shown = out.display()
        );
    }
    let is_directory = is_directory || files.len() > 1;
    let place = |file: &ExportedFile| if is_directory { out.join(&file.path) } else { out.to_owned() };
    // Write nothing unless everything can be written.
    for file in files {
        let path = place(file);
        // Compare regular files only: reading a pipe would wait for its writer.
        if !path.symlink_metadata().is_ok_and(|found| found.is_file()) {
            continue;
        }
        match crate::documents::bytes_of(&path) {
            Ok(found) if found != file.text.as_bytes() && !is_forced => {
                bail!(
                    "cannot write {}: it exists with different content\nhint: --force replaces it",
                    path.display()
                )
            }
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(error).with_context(|| format!("cannot read {}", path.display()));
            }
            _ => {}
        }
    }
    for file in files {
        let path = place(file);
        write(&path, file, is_directory)
            .map_err(|error| results::in_words(&error, "name another path with --out"))?;
        output::talk(&format!("wrote {}", path.display()));
    }
    Ok(())
}

/// Writes a file. Its directory is created only if it is part of the export.
fn write(path: &Path, file: &ExportedFile, is_directory: bool) -> Result<(), OutputError> {
    let access = if file.is_program { FileAccess::Program } else { FileAccess::Shared };
    if is_directory {
        OutputDirectory::create(path.parent().unwrap_or(Path::new("")))?;
    }
    OutputFile::new(path, access)?.write(file.text.as_bytes())
}
