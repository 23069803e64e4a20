//! Processes of a run: pure.

use crate::master::Program;
use lowlat_pipeline::{Mode, PipelineOptions, PipelineParameters, QuoteOverrun};
use std::path::Path;

/// Stands for the master's socket in arguments and environment.
pub const MASTER: &str = "{master}";
/// Name and role of the recording process.
pub const RECORDER: &str = "recorder";
/// Name and role of the process that keeps the latest state.
const CACHED: &str = "cached";
/// Maximum restarts of a process of a run within a minute.
const RESTARTS_PER_MINUTE_MAX: u32 = 3;

/// The processes of a run in starting order: readers before the writers whose records they read. `program` is
/// `lowlat` itself.
pub fn programs(parameters: &PipelineParameters, options: &PipelineOptions, program: &Path) -> Vec<Program> {
    let waits = waits_of(parameters.mode);
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
        programs.push(role(CACHED, CACHED, "parked", pins(CACHED), &[("store", store.clone())]));
    }
    let mut desk = vec![("strategies", count.to_string())];
    desk.extend(options.price_deviation_max_per_mille.map(|most| ("price-deviation", most.to_string())));
    let mut feed = match &options.ticks {
        Some(ticks) => vec![("ticks", ticks.file.clone()), ("speed", ticks.speed.clone())],
        None => vec![
            ("rate-per-s", parameters.rate_per_s.to_string()),
            ("duration-s", parameters.duration_s.to_string()),
        ],
    };
    feed.extend(options.wake_core.map(|cpu| ("wake-core", cpu.to_string())));
    let is_colocated = parameters.pins.contains_key(PipelineParameters::PLATFORM);
    if is_colocated {
        // It ends like td, when the master stops it; its md leaves the master before.
        desk.append(&mut feed);
        let cpus = pins(PipelineParameters::PLATFORM);
        programs.push(role(PipelineParameters::PLATFORM, "td", waits.md, cpus, &desk));
    } else {
        programs.push(role("td", "td", waits.td, pins("td"), &desk));
    }
    let overrun = match options.overrun {
        QuoteOverrun::Gap => "gap",
        QuoteOverrun::Conflate => "conflate",
    };
    if let Some(cpu) = parameters.host_core {
        let more = [("strategies", count.to_string()), ("overrun", overrun.to_owned())];
        programs.push(role("host", "host", "fast", vec![cpu], &more));
    } else {
        let cpus = pins("strategies");
        for number in 0..count {
            // The CPUs in turn, one per process.
            let turn = usize::try_from(number).unwrap_or(0).checked_rem(cpus.len());
            let cpu = turn.and_then(|turn| cpus.get(turn)).copied();
            let mut more = vec![("instrument", number.to_string()), ("overrun", overrun.to_owned())];
            more.extend(options.cached_store.clone().map(|store| ("store", store)));
            let name = format!("s{number}");
            programs.push(role("strategy", &name, waits.strategies, cpu.into_iter().collect(), &more));
        }
    }
    if !is_colocated {
        feed.insert(0, ("strategies", count.to_string()));
        programs.push(role("md", "md", waits.md, pins("md"), &feed));
    }
    programs
}

/// Whether a process with this name is auxiliary: its end costs no figure of the run.
pub fn is_beside(name: &str) -> bool {
    [RECORDER, CACHED].contains(&name)
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

/// Waiting modes of the processes.
struct Waits {
    md: &'static str,
    td: &'static str,
    strategies: &'static str,
}

fn waits_of(mode: Mode) -> Waits {
    let all = |word| Waits { md: word, td: word, strategies: word };
    match mode {
        Mode::Fast => all("fast"),
        Mode::Parked => all("parked"),
        Mode::Adaptive => all("adaptive"),
        Mode::Mixed => Waits { md: "fast", ..all("parked") },
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
        assert!(said(0).ends_with("--store state.sqlite"));
        assert!(
            said(1).contains("--price-deviation 50 --rate-per-s 0.5") && said(1).ends_with("--wake-core 3")
        );
        assert!(said(2).ends_with("--overrun conflate") && programs[1].cpus == [0]);
        // The checks before a run judge exactly these processes.
        let fast = programs.iter().filter(|program| program.arguments.join(" ").contains("--wait fast"));
        assert_eq!(u32::try_from(fast.count()).unwrap(), spinning(&parameters));
    }

    #[test]
    fn md_publishes_recorded_ticks_in_place_of_a_rate() {
        let ticks = RecordedTicks { file: "/tmp/monday.csv".to_owned(), speed: "x2".to_owned() };
        let options = PipelineOptions { ticks: Some(ticks), ..PipelineOptions::default() };
        let programs = programs(&parameters(Mode::Parked, None), &options, Path::new("lowlat"));
        let md = programs.last().unwrap().arguments.join(" ");
        assert!(md.ends_with("--strategies 3 --ticks /tmp/monday.csv --speed x2"), "{md}");
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
