//! `lowlat pipeline run`: one run.

use super::{
    live::Live,
    matching::MatchingArguments,
    now,
    own::{self, CONFIG_HELP},
    pins::{PinSource, RequestedRoles},
    room,
    scenario::{SCENARIO_HELP, ScenarioArguments, rate_and_duration},
    service::RunNotifier,
    wire::WireArguments,
};
use crate::{
    arguments::{bytes, duration, time_ns, word},
    commands::{completions, help, journal::record::DataFileArgs, outputs::OutputArgs},
    exit::Exit,
    output, signals,
};
use anyhow::{Context, bail, ensure};
use clap::Args;
use lowlat_journal::record::Recorder;
use lowlat_node::private::group_id;
use lowlat_pipeline::{
    Mode, Pins, PipelineDocument, PipelineOptions, PipelineParameters, PipelineRecord, ProcessRole,
    QuoteOverrun, RecordedTicks, ReplayedRecording, WireRecord,
    check::{RoomFacts, admit},
};
use lowlat_pipeline_report::{pipeline_text, run_html};
use lowlat_results::hlog::{self, HdrLog};
use lowlat_trade::{
    cached::Cached,
    run::{HOSTED_MAX, Runner, STRATEGIES_MAX, plan::RECORDER},
    scenario::{Speed, Ticks},
};
use std::{
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

/// Number of strategies unless a user says otherwise.
const STRATEGIES: u32 = 80;
/// Shortest duration for the rate of recorded ticks, in seconds: a file with one tick has none.
const TICKS_S_MIN: f64 = 0.001;

/// Run market data, strategies and order gateway as processes, and measure tick to order
#[derive(Debug, Args)]
#[command(mut_arg("scenario", |scenario| scenario.conflicts_with_all(["strategies", "rate", "duration", "ticks", "feed", "from_recording"])))]
#[command(after_help = help(&format!("{TICKS_HELP}\n\n{RECORDING_HELP}\n\n{SCENARIO_HELP}\n\n{CONFIG_HELP}\n\nExit codes: 0 clean, 1 findings (what does not balance, a schedule not kept, messages missing in the sequence of a feed or capture), a recording in part or a strategy that was given up, 2 error, 130 interrupted (not without --duration: then a run ends when it is stopped)."), &[
    ("lowlat pipeline run --duration 10s", "Run 80 sleeping strategies at 800 quotes per second for 10 s."),
    ("lowlat pipeline run --name desk", "Run until Ctrl-C or `lowlat pipeline stop --run desk`."),
    ("lowlat pipeline run --duration 10s --pins md=0,td=1 --mode mixed --json", "Let md spin on a dedicated CPU."),
    ("lowlat pipeline run --host-core 3 --rate 8000", "Run all strategies in one process."),
    ("lowlat pipeline run --mode fast --pins platform=0 --host-core 1", "Run two spinning processes: the platform, and all strategies."),
    ("lowlat pipeline run --pins placement.json", "Use the CPUs that `lowlat pipeline size` proposed."),
    ("lowlat pipeline run --ticks monday.csv --speed x10", "Replay recorded ticks ten times as fast."),
    ("lowlat pipeline run --scenario a11.json --md-threads", "Publish a scenario as the Kungfu report's md does."),
    ("lowlat pipeline run --record monday --pins recorder=0", "Record the run, with the recorder on CPU 0."),
    ("lowlat pipeline run --from-recording monday --speed max --await maker --name desk", "Run your strategy over a recording as fast as it works."),
    ("lowlat pipeline run --feed udp:239.1.1.1:5000 --feed-interface eth1 --gateway tcp:10.0.0.1:5001", "Trade with an exchange, and measure tick to trade from packet to packet."),
]))]
pub struct PipelineRunArgs {
    /// Number of strategies, each with its own instrument: up to 1000, or 10000 with --host-core
    /// [default: 80, or the instruments of --from-recording; 0 with --await or --config]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..=i64::from(HOSTED_MAX)), allow_negative_numbers = true)]
    strategies: Option<u32>,
    /// Quotes per second over all instruments
    #[arg(long, value_name = "PER_SECOND", default_value = "800", value_parser = rate, allow_negative_numbers = true)]
    rate: f64,
    /// Publish recorded ticks from this file of CSV or ITCH, or this recording, with a strategy for
    /// each instrument; see the formats below
    #[arg(long, value_name = "FILE", group = "recorded", conflicts_with_all = ["strategies", "rate", "duration"])]
    ticks: Option<PathBuf>,
    /// Run over this recording of a run: its quotes, its instruments and its clock; see below
    #[arg(long, value_name = "DIR", group = "recorded", conflicts_with_all = ["rate", "duration", "feed", "gateway", "cached", "md_threads"])]
    from_recording: Option<PathBuf>,
    /// Publish ticks, or the quotes of a recording, this many times as fast as recorded; max: as
    /// fast as the nodes of the run work, with the same orders in each run (--from-recording)
    #[arg(long, value_name = "TIMES", default_value = "x1", value_parser = run_speed, requires = "recorded")]
    speed: RunSpeed,
    /// Start and supervise the strategies of this TOML file; see below
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Number of instruments [default: one for each strategy, or 80 without strategies]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(HOSTED_MAX)), conflicts_with_all = ["ticks", "from_recording", "scenario"])]
    instruments: Option<u32>,
    /// Wait for the node with this name, such as your strategy, before the first quote; may be
    /// repeated
    #[arg(long = "await", value_name = "NAME", requires = "from_recording")]
    awaited: Vec<String>,
    #[command(flatten)]
    wire: WireArguments,
    #[command(flatten)]
    scenario: ScenarioArguments,
    /// How the processes wait
    #[arg(long, default_value = "parked", value_parser = word(Mode::WORDS))]
    mode: Mode,
    /// How long to publish quotes: 10s, 5m [default: until the run is stopped]
    #[arg(long, value_name = "TIME", value_parser = duration, allow_hyphen_values = true)]
    duration: Option<Duration>,
    /// CPU time that each strategy computes per quote: 20us
    #[arg(long, value_name = "TIME", default_value = "0us", value_parser = time_ns)]
    strategy_cost: u64,
    /// CPUs of roles: md=0,td=1,strategies=2-5; platform=0 runs md and td in one process; also
    /// master, cached, recorder; or a file written by lowlat pipeline size --write-pins
    #[arg(long, value_name = "ROLE=CPU|FILE", value_parser = PinSource::parse, add = completions::pins())]
    pins: Option<PinSource>,
    /// Run all strategies in one process on this CPU
    #[arg(long, value_name = "CPU")]
    host_core: Option<u32>,
    /// What to do with quotes that a strategy is too slow for: report a gap, or pass on only the
    /// latest
    #[arg(long, default_value = "gap", value_parser = word([("gap", QuoteOverrun::Gap), ("conflate", QuoteOverrun::Conflate)]))]
    overrun: QuoteOverrun,
    /// Also run cached, which keeps the latest state in this file
    #[arg(long, value_name = "FILE")]
    cached: Option<PathBuf>,
    /// Record every stream into this new directory, for lowlat journal; {time} becomes the present
    /// time
    #[arg(long, value_name = "DIR", value_parser = timed)]
    record: Option<PathBuf>,
    /// Wake strategies from a thread that spins on this CPU
    #[arg(long, value_name = "CPU")]
    wake_core: Option<u32>,
    /// Name the run, so that other programs find its master [default: a generated name]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Let members of this group join, by name or number [default: only this user and root]
    #[arg(long, value_name = "GROUP")]
    unix_group: Option<String>,
    /// Memory limit of all nodes together: 512M, 16G [default: 3/4 of the available memory]
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    memory_max: Option<u64>,
    /// Take memory from the reserved huge pages
    #[arg(long)]
    huge_pages: bool,
    /// Run even if the figures would not be meaningful
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    outputs: OutputArgs,
    /// Write the latencies as an HdrHistogram log, one interval per stage
    #[arg(long, value_name = "FILE")]
    hlog: Option<PathBuf>,
    #[command(flatten)]
    matching: MatchingArguments,
    #[command(flatten, next_help_heading = "Recording")]
    files: DataFileArgs,
}

