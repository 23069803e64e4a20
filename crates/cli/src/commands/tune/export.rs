//! `lowlat tune export`: the plan as files of other tools. Writes where `--out` says and nowhere else.

use crate::commands::{Subcommand, examples};
use crate::{
    host::HostArgs,
    output::{self, Exit},
};
use anyhow::{Context, bail};
use clap::{ArgMatches, Args, Command, FromArgMatches, builder::PossibleValuesParser};
use lowlat_model::tune::export::{ExportedFile, FORMATS, Format};
use std::{
    fs,
    io::{ErrorKind, Write},
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

pub const COMMAND: Subcommand = Subcommand { name: "export", declare, run };

#[derive(Debug, Args)]
struct Arguments {
    #[command(flatten)]
    host: HostArgs,
    /// What to make
    #[arg(long, value_name = "FORMAT", value_parser = PossibleValuesParser::new(FORMATS.iter().map(|format| format.name)))]
    format: String,
    /// Write into this directory, or this file where the format is one file; else print
    #[arg(long, value_name = "DIR|FILE")]
    out: Option<PathBuf>,
    /// Accept the risk of this setting; repeat it for each
    #[arg(long, value_name = "ID")]
    accept_risk: Vec<String>,
    /// Replace files of --out that hold something else
    #[arg(long)]
    force: bool,
}

fn declare(command: Command) -> Command {
    let formats: Vec<String> =
        FORMATS.iter().map(|format| format!("  {:<8} {}", format.name, format.about)).collect();
    let formats = formats.join(
        "
",
    );
    Arguments::augment_args(command)
        .about("Write the profile as files of other tools: TuneD, sysctl.d, systemd, a shell script, Ansible")
        .after_help(format!(
            "Formats:\n{formats}\n\nThe same host gives the same files each time. Exit codes: 0 done, 2 error.\n\n{}",
            examples(&[
                ("lowlat tune export --format shell --out tune.sh", "one script for a host without lowlat"),
                (
                    "lowlat tune export --profile guide-57037 --format tuned --out profile",
                    "the guide's TuneD profile for this host"
                ),
                ("lowlat tune export --format sysctl", "the file for /etc/sysctl.d, on the terminal"),
            ])
        ))
}

fn run(matches: &ArgMatches) -> anyhow::Result<Exit> {
    let arguments = Arguments::from_arg_matches(matches)?;
    for id in &arguments.accept_risk {
        super::check_id(id)?;
    }
    let Some(format) = Format::find(&arguments.format) else { bail!("no format {}", arguments.format) };
    let mut host = arguments.host.read()?;
    host.role.accepted_risks.extend(arguments.accept_risk);
    let files = format.files(&host.context(), env!("CARGO_PKG_VERSION"));
    match &arguments.out {
        None => output::print(&together(&files))?,
        Some(out) => write_all(&files, out, arguments.force)?,
    }
    Ok(Exit::Clean)
}

/// One file as it is; several with a line before each.
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
    let is_directory = files.len() > 1 || out.is_dir() || out.as_os_str().to_string_lossy().ends_with('/');
    let place = |file: &ExportedFile| if is_directory { out.join(&file.path) } else { out.to_owned() };
    // Nothing is written unless everything can be.
    for file in files {
        let path = place(file);
        match fs::read(&path) {
            Ok(found) if found != file.text.as_bytes() && !is_forced => {
                bail!("{}: holds something else; --force replaces it", path.display())
            }
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(error).with_context(|| format!("cannot read {}", path.display()));
            }
            _ => {}
        }
    }
    for file in files {
        let path = place(file);
        write(&path, file).with_context(|| format!("cannot write {}", path.display()))?;
        output::talk(&format!("wrote {}", path.display()));
    }
    Ok(())
}

/// Beside its place first, so that a full disk leaves no half of a file.
fn write(path: &Path, file: &ExportedFile) -> std::io::Result<()> {
    if let Some(above) = path.parent().filter(|above| !above.as_os_str().is_empty()) {
        fs::create_dir_all(above)?;
    }
    let mode = if file.is_program { 0o755 } else { 0o644 };
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let beside = path.with_file_name(name);
    let written = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(mode)
        .open(&beside)
        .and_then(|mut opened| {
            opened.write_all(file.text.as_bytes())?;
            opened.set_permissions(fs::Permissions::from_mode(mode))?;
            opened.sync_all()
        })
        .and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    written
}
