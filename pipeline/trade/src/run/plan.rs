//! Processes of a run: pure.

use crate::{master::Program, roles::follower};
use lowlat_pipeline::{Mode, PipelineOptions, PipelineParameters, QuoteOverrun};
use std::path::Path;

/// Stands for the master's socket in arguments and environment.
pub const MASTER: &str = "{master}";
/// Stands for the run folder in the store's path: that file is removed with the folder.
pub const FOLDER: &str = "{folder}";
/// Name and role of the recording process.
pub const RECORDER: &str = "recorder";
/// Name and role of the process that keeps the latest state.
const CACHED: &str = "cached";
/// Role of processes that read every record and keep nothing.
const FOLLOWER: &str = "follower";
/// Maximum restarts of a process of a run within a minute.
const RESTARTS_PER_MINUTE_MAX: u32 = 3;

/// The processes of a run in starting order: readers before the writers whose records they read. `program` is
/// `lowlat` itself.
pub fn programs(parameters: &PipelineParameters, options: &PipelineOptions, program: &Path) -> Vec<Program> {
    let [md_wait, td_wait, strategy_wait] = match parameters.mode {
        Mode::Fast => ["fast"; 3],
        Mode::Parked => ["parked"; 3],
        Mode::Adaptive => ["adaptive"; 3],
        Mode::Mixed => ["fast", "parked", "parked"],
        Mode::PlatformFast => ["fast", "fast", "parked"],
    };
    let count = parameters.strategies;
    let role = |role: &str, name: &str, wait: &str, cpus: Vec<u32>, more: &[(&str, String)]| {
        let mut arguments: Vec<String> =
            ["pipeline", "role", role, "--master", MASTER, "--wait", wait].map(str::to_owned).to_vec();
        arguments.extend(more.iter().flat_map(|(name, value)| [format!("--{name}"), value.clone()]));
        Program {
            name: name.to_owned(),
            role: if role == "strategy" { "strategies".to_owned() } else { role.to_owned() },
            program: program.to_owned(),
            arguments,
            environment: Vec::new(),
            cpus,
            restarts_per_minute_max: RESTARTS_PER_MINUTE_MAX,
        }
    };
    let pins = |name: &str| parameters.pins.get(name).cloned().unwrap_or_default();
    let mut programs = Vec::new();
    if let Some(folder) = &options.recording {
        // First to join and last to be stopped: it reads every record of the run.
        let arguments = ["journal", "record", "--run", MASTER, "--out", folder, "--name", RECORDER];
        programs.push(Program {
            arguments: arguments.map(str::to_owned).to_vec(),
            ..role(RECORDER, RECORDER, "", pins(RECORDER), &[])
        });
    }
    if let Some(store) = &options.cached_store {
        let more = [("store", store.clone()), ("strategies", count.to_string())];
        programs.push(role(CACHED, CACHED, "parked", pins(CACHED), &more));
    }
    for number in 0..options.followers {
        let more = [("instrument", number.to_string())];
        programs.push(role(FOLLOWER, &follower::name(number), "parked", Vec::new(), &more));
    }
    let mut desk = vec![("strategies", count.to_string())];
    desk.extend(options.price_deviation_max_per_mille.map(|most| ("price-deviation", most.to_string())));
    desk.extend(options.gateway.clone().map(|gateway| ("gateway", gateway)));
    let mut feed = quotes(parameters, options);
    if !options.symbols.is_empty() {
        feed.push(("symbols", options.symbols.join(",")));
    }
    feed.extend(options.channel.clone().map(|channel| ("channel", channel)));
    feed.extend(options.wake_core.map(|cpu| ("wake-core", cpu.to_string())));
    let is_colocated = parameters.pins.contains_key(PipelineParameters::PLATFORM);
    if is_colocated {
        // It ends like td, when the master stops it; its md leaves the master before.
        desk.append(&mut feed);
        let cpus = pins(PipelineParameters::PLATFORM);
        programs.push(role(PipelineParameters::PLATFORM, "td", md_wait, cpus, &desk));
    } else {
        programs.push(role("td", "td", td_wait, pins("td"), &desk));
    }
    let overrun = match options.overrun {
        QuoteOverrun::Gap => "gap",
        QuoteOverrun::Conflate => "conflate",
    };
    let quotes_per_order = options.quotes_per_order.map(|quotes| ("quotes-per-order", quotes.to_string()));
    let cost_ns = parameters.strategy_cost_ns;
    let work: Vec<_> = quotes_per_order
        .into_iter()
        .chain((cost_ns > 0).then(|| ("strategy-cost-ns", cost_ns.to_string())))
        .collect();
    if let Some(cpu) = parameters.host_core {
        let mut more = vec![("strategies", count.to_string()), ("overrun", overrun.to_owned())];
        more.extend(work);
        programs.push(role("host", "host", "fast", vec![cpu], &more));
    } else {
        let cpus = pins("strategies");
        for number in 0..count {
            // The CPUs in turn, one per process.
            let turn = usize::try_from(number).unwrap_or(0).checked_rem(cpus.len());
            let cpu = turn.and_then(|turn| cpus.get(turn)).copied();
            let mut more = vec![("instrument", number.to_string()), ("overrun", overrun.to_owned())];
            more.extend(options.cached_store.clone().map(|store| ("store", store)));
            more.extend(work.clone());
            let name = format!("s{number}");
            programs.push(role("strategy", &name, strategy_wait, cpu.into_iter().collect(), &more));
        }
    }
    if !is_colocated {
        feed.insert(0, ("strategies", count.to_string()));
        let mut md = role("md", "md", md_wait, pins("md"), &feed);
        md.arguments.extend(parameters.has_md_threads.then(|| "--md-threads".to_owned()));
        programs.push(md);
    }
    programs
}