/// A path with the time in UTC in place of `{time}`: "desk-{time}" becomes "desk-20261130T141546Z".
#[expect(clippy::unnecessary_wraps, reason = "clap calls it as a parser")]
fn timed(text: &str) -> Result<PathBuf, std::convert::Infallible> {
    Ok(text.replace("{time}", &now().replace([':', '-'], "")).into())
}

/// Parses a rate in quotes per second.
pub fn rate(text: &str) -> Result<f64, String> {
    let number: f64 = text
        .parse()
        .map_err(|_| format!("\"{text}\": expected a number of quotes per second, such as 800"))?;
    if number.is_finite() && (0.001..=1e7).contains(&number) {
        Ok(number)
    } else {
        Err(format!("\"{text}\": expected a rate from 0.001 to 10000000 quotes per second"))
    }
}

/// Speed of a run over recorded quotes; `None`: as fast as its processes work, in steps.
#[derive(Debug, Clone, Copy)]
struct RunSpeed(Option<Speed>);

/// Parses a speed such as "10" or "x2.5".
pub fn speed(text: &str) -> Result<Speed, String> {
    Speed::parse(text).ok_or_else(|| format!("\"{text}\": expected a number above 0, such as 2 or x2"))
}

/// Parses a speed, or "max".
fn run_speed(text: &str) -> Result<RunSpeed, String> {
    if text == "max" { Ok(RunSpeed(None)) } else { speed(text).map(|speed| RunSpeed(Some(speed))) }
}

