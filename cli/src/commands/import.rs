//! `lowlat import`: another tool's configuration as a plan, judged.

use super::{Subcommand, help};
use crate::{exit::Exit, host::HostArgs};
use clap::{ArgMatches, Args, FromArgMatches};
use lowlat_host::Reading;
use lowlat_host_run::Root;
use lowlat_plan::import::{self, Tree, TuningTool};
use std::path::{Path, PathBuf};

pub const COMMAND: Subcommand = Subcommand { name: "import", declare: ImportArgs::augment_args, run };

/// Judge the configuration of TuneD, LLTune or rt-conf on this host; change nothing
///
/// Shows each value in the file next to the host's current value, and whether the profile agrees. Parts of the file
/// that lowlat cannot judge are listed with the reason. Profiles that a TuneD profile includes are read first, from
/// the folder beside it or from TuneD's folders.
#[derive(Debug, Args)]
#[command(after_help = help("Exit codes: 0 no judged value differs from the profile, 1 at least one differs or is invalid, 2 error, 4 no value could \
    be judged.", &[
    ("lowlat import tuned /usr/lib/tuned/network-latency/tuned.conf", "Judge a profile of TuneD."),
    ("lowlat import rt-conf config.yaml --root desk7.tar.gz", "Judge a file on a captured host."),
]))]
struct ImportArgs {
    /// The tool that the file belongs to: tuned, lltune or rt-conf
    #[arg(value_name = "TOOL", value_parser = tool)]
    tool: TuningTool,
    /// The file: tuned.conf of a profile, or the tool's YAML
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    host: HostArgs,
    /// Print the judged values as JSON
    #[arg(long)]
    json: bool,
}

fn tool(name: &str) -> Result<TuningTool, String> {
    let names = TuningTool::ALL.map(TuningTool::name).join(", ");
    TuningTool::ALL.into_iter().find(|tool| tool.name() == name).ok_or_else(|| format!("available: {names}"))
}

fn run(matches: &ArgMatches) -> anyhow::Result<Exit> {
    let arguments = ImportArgs::from_arg_matches(matches)?;
    let tool = arguments.tool;
    let shown = arguments.file.display();
    crate::documents::named(&arguments.file, &format!("pass {}", tool.format()))?;
    let file = std::path::absolute(&arguments.file)?;
    let mut host = arguments.host.read_silently()?;
    let files = Files { host: &host.root, local: Root::live(), file: &file };
    let wishes = tool.read(&file.to_string_lossy(), &files, &host.snapshot).map_err(|error| {
        anyhow::anyhow!(
            "cannot read {shown} as a file of {}: {error}\nhint: pass {}",
            tool.name(),
            tool.format()
        )
    })?;
    wishes.read_present(&mut host.snapshot, &files);
    if let Some(why) = wishes.why_empty() {
        anyhow::bail!("cannot import {shown}: {why}\nhint: pass {}", tool.format());
    }
    let import = import::judge(tool, wishes, &host.context());
    host.print_as(arguments.json, &import, |width| {
        lowlat_tune_report::import_text(&import, &shown.to_string(), host.role.profile.name(), width)
    })?;
    let is_fault = import.harmful().next().is_some() || import.invalid().next().is_some();
    Ok(match import.judged().next() {
        _ if is_fault => Exit::Findings,
        Some(_) => Exit::Clean,
        None => Exit::NotJudged,
    })
}

/// The host's files, and those of the named file: in its folder, and profiles in folders beside that.
struct Files<'a> {
    host: &'a Root,
    local: Root,
    file: &'a Path,
}

impl Tree for Files<'_> {
    fn read(&self, path: &str) -> Reading<String> {
        let of_host = || self.host.read(path);
        let folder = |path: &Path| path.parent().map(Path::to_owned);
        let beside = |path: &Path| path.parent().and_then(folder);
        match Path::new(path) {
            file if folder(file) == folder(self.file) => self.local.read(path),
            file if file.ends_with("tuned.conf") && beside(file) == beside(self.file) => {
                self.local.read(path)
            }
            // A captured host may include profiles that TuneD ships.
            file if file.starts_with("/usr/lib/tuned") => {
                Some(of_host()).filter(|found| !found.is_absent()).unwrap_or_else(|| self.local.read(path))
            }
            _ => of_host(),
        }
    }

    fn glob(&self, pattern: &str) -> Vec<String> {
        self.host.glob(pattern)
    }
}