/// Arguments of md about its quotes.
fn quotes(parameters: &PipelineParameters, options: &PipelineOptions) -> Vec<(&'static str, String)> {
    match (&options.feed, &options.ticks, &options.scenario) {
        (Some(feed), _, _) => {
            let mut arguments =
                vec![("feed", feed.clone()), ("duration-s", parameters.duration_s.to_string())];
            arguments.extend(options.feed_interface.clone().map(|interface| ("feed-interface", interface)));
            arguments.extend(options.feed_buffer_bytes.map(|bytes| ("feed-buffer", bytes.to_string())));
            arguments
        }
        (None, Some(ticks), _) => vec![("ticks", ticks.file.clone()), ("speed", ticks.speed.clone())],
        (None, None, Some(scenario)) => vec![("scenario", scenario.clone())],
        (None, None, None) => vec![
            ("rate-per-s", parameters.rate_per_s.to_string()),
            ("duration-s", parameters.duration_s.to_string()),
        ],
    }
}

/// True if a process with this name is auxiliary: its end costs no figure of the run.
pub fn is_beside(name: &str) -> bool {
    [RECORDER, CACHED].contains(&name) || name.starts_with(FOLLOWER)
}

/// The process of a strategy that its host (`host`) moves out. It sleeps, because it has no dedicated CPU, and
/// runs where the kernel puts it.
pub fn moved_out(host: &Program, number: u32) -> Program {
    let mut arguments = Vec::new();
    let mut words = host.arguments.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "host" => arguments.push("strategy".to_owned()),
            "--strategies" => _ = words.next(),
            "--wait" => {
                words.next();
                arguments.extend(["--wait", "parked"].map(str::to_owned));
            }
            _ => arguments.push(word.clone()),
        }
    }
    arguments.extend(["--instrument".to_owned(), number.to_string()]);
    Program {
        name: format!("s{number}"),
        role: "strategies".to_owned(),
        arguments,
        cpus: Vec::new(),
        ..host.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowlat_pipeline::{RecordedTicks, check::spinning};
    use std::collections::BTreeMap;

    fn parameters(mode: Mode, host_core: Option<u32>) -> PipelineParameters {
        let pins = BTreeMap::from([("md".to_owned(), vec![1]), ("strategies".to_owned(), vec![2, 3])]);
        PipelineParameters {
            strategies: 3,
            rate_per_s: 0.5,
            mode,
            duration_s: 2.0,
            pins,
            host_core,
            may_use_huge_pages: false,
            has_md_threads: false,
            strategy_cost_ns: 0,
        }
    }

    #[test]
    fn readers_start_before_writers_and_cpus_are_used_in_turn() {
        let programs =
            programs(&parameters(Mode::Mixed, None), &PipelineOptions::default(), Path::new("lowlat"));
        let told: Vec<_> =
            programs.iter().map(|program| (program.name.as_str(), program.cpus.as_slice())).collect();
        let expected: [(&str, &[u32]); 5] =
            [("td", &[]), ("s0", &[2]), ("s1", &[3]), ("s2", &[2]), ("md", &[1])];
        assert_eq!(told, expected);
        let md = programs[4].arguments.join(" ");
        assert_eq!(
            md,
            "pipeline role md --master {master} --wait fast --strategies 3 --rate-per-s 0.5 --duration-s 2"
        );
        assert!(programs[0].arguments.join(" ").contains("--wait parked --strategies 3"));
        assert!(programs[1].arguments.join(" ").contains("--wait parked --instrument 0 --overrun gap"));
    }

    #[test]
    fn a_recorder_starts_first_on_its_cpu() {
        let mut parameters = parameters(Mode::Parked, None);
        parameters.pins.insert(RECORDER.to_owned(), vec![5]);
        let options = PipelineOptions { recording: Some("/tmp/monday".to_owned()), ..Default::default() };
        let programs = programs(&parameters, &options, Path::new("lowlat"));
        assert_eq!((programs[0].name.as_str(), programs[0].cpus.as_slice()), (RECORDER, [5].as_slice()));
        assert_eq!(
            programs[0].arguments.join(" "),
            "journal record --run {master} --out /tmp/monday --name recorder"
        );
        assert_eq!(programs[1].name, "td");
    }

    #[test]
    fn options_become_processes_and_arguments() {
        let mut parameters = parameters(Mode::Fast, Some(1));
        parameters.pins = BTreeMap::from([(PipelineParameters::PLATFORM.to_owned(), vec![0])]);
        let options = PipelineOptions {
            cached_store: Some("state.sqlite".to_owned()),
            overrun: QuoteOverrun::Conflate,
            wake_core: Some(3),
            price_deviation_max_per_mille: Some(50),
            ..PipelineOptions::default()
        };
        let programs = programs(&parameters, &options, Path::new("lowlat"));
        let told: Vec<_> =
            programs.iter().map(|program| (program.name.as_str(), program.role.as_str())).collect();
        assert_eq!(told, [("cached", "cached"), ("td", "platform"), ("host", "host")]);
        let said = |at: usize| programs[at].arguments.join(" ");
        assert!(said(0).ends_with("--store state.sqlite --strategies 3"));
        assert!(
            said(1).contains("--price-deviation 50 --rate-per-s 0.5") && said(1).ends_with("--wake-core 3")
        );
        assert!(said(2).ends_with("--overrun conflate") && programs[1].cpus == [0]);
        // The checks before a run judge exactly these processes.
        let fast = programs.iter().filter(|program| program.arguments.join(" ").contains("--wait fast"));
        assert_eq!(u32::try_from(fast.count()).unwrap(), spinning(&parameters));
    }

    #[test]
    fn the_report_s_platform_has_followers_and_threads() {
        let parameters = PipelineParameters {
            has_md_threads: true,
            strategy_cost_ns: 20_000,
            ..parameters(Mode::PlatformFast, None)
        };
        let options = PipelineOptions {
            followers: 2,
            scenario: Some("/tmp/a11.json".to_owned()),
            ..PipelineOptions::default()
        };
        let programs = programs(&parameters, &options, Path::new("lowlat"));
        let names: Vec<_> = programs.iter().map(|program| program.name.as_str()).collect();
        assert_eq!(names, ["follower0", "follower1", "td", "s0", "s1", "s2", "md"]);
        assert!(is_beside("follower1") && !is_beside("td"));
        let said = |at: usize| programs[at].arguments.join(" ");
        assert_eq!(said(1), "pipeline role follower --master {master} --wait parked --instrument 1");
        assert!(said(2).contains("--wait fast") && said(3).contains("--wait parked"));
        assert!(said(3).ends_with("--overrun gap --strategy-cost-ns 20000"), "{}", said(3));
        assert!(said(6).ends_with("--wait fast --strategies 3 --scenario /tmp/a11.json --md-threads"));
    }

    #[test]
    fn md_publishes_recorded_ticks_in_place_of_a_rate() {
        let ticks = RecordedTicks { file: "/tmp/monday.csv".to_owned(), speed: "x2".to_owned() };
        let channel = Some("1A@239.1.1.1:5000".to_owned());
        let options = PipelineOptions { ticks: Some(ticks), channel, ..PipelineOptions::default() };
        let programs = programs(&parameters(Mode::Parked, None), &options, Path::new("lowlat"));
        let md = programs.last().unwrap().arguments.join(" ");
        assert!(
            md.ends_with("--strategies 3 --ticks /tmp/monday.csv --speed x2 --channel 1A@239.1.1.1:5000"),
            "{md}"
        );
    }

    #[test]
    fn md_reads_a_feed_and_td_sends_to_an_exchange() {
        let options = PipelineOptions {
            feed: Some("udp:239.1.1.1:5000".to_owned()),
            feed_interface: Some("eth1".to_owned()),
            gateway: Some("tcp:10.0.0.1:5001".to_owned()),
            quotes_per_order: Some(100),
            ..PipelineOptions::default()
        };
        let programs = programs(&parameters(Mode::Parked, None), &options, Path::new("lowlat"));
        let said = |at: usize| programs[at].arguments.join(" ");
        assert!(said(0).ends_with("--strategies 3 --gateway tcp:10.0.0.1:5001"), "{}", said(0));
        assert!(said(1).ends_with("--quotes-per-order 100"), "{}", said(1));
        let md = "--strategies 3 --feed udp:239.1.1.1:5000 --duration-s 2 --feed-interface eth1";
        assert!(said(4).ends_with(md), "{}", said(4));
    }

    #[test]
    fn a_host_replaces_the_strategies_and_spins() {
        let programs =
            programs(&parameters(Mode::Parked, Some(7)), &PipelineOptions::default(), Path::new("lowlat"));
        let names: Vec<_> = programs.iter().map(|program| program.name.as_str()).collect();
        assert_eq!(names, ["td", "host", "md"]);
        assert_eq!(programs[1].cpus, [7]);
        let out = moved_out(&programs[1], 2);
        assert_eq!((out.name.as_str(), out.role.as_str(), out.cpus.len()), ("s2", "strategies", 0));
        let said = out.arguments.join(" ");
        assert_eq!(
            said,
            "pipeline role strategy --master {master} --wait parked --overrun gap --instrument 2"
        );
        // The checks before a run judge exactly these processes.
        for (mode, host) in
            [Mode::Fast, Mode::Mixed, Mode::Parked].map(|mode| [(mode, None), (mode, Some(1))]).concat()
        {
            let parameters = parameters(mode, host);
            let started = super::programs(&parameters, &PipelineOptions::default(), Path::new("lowlat"));
            let fast = started.iter().filter(|program| program.arguments.join(" ").contains("--wait fast"));
            assert_eq!(u32::try_from(fast.count()).unwrap(), spinning(&parameters), "{mode:?} {host:?}");
        }
    }
}