/// Format of --ticks, for the help.
const TICKS_HELP: &str = "\
Recorded ticks (--ticks) are lines of CSV, sorted by time, below a header:
  time_ns,instrument,bid,ask,last,bid_size,ask_size
  1700000000000000000,600000,10.01,10.02,10.01,300,500
The time may be time_us, time_ms or time_s instead. Prices have up to 4 decimals.
last, bid_size and ask_size are optional. Recordings of lowlat (a directory), and what
`lowlat journal export` writes as CSV, are read too.
ITCH 5.0 is read from captures (pcap, pcapng) of MoldUDP64 packets, and from plain files
as Nasdaq publishes them; --channel chooses one of several channels of a capture. Files may
be compressed with gzip. Ticks are a load with recorded times: lowlat is no feed handler.";

/// A run over a recording, for the help.
const RECORDING_HELP: &str = "\
A run over a recording (--from-recording) has its quotes, its instruments and its clock, in
which timers, stamps and the simulated book work. At --speed max one node works at a time, and
the time moves on when all wait: two runs of the same strategies have the same orders, which
`lowlat journal diff` shows. Latencies are not measured then.";

pub fn run(arguments: &PipelineRunArgs) -> anyhow::Result<Exit> {
    let (parameters, load) = parameters(arguments)?;
    let stop = signals::stop_flag()?;
    let outputs = arguments.outputs.prepare_with(arguments.hlog.as_deref())?;
    let RunLoad { replay, instruments, .. } = &load;
    let group = arguments.unix_group.as_deref().map(group_id).transpose().context("--unix-group")?;
    let options =
        PipelineOptions { replay: replay.clone(), instruments: *instruments, group, ..options(arguments) };
    let (mut runner, facts) = super::runner::with_options(&options, &stop)?;
    runner.manager = RunNotifier::find();
    runner.own = arguments.config.as_deref().map(own::read).transpose()?.unwrap_or_default();
    check_wake_core(&options, &facts)?;
    check_beside(&options, &arguments.files)?;
    if let Some(folder) = arguments.record.as_deref().filter(|_| !load.symbols.is_empty()) {
        Recorder::keep_symbols(folder, &load.symbols)?;
    }
    let asked = RequestedRun { parameters: &parameters, options: &options, is_forced: arguments.force };
    let mut document = measure(&asked, &facts, &mut runner, &stop)?;
    document.record.findings.extend(load.findings);
    document.record.warnings.extend(load.doubts);
    let document = arguments.outputs.label(document);
    let log = || Ok(hlog_of(&document)?.to_string());
    let written = outputs.write_as(&document, &document.labels, pipeline_text, run_html, log);
    if let Some(folder) = &arguments.record {
        arguments.files.compress_rest(folder, &stop)?;
        let shown = folder.display();
        if document.record.failed.iter().any(|name| name == RECORDER) {
            output::talk(&format!("recorded in part: {shown}\nhint: lowlat journal verify {shown}"));
        } else {
            output::talk(&format!("recorded: {shown}\nhint: lowlat journal ls {shown}"));
        }
    }
    written.map(|()| exit(&document))
}

