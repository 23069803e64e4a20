//! `lowlat net compare`: programs or settings that measure round trips, in turn.

use super::pingpong;
use crate::{
    commands::{examples, outputs::OutputArgs},
    documents::{self, Run},
    exit::Exit,
    host::RoleArgs,
    signals,
};
use anyhow::Context;
use clap::Args;
use lowlat_host::CpuId;
use lowlat_net::{
    compare::{CompareRecord, CompareRun, CompareSide, NetCompareMeasurement},
    tools::{self, Tool, ToolOutput},
};
use lowlat_net_run::{self as net, CompareOptions, SideOptions};
use std::path::{Path, PathBuf};

/// Words before a client's arguments that users may type too.
const OWN_WORDS: [&str; 4] = ["lowlat", "net", "pingpong", "client"];

/// Compare programs or settings that measure round trips, in turn
///
/// Runs the sides in the order A B, B A, A B and so on, with a control (the time of a cache line between the two
/// CPUs) before each run, and compares B and the following sides with A round by round. Names a winner only if the 95
/// % interval of a ratio excludes 1 and the control was stable. Each side needs its server; sfnt-pingpong's ends
/// after one run, so run it in a loop.
#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
#[command(after_help = examples(&[
    ("lowlat net compare -- udp desk8 --sizes 32 -- udp desk8 --sizes 32 --wait spin", "Compare two waiting modes."),
    ("lowlat net compare --client-cpu 1 --server-cpu 0 -- tcp desk8 --sizes 32 --client-cpu 1 -- taskset -c 1 sockperf ping-pong -i desk8 --tcp -m 32 -t 3", "Compare with sockperf."),
    ("lowlat net compare --import monday.txt tuesday.txt", "Show finished outputs side by side."),
]))]
pub struct NetCompareArgs {
    /// Rounds, each of one run of every side; a verdict needs 6
    #[arg(long, value_name = "COUNT", default_value_t = 9, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    rounds: u32,
    /// CPU of the client, for the control beside other programs [default: the one that a side names]
    #[arg(long, value_name = "CPU", requires = "server_cpu")]
    client_cpu: Option<CpuId>,
    /// CPU of the server, for the same
    #[arg(long, value_name = "CPU", requires = "client_cpu")]
    server_cpu: Option<CpuId>,
    /// Show finished outputs of these programs, or documents of lowlat, side by side without a verdict
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with = "sides")]
    import: Vec<PathBuf>,
    #[command(flatten)]
    outputs: OutputArgs,
    #[command(flatten)]
    role: RoleArgs,
    /// The sides, with -- before each: arguments of `lowlat net pingpong client`, or a command of sfnt-pingpong, sockperf, netperf or eflatency
    #[arg(last = true, value_name = "SIDE", required_unless_present = "import")]
    sides: Vec<String>,
}

pub fn run(arguments: &NetCompareArgs) -> anyhow::Result<Exit> {
    let outputs = arguments.outputs.prepare()?;
    let is_imported = !arguments.import.is_empty();
    let sides = if is_imported { Vec::new() } else { sides(&arguments.sides)? };
    let (imported, cpus) = (imported(&arguments.import)?, control_cpus(arguments)?);
    let (command, labels) = (NetCompareMeasurement::COMMAND, &arguments.outputs.files.language.labels);
    let mut run = Run::begin(command, labels, || arguments.role.read())?;
    let stop = signals::stop_flag()?;
    run.progress.stand_still();
    run.start();
    let options = CompareOptions { sides, rounds: arguments.rounds, cpus };
    let record = if is_imported {
        imported
    } else {
        net::run_compare(&run.host.root, &options, &stop, &|round, side| {
            run.progress.say(format!("round {} of {}: side {side}", round + 1, arguments.rounds));
        })?
    };
    let document = run.document(vec![NetCompareMeasurement::from(record).into()], &stop);
    let record = &document.net_compare().context("the document contains no comparison")?.record;
    outputs.write(&document)?;
    Ok(Exit::of_measurement(document.is_interrupted, record.is_whole()))
}

/// Splits the arguments into sides at each `--`. A part that starts with an option continues the one before: netperf
/// has a `--` of its own.
fn parts(words: &[String]) -> Vec<Vec<String>> {
    let mut parts: Vec<Vec<String>> = Vec::new();
    for part in words.split(|word| word == "--").filter(|part| !part.is_empty()) {
        match parts.last_mut().filter(|_| part.first().is_some_and(|word| word.starts_with('-'))) {
            Some(before) => {
                before.push("--".to_owned());
                before.extend_from_slice(part);
            }
            None => parts.push(part.to_vec()),
        }
    }
    parts
}

