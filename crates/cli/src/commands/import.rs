//! `lowlat import`: another tool's configuration as a plan, judged.

use super::{Subcommand, examples};
use crate::{
    host::HostArgs,
    output::{self, Exit},
};
use anyhow::Context as _;
use clap::{ArgMatches, Args, Command, FromArgMatches};
use lowlat_plan::import::{self, Tool};
use std::path::{Path, PathBuf};

pub const COMMAND: Subcommand = Subcommand { name: "import", declare, run };

/// Folders of TuneD's profiles, in the order in which TuneD searches them.
const TUNED_FOLDERS: [&str; 4] =
    ["etc/tuned/profiles", "etc/tuned", "usr/lib/tuned/profiles", "usr/lib/tuned"];
/// Highest number of profiles that include each other.
const INCLUDES_MAX: usize = 20;

#[derive(Debug, Args)]
struct Arguments {
    /// The tool that the file belongs to: tuned, lltune or rt-conf
    #[arg(value_name = "TOOL", value_parser = tool)]
    tool: Tool,
    /// The file: tuned.conf of a profile, or the tool's YAML
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    host: HostArgs,
    /// Print the judged values as JSON
    #[arg(long)]
    json: bool,
}

fn declare(command: Command) -> Command {
    Arguments::augment_args(command)
        .about("Judge the configuration of TuneD, LLTune or rt-conf on this host; change nothing")
        .long_about(
            "Judge the configuration of TuneD, LLTune or rt-conf on this host; change nothing\n\nShows each value in the file \
             next to the host's current value, and whether the profile agrees. Parts of the file that lowlat cannot judge are \
             listed with the reason. \
             Profiles that a TuneD profile includes are read first, from the folder beside it or from TuneD's folders.",
        )
        .after_help(format!(
            "Exit codes: 0 no value differs from the profile, 1 at least one differs or is invalid, 2 error.\n\n{}",
            examples(&[
                ("lowlat import tuned /usr/lib/tuned/network-latency/tuned.conf", "Judge a profile of TuneD."),
                ("lowlat import rt-conf config.yaml --root desk7.tar.gz", "Judge a file on a captured host."),
            ])
        ))
}

fn tool(name: &str) -> Result<Tool, String> {
    let names = Tool::ALL.map(Tool::name).join(", ");
    Tool::ALL.into_iter().find(|tool| tool.name() == name).ok_or_else(|| format!("available: {names}"))
}

fn run(matches: &ArgMatches) -> anyhow::Result<Exit> {
    let arguments = Arguments::from_arg_matches(matches)?;
    let mut texts = Vec::new();
    match arguments.tool {
        Tool::Tuned => with_includes(&arguments.file, &mut texts)?,
        Tool::Lltune | Tool::RtConf => texts.push(read(&arguments.file, arguments.tool)?),
    }
    let host = arguments.host.read_silently()?;
    let shown = arguments.file.display();
    let wishes = arguments.tool.read(&texts, &host.snapshot).map_err(|error| {
        let tool = arguments.tool;
        anyhow::anyhow!(
            "cannot read {shown} as a file of {}: {error}\nhint: pass {}",
            tool.name(),
            tool.format()
        )
    })?;
    if let Some(why) = wishes.why_empty() {
        anyhow::bail!("cannot import {shown}: {why}\nhint: pass {}", arguments.tool.format());
    }
    let import = import::judge(arguments.tool, wishes, &host.context());
    if arguments.json {
        host.print_json(&import)?;
    } else {
        let profile = host.role.profile.name();
        host.print(&lowlat_report::import_text(&import, &shown.to_string(), profile, output::width()))?;
    }
    let is_clean = import.harmful().next().is_none() && import.invalid().next().is_none();
    Ok(if is_clean { Exit::Clean } else { Exit::Findings })
}

fn read(path: &Path, tool: Tool) -> anyhow::Result<String> {
    std::fs::read_to_string(path)
        .with_context(|| format!("cannot read {}\nhint: pass {}", path.display(), tool.format()))
}

/// Reads a profile after those that it includes.
fn with_includes(path: &Path, texts: &mut Vec<String>) -> anyhow::Result<()> {
    anyhow::ensure!(
        texts.len() < INCLUDES_MAX,
        "cannot read {}: more than {INCLUDES_MAX} profiles include each other",
        path.display()
    );
    let text = read(path, Tool::Tuned)?;
    // Its place is taken before its includes are read, so that a circle ends.
    let at = texts.len();
    texts.push(String::new());
    for name in import::tuned_includes(&text) {
        let beside = path.parent().and_then(Path::parent).map(Path::to_owned);
        let folders =
            beside.into_iter().chain(TUNED_FOLDERS.iter().map(|folder| Path::new("/").join(folder)));
        let found = folders.map(|folder| folder.join(&name).join("tuned.conf")).find(|file| file.is_file());
        let found = found.with_context(|| {
            format!(
                "cannot read {}: it includes the profile {name}, which is not installed\nhint: put its folder beside that of the file",
                path.display()
            )
        })?;
        with_includes(&found, texts)?;
    }
    texts.remove(at);
    for file in import::tuned_variable_files(&text) {
        let file = Path::new(&file);
        // A profile that is not installed has the file beside it.
        let beside = file.file_name().and_then(|name| Some(path.parent()?.join(name)));
        let found = [Some(file.to_owned()), beside].into_iter().flatten().find(|file| file.is_file());
        if let Some(found) = found {
            texts.push(format!("[variables]\n{}", read(&found, Tool::Tuned)?));
        }
    }
    texts.push(text);
    Ok(())
}