fn parameters(arguments: &PipelineRunArgs) -> anyhow::Result<(PipelineParameters, RunLoad)> {
    ensure!(arguments.duration != Some(Duration::ZERO), "--duration is 0\nhint: give at least 1s");
    let asked = RequestedRoles {
        cached: arguments.cached.is_some(),
        recorder: arguments.record.is_some(),
        host: arguments.host_core.is_some() && arguments.config.is_none(),
    };
    let pins = arguments.pins.as_ref().map(|pins| pins.pins(asked)).transpose()?.unwrap_or_default();
    check_wire(arguments, &pins)?;
    check_speed(arguments, &pins)?;
    check_threads(arguments, &pins)?;
    let load = load(arguments)?;
    let parameters = PipelineParameters {
        strategies: load.strategies,
        rate_per_s: load.rate_per_s,
        mode: arguments.mode,
        duration_s: load.duration_s,
        pins,
        host_core: arguments.host_core,
        may_use_huge_pages: arguments.huge_pages,
        has_md_threads: arguments.scenario.md_threads,
        strategy_cost_ns: arguments.strategy_cost,
    };
    Ok((parameters, load))
}

/// Rejects arguments that a feed or a gateway makes void.
fn check_wire(arguments: &PipelineRunArgs, pins: &Pins) -> anyhow::Result<()> {
    let WireArguments { feed, gateway, .. } = &arguments.wire;
    let has_platform = pins.contains_key(&ProcessRole::Platform);
    ensure!(
        !has_platform || (feed.is_none() && gateway.is_none()),
        "--pins platform=CPU runs md and td in one process, which has no feed and no gateway\nhint: pin md and td instead"
    );
    ensure!(
        feed.is_none() || arguments.ticks.is_none(),
        "--feed and --ticks are both sources of quotes\nhint: give one of them"
    );
    Ok(())
}

/// Rejects arguments that do not go with the maximal speed.
fn check_speed(arguments: &PipelineRunArgs, pins: &Pins) -> anyhow::Result<()> {
    let is_max = arguments.speed.0.is_none();
    ensure!(
        !is_max || arguments.from_recording.is_some(),
        "--speed max needs the clock of a recording\nhint: name a recording with --from-recording, or give a number"
    );
    ensure!(
        !is_max || !pins.contains_key(&ProcessRole::Platform),
        "--speed max: md and td work in turns, and --pins platform=CPU runs them in one process\nhint: pin md and td instead"
    );
    Ok(())
}

/// Rejects arguments with which md has no threads.
fn check_threads(arguments: &PipelineRunArgs, pins: &Pins) -> anyhow::Result<()> {
    let has_platform = pins.contains_key(&ProcessRole::Platform);
    let other = [
        (has_platform, "--pins platform=CPU runs md and td in one loop"),
        (arguments.ticks.is_some(), "--ticks replays one file"),
        (arguments.wire.feed.is_some(), "--feed reads one socket"),
    ];
    match other.into_iter().find(|(is_given, _)| *is_given && arguments.scenario.md_threads) {
        Some((_, why)) => bail!("--md-threads: {why}\nhint: remove one of the two"),
        None => Ok(()),
    }
}

#[derive(Default)]
struct RunLoad {
    strategies: u32,
    rate_per_s: f64,
    duration_s: f64,
    /// Problems of the ticks, one sentence each.
    findings: Vec<String>,
    doubts: Vec<String>,
    replay: Option<ReplayedRecording>,
    /// Instruments, if not one for each strategy.
    instruments: Option<u32>,
    /// Names of the instruments, if they are known.
    symbols: Vec<String>,
}

/// The names of recorded instruments; none if they are only their numbers.
fn symbols_of(ticks: &Ticks) -> Vec<String> {
    let is_number = |(number, name): (usize, &String)| *name == number.to_string();
    if ticks.names().iter().enumerate().all(is_number) { Vec::new() } else { ticks.names().to_vec() }
}