fn sides(words: &[String]) -> anyhow::Result<Vec<(String, SideOptions)>> {
    let parts = parts(words);
    anyhow::ensure!(
        parts.len() > 1,
        "cannot compare {}\nhint: write -- before each side, such as -- udp desk8 -- udp desk8 --wait spin",
        if parts.is_empty() { "nothing" } else { "one side with itself" }
    );
    let named = parts
        .into_iter()
        .enumerate()
        .map(|(place, part)| side(&part).with_context(|| format!("side {}", CompareSide::name_of(place))));
    named.collect()
}

fn side(part: &[String]) -> anyhow::Result<(String, SideOptions)> {
    if let Some(tool) = Tool::of_command(part) {
        return Ok((part.join(" "), SideOptions::Foreign(tool, part.to_vec())));
    }
    let own =
        OWN_WORDS.iter().zip(part).take_while(|(own, word)| word.rsplit('/').next() == Some(*own)).count();
    let own = part.get(own..).unwrap_or_default();
    let options = pingpong::client_options(own)?;
    Ok((own.join(" "), SideOptions::Lowlat(Box::new(options))))
}

/// The CPUs of the control, if both are named.
fn control_cpus(arguments: &NetCompareArgs) -> anyhow::Result<Option<(CpuId, CpuId)>> {
    let cpus = arguments.client_cpu.zip(arguments.server_cpu);
    anyhow::ensure!(
        cpus.is_none_or(|(client, server)| client != server),
        "cannot run client and server of the control on one CPU\nhint: name two with --client-cpu and --server-cpu"
    );
    Ok(cpus)
}

/// Reads finished outputs, each as one side.
fn imported(files: &[PathBuf]) -> anyhow::Result<CompareRecord> {
    let mut record = CompareRecord { is_imported: true, rounds: 1, ..CompareRecord::default() };
    for (place, file) in files.iter().enumerate() {
        let name = CompareSide::name_of(place);
        let (tool, output) = read(file)?;
        record.warnings.extend(output.warnings.iter().map(|warning| format!("{name}: {warning}")));
        let side = u32::try_from(place).unwrap_or(u32::MAX);
        record.runs.push(CompareRun { side, rows: output.rows, ..CompareRun::default() });
        record.sides.push(CompareSide { name, tool, command: file.display().to_string() });
    }
    Ok(record)
}

fn read(file: &Path) -> anyhow::Result<(Tool, ToolOutput)> {
    let shown = file.display();
    let hint = format!("name output of {}, or a document of lowlat net pingpong", Tool::names());
    let bytes = documents::named(file, &hint)?;
    if bytes.starts_with(b"{") {
        let document = documents::read(file)?;
        let record = &document
            .pingpong()
            .with_context(|| format!("cannot compare {shown}: it contains no round trips\nhint: {hint}"))?
            .record;
        let output = ToolOutput { rows: net::rows_of(record), warnings: record.warnings.clone() };
        return Ok((Tool::Lowlat, output));
    }
    tools::parse(&lowlat_net::plain(&bytes))
        .map_err(|error| anyhow::anyhow!("cannot read {shown}: {error}\nhint: {hint}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Command, FromArgMatches};

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn sides_are_split_and_netperf_keeps_its_own_dashes() {
        let line =
            "udp h --wait spin -- netperf -t TCP_RR -H h -- -r 32,32 -- lowlat net pingpong client tcp h";
        let sides = sides(&words(line)).unwrap();
        let shown: Vec<&str> = sides.iter().map(|(command, _)| command.as_str()).collect();
        assert_eq!(shown, ["udp h --wait spin", "netperf -t TCP_RR -H h -- -r 32,32", "tcp h"]);
        assert!(matches!(&sides[1].1, SideOptions::Foreign(Tool::Netperf, command) if command.len() == 8));
        assert!(matches!(&sides[2].1, SideOptions::Lowlat(options) if options.server == "h:12048"));
    }

    #[test]
    fn wrong_sides_are_refused_with_their_name() {
        let refused = |line: &str| format!("{:#}", sides(&words(line)).unwrap_err());
        assert!(refused("udp h").contains("cannot compare one side with itself"));
        assert!(refused("udp h -- iperf3 -c h").contains("side B"), "{}", refused("udp h -- iperf3 -c h"));
        assert!(refused("udp h -- udp h --json").contains("before the first --"));
    }

    #[test]
    fn the_control_has_two_cpus_or_none() {
        let cpus = |line: &str| {
            let command = NetCompareArgs::augment_args(Command::new("compare")).no_binary_name(true);
            let matches = command.try_get_matches_from(words(&format!("{line} -- udp h -- tcp h")))?;
            control_cpus(&NetCompareArgs::from_arg_matches(&matches)?)
        };
        assert!(cpus("--client-cpu 1 --server-cpu 1").is_err() && cpus("--client-cpu 1").is_err());
        assert_eq!(cpus("--client-cpu 1 --server-cpu 0").unwrap(), Some((1, 0)));
    }
}