/// Returns the load of the scenario or the recorded ticks, or of the arguments without either.
fn load(arguments: &PipelineRunArgs) -> anyhow::Result<RunLoad> {
    let most = if arguments.host_core.is_some() { HOSTED_MAX } else { STRATEGIES_MAX };
    if let Some(scenario) = arguments.scenario.read(most)? {
        let (rate_per_s, duration_s) = rate_and_duration(&scenario);
        let strategies = scenario.instruments;
        return Ok(RunLoad { strategies, rate_per_s, duration_s, ..RunLoad::default() });
    }
    if let Some(folder) = &arguments.from_recording {
        return replay(arguments, folder, most);
    }
    let Some(path) = &arguments.ticks else {
        let is_own = arguments.config.is_some();
        let strategies = arguments.strategies.unwrap_or(if is_own { 0 } else { STRATEGIES });
        ensure!(
            strategies > 0 || is_own,
            "--strategies is 0\nhint: give at least 1, or your own with --config"
        );
        let instruments = instruments(arguments, strategies);
        ensure!(
            strategies <= instruments,
            "{strategies} strategies need an instrument each, and --instruments is {instruments}\nhint: give a lower --strategies"
        );
        ensure!(
            strategies <= most,
            "cannot run {strategies} strategies in a process each: the maximum is {most}\nhint: run them in one process, with --host-core CPU"
        );
        return Ok(RunLoad {
            strategies,
            rate_per_s: arguments.rate,
            duration_s: arguments.duration.map_or(PipelineParameters::ENDLESS_S, |time| time.as_secs_f64()),
            instruments: Some(instruments).filter(|count| *count != strategies),
            symbols: arguments.wire.symbols.clone(),
            ..RunLoad::default()
        });
    };
    let ticks = Ticks::read(path, &arguments.wire.symbols, arguments.wire.channel.as_deref())?;
    ticks.doubts().iter().chain(ticks.findings()).for_each(|fault| output::talk(fault));
    let instruments = ticks.names().len();
    let strategies = u32::try_from(instruments).ok().filter(|count| *count <= most).with_context(|| {
        format!(
            "cannot run {}: it has {instruments} instruments, and a run has at most {most} strategies\nhint: split the file",
            path.display()
        )
    })?;
    let duration_s = ticks.duration_s(arguments.speed.0.unwrap_or_default()).max(TICKS_S_MIN);
    let (findings, doubts) = (ticks.findings().to_vec(), ticks.doubts().to_vec());
    let rate_per_s = ticks.count() as f64 / duration_s;
    let symbols = symbols_of(&ticks);
    Ok(RunLoad { strategies, rate_per_s, duration_s, findings, doubts, symbols, ..RunLoad::default() })
}

/// Instruments of a market that no file describes.
fn instruments(arguments: &PipelineRunArgs, strategies: u32) -> u32 {
    let named =
        u32::try_from(arguments.wire.symbols.len()).ok().filter(|count| *count > 0 && strategies == 0);
    let without = if strategies == 0 { STRATEGIES } else { strategies };
    arguments.instruments.or(named).unwrap_or(without)
}

/// The load of a recording, in its own time.
fn replay(arguments: &PipelineRunArgs, folder: &Path, most: u32) -> anyhow::Result<RunLoad> {
    let ticks = Ticks::from_recording(folder, true)?;
    ticks.doubts().iter().for_each(|doubt| output::talk(doubt));
    let instruments = u32::try_from(ticks.names().len())?;
    let all = if arguments.awaited.is_empty() && arguments.config.is_none() { instruments } else { 0 };
    let strategies = arguments.strategies.unwrap_or(all);
    ensure!(
        strategies <= most.min(instruments),
        "cannot run {strategies} strategies over {}: it has {instruments} instruments, and a run has at most {most} strategies\nhint: give --strategies a lower number",
        folder.display()
    );
    let duration_s = ticks.duration_s(Speed::default()).max(TICKS_S_MIN);
    let replay = ReplayedRecording {
        folder: whole(folder),
        speed: arguments.speed.0.map(|speed| speed.to_string()),
        instruments,
        first_ns: ticks.first_ns(),
        awaited: arguments.awaited.clone(),
    };
    Ok(RunLoad {
        strategies,
        rate_per_s: ticks.count() as f64 / duration_s,
        duration_s,
        doubts: ticks.doubts().to_vec(),
        symbols: symbols_of(&ticks),
        replay: Some(replay),
        ..RunLoad::default()
    })
}

/// A full path. The processes of a run start in this process's directory, but a full path is clear in every message.
fn whole(path: &Path) -> String {
    std::path::absolute(path).unwrap_or(path.to_owned()).display().to_string()
}

fn options(arguments: &PipelineRunArgs) -> PipelineOptions {
    arguments.matching.add_to(PipelineOptions {
        name: arguments.name.clone(),
        followers: 0,
        scenario: arguments.scenario.path(),
        start_interval_ms: arguments.scenario.start_interval_ms(),
        overrun: arguments.overrun,
        cached_store: arguments.cached.as_deref().map(whole),
        recording: arguments.record.as_deref().map(whole),
        recorder_arguments: arguments.files.words(),
        wake_core: arguments.wake_core,
        ticks: arguments
            .ticks
            .as_deref()
            .zip(arguments.speed.0)
            .map(|(path, speed)| RecordedTicks { file: whole(path), speed: speed.to_string() }),
        feed: arguments.wire.feed.map(|feed| feed.to_string()),
        feed_interface: arguments.wire.feed_interface.clone(),
        feed_buffer_bytes: arguments.wire.feed_buffer,
        symbols: arguments.wire.symbols.clone(),
        channel: arguments.wire.channel.clone(),
        gateway: arguments.wire.gateway.map(|gateway| gateway.to_string()),
        quotes_per_order: arguments.wire.quotes_per_order,
        memory_bytes_max: arguments.memory_max,
        ..PipelineOptions::default()
    })
}

/// Checks now what the recorder and cached would refuse at their start, which would end the run.
fn check_beside(options: &PipelineOptions, files: &DataFileArgs) -> anyhow::Result<()> {
    if let Some(folder) = &options.recording {
        Recorder::check_new(Path::new(folder), files.options()?)?;
    } else if !options.recorder_arguments.is_empty() {
        let words = options.recorder_arguments.join(" ");
        bail!("nothing is recorded ({words})\nhint: add --record DIR, or remove these options");
    }
    if let Some(store) = &options.cached_store {
        let path = Path::new(store);
        if let (_, Some(to)) = Cached::open(path)? {
            let (path, to) = (path.display(), to.display());
            output::talk(&format!("{path} is damaged: kept as {to}, starting a new store"));
        }
    }
    Ok(())
}

/// md checks this too, but only after every process of the run has started.
fn check_wake_core(options: &PipelineOptions, facts: &RoomFacts) -> anyhow::Result<()> {
    match (options.wake_core, facts.cpus.known()) {
        (Some(cpu), Some(cpus)) if !cpus.contains(cpu) => bail!(
            "cannot wake from CPU {cpu} (--wake-core): this process may use CPUs {cpus}\nhint: name one of them, or widen its affinity (taskset, cpuset)"
        ),
        _ => Ok(()),
    }
}

fn hlog_of(document: &PipelineDocument) -> anyhow::Result<HdrLog> {
    let started: jiff::Timestamp = document.started_at.parse()?;
    let start_ns = u64::try_from(started.as_nanosecond()).unwrap_or(0);
    Ok(hlog::of_stages(&document.record.stages, start_ns, document.record.measured_s)?)
}

/// Run that the user requested.
struct RequestedRun<'a> {
    parameters: &'a PipelineParameters,
    options: &'a PipelineOptions,
    is_forced: bool,
}

/// Checks for room, runs, and builds the document.
fn measure(
    asked: &RequestedRun<'_>,
    facts: &RoomFacts,
    runner: &mut dyn Runner,
    stop: &AtomicBool,
) -> anyhow::Result<PipelineDocument> {
    let RequestedRun { parameters, options, is_forced } = *asked;
    let doubts = admit(parameters, facts, is_forced)?;
    room::talk("run", &doubts);
    let started_at = now();
    let live = Live::new();
    let title = match &options.feed {
        Some(feed) => format!("{} strategies, quotes from {feed}", parameters.strategies),
        None => lowlat_pipeline_report::load_words(parameters),
    };
    let record = runner.run(parameters, &mut |now| live.show(&title, parameters.duration_s, now));
    live.finish();
    let mut record = record?;
    record.warnings.extend(doubts);
    Ok(PipelineDocument {
        document: PipelineDocument::DOCUMENT.into(),
        schema_version: PipelineDocument::SCHEMA_VERSION,
        lowlat_version: env!("CARGO_PKG_VERSION").into(),
        started_at,
        // Relaxed: a lone flag.
        is_interrupted: stop.load(Ordering::Relaxed) && !parameters.is_endless(),
        labels: lowlat_host::Labels::default(),
        options: options.clone(),
        record,
    })
}

fn exit(document: &PipelineDocument) -> Exit {
    Exit::of_run(document.is_interrupted, is_sound(&document.record))
}

/// True if the run has no findings and no failures, and its record of the wire is whole.
pub fn is_sound(record: &PipelineRecord) -> bool {
    record.findings.is_empty()
        && record.failed.is_empty()
        && record.wire.as_ref().is_none_or(WireRecord::is_whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Command, FromArgMatches};
    use lowlat_host::{CpuSet, Reading};
    use lowlat_pipeline::{BookOptions, FilledBy};
    use lowlat_trade::run::testing::Fake;

    fn arguments(words: &[&str]) -> Result<PipelineRunArgs, clap::Error> {
        let command = PipelineRunArgs::augment_args(Command::new("run"));
        let matches = command.try_get_matches_from([&["run"], words].concat())?;
        PipelineRunArgs::from_arg_matches(&matches)
    }

    fn asked_for(parameters: &PipelineParameters, is_forced: bool) -> RequestedRun<'_> {
        static OPTIONS: std::sync::LazyLock<PipelineOptions> =
            std::sync::LazyLock::new(PipelineOptions::default);
        RequestedRun { parameters, options: &OPTIONS, is_forced }
    }

    fn facts() -> RoomFacts {
        RoomFacts { cpus: Reading::Known(CpuSet::first(2)), ..RoomFacts::default() }
    }

    #[test]
    fn arguments_become_parameters() {
        let words = [
            "--strategies",
            "8",
            "--rate",
            "0.5",
            "--mode",
            "mixed",
            "--pins",
            "md=0,td=1",
            "--host-core",
            "3",
        ];
        let of = parameters(&arguments(&words).unwrap()).unwrap().0;
        assert_eq!((of.strategies, of.rate_per_s, of.host_core), (8, 0.5, Some(3)));
        assert_eq!(of.pins[&ProcessRole::Md].as_slice(), [0]);
        assert!(of.is_endless(), "without --duration");
        for words in [["--rate", "0"], ["--rate", "many"], ["--pins", "0"], ["--mode", "quick"]] {
            assert!(arguments(&words).is_err(), "{words:?}");
        }
        assert!(parameters(&arguments(&["--strategies", "0"]).unwrap()).is_err(), "without --from-recording");
        assert!(parameters(&arguments(&["--duration", "0s"]).unwrap()).is_err());
        assert!(arguments(&["--channel", "1A"]).is_err(), "without --ticks");
        let asked = |words: &[&str]| parameters(&arguments(words).unwrap()).map(|(parameters, _)| parameters);
        assert!(asked(&["--pins", "recorder=1"]).unwrap_err().to_string().contains("--record DIR"));
        let timed = options(&arguments(&["--record", "/x/desk-{time}"]).unwrap()).recording.unwrap();
        assert!(timed.starts_with("/x/desk-20") && timed.ends_with('Z') && !timed.contains(':'), "{timed}");
        let recorded = ["--record", "/x/monday", "--pins", "recorder=1"];
        assert_eq!(asked(&recorded).unwrap().pins[&ProcessRole::Recorder], [1]);
        assert_eq!(options(&arguments(&recorded).unwrap()).recording.as_deref(), Some("/x/monday"));
        assert!(asked(&["--pins", "strategies=0", "--host-core", "1"]).is_err());
        let words = ["--overrun", "conflate", "--cached", "/x/state", "--wake-core", "2", "--name", "main"];
        let of = options(&arguments(&words).unwrap());
        assert_eq!((of.overrun, of.wake_core), (QuoteOverrun::Conflate, Some(2)));
        assert_eq!((of.cached_store.as_deref(), of.name.as_deref()), (Some("/x/state"), Some("main")));
        let book = BookOptions { latency_ns: 0, depth_per_mille: 1000, queue_per_mille: 1000 };
        let expected = PipelineOptions { filled_by: FilledBy::Quotes, book, ..PipelineOptions::default() };
        assert_eq!(options(&arguments(&[]).unwrap()), expected);
        let words = ["--fills", "at-once", "--position-max", "5", "--orders-per-second-max", "9"];
        let of = options(&arguments(&words).unwrap());
        assert_eq!(
            (of.filled_by, of.limits.position_max, of.limits.orders_per_s_max),
            (FilledBy::AtOnce, Some(5), Some(9))
        );
    }

    #[test]
    fn a_wake_core_must_be_an_allowed_cpu() {
        let of = |cpu: &str| options(&arguments(&["--wake-core", cpu]).unwrap());
        assert!(check_wake_core(&of("1"), &facts()).is_ok());
        let error = check_wake_core(&of("7"), &facts()).unwrap_err().to_string();
        assert!(
            error.contains("cannot wake from CPU 7 (--wake-core): this process may use CPUs 0-1"),
            "{error}"
        );
        assert!(check_wake_core(&of("7"), &RoomFacts::default()).is_ok(), "md checks it later");
    }

    #[test]
    fn stages_become_intervals_of_a_log() {
        let parameters = parameters(&arguments(&["--duration", "2s"]).unwrap()).unwrap().0;
        let stop = AtomicBool::new(false);
        let document =
            measure(&asked_for(&parameters, false), &facts(), &mut Fake::default(), &stop).unwrap();
        let log = hlog_of(&document).unwrap();
        let tags: Vec<_> = log.intervals.iter().map(|interval| interval.tag.as_str()).collect();
        assert_eq!(tags, ["md", "order", "t2o", "t2o_scheduled"]);
        let t2o = lowlat_host::histogram::decode(&log.intervals[2].histogram).unwrap();
        assert_eq!(t2o.len(), document.record.stages.t2o.count);
    }

    #[test]
    fn the_stages_of_a_run_are_at_the_top_of_its_document() {
        let parameters = parameters(&arguments(&["--duration", "2s"]).unwrap()).unwrap().0;
        let mut runner = Fake::default();
        let document =
            measure(&asked_for(&parameters, false), &facts(), &mut runner, &AtomicBool::new(false)).unwrap();
        assert_eq!(runner.asked, [parameters]);
        let json = serde_json::to_value(&document).unwrap();
        assert!(
            json["stages"]["t2o"]["p99_ns"].is_u64() && json["stages"]["md"]["count"] == 1600,
            "{json:.400}"
        );
        assert_eq!(exit(&document), Exit::Clean);
        let mut lossy = document.clone();
        lossy.record.findings = vec!["1 of 1,600 orders have no answer (s0 1).".to_owned()];
        assert_eq!(exit(&lossy), Exit::Findings);
        let mut unrecorded = document.clone();
        unrecorded.record.failed = vec![RECORDER.to_owned()];
        assert_eq!(exit(&unrecorded), Exit::Findings);
        lossy.is_interrupted = true;
        assert_eq!(exit(&lossy), Exit::Interrupted);
    }

    #[test]
    fn too_many_spinners_are_refused_unless_forced() {
        let parameters = parameters(&arguments(&["--mode", "fast"]).unwrap()).unwrap().0;
        let mut runner = Fake::default();
        let stop = AtomicBool::new(false);
        let error =
            measure(&asked_for(&parameters, false), &facts(), &mut runner, &stop).unwrap_err().to_string();
        assert!(
            error.contains("82 processes spin (md, td, 80 strategies) on 2 CPUs") && runner.asked.is_empty(),
            "{error}"
        );
        let document = measure(&asked_for(&parameters, true), &facts(), &mut runner, &stop).unwrap();
        assert!(document.record.warnings.iter().any(|warning| warning.starts_with("spinners")));
    }
}
