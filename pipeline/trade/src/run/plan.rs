//! Processes of a run: pure.

use crate::{master::Program, roles::follower};
use lowlat_node::Wait;
use lowlat_pipeline::{Mode, PipelineOptions, PipelineParameters, PipelineRequest, ProcessRole};
use std::path::{Path, PathBuf};

/// Stands for the master's socket as an argument, and in the environment.
pub const MASTER: &str = "{master}";
/// Stands for the run folder in the store's path: that file is removed with the folder.
pub const FOLDER: &str = "{folder}";
/// Name and role of the recording process.
pub const RECORDER: &str = ProcessRole::Recorder.name();
/// Role of programs of the user, which the run starts too.
pub const OWN: &str = "own";
/// Maximum restarts of a process of a run within a minute.
const RESTARTS_PER_MINUTE_MAX: u32 = 3;

/// The processes of a run in starting order: readers before the writers whose records they read. `program` is
/// `lowlat` itself. `own` are strategies of the user, which share the CPUs of strategies.
pub fn programs(request: &PipelineRequest, program: &Path, own: &[Program]) -> Vec<Program> {
    let PipelineRequest { parameters, options } = request;
    let run = serde_json::to_string(request).unwrap_or_default();
    let pins = |role: ProcessRole| parameters.pins.get(&role).cloned().unwrap_or_default();
    let start = |role: ProcessRole, name: &str, cpus: Vec<u32>| Program {
        name: name.to_owned(),
        role: role.to_string(),
        program: program.to_owned(),
        arguments: ["pipeline-role", role.name(), "--master", MASTER, "--run", &run]
            .map(str::to_owned)
            .to_vec(),
        environment: Vec::new(),
        cpus,
        restarts_max: RESTARTS_PER_MINUTE_MAX,
        backs_off: false,
    };
    let one = |role: ProcessRole| start(role, role.name(), pins(role));
    let numbered = |role: ProcessRole, number: u32, name: &str, cpus: Vec<u32>| {
        let mut program = start(role, name, cpus);
        program.arguments.extend(["--number".to_owned(), number.to_string()]);
        program
    };
    let mut programs = Vec::new();
    if let Some(folder) = &options.recording {
        // First to join and last to be stopped: it reads every record of the run.
        let arguments = ["journal", "record", "--run", MASTER, "--out", folder, "--name", RECORDER];
        let clock = options.replay.iter().flat_map(|replay| ["--clock-of", &replay.folder]);
        let arguments = arguments.into_iter().chain(clock).map(str::to_owned);
        let arguments = arguments.chain(options.recorder_arguments.iter().cloned()).collect();
        programs.push(Program { arguments, ..one(ProcessRole::Recorder) });
    }
    if options.cached_store.is_some() {
        programs.push(one(ProcessRole::Cached));
    }
    for number in 0..options.followers {
        programs.push(numbered(ProcessRole::Follower, number, &follower::name(number), Vec::new()));
    }
    let is_colocated = parameters.pins.contains_key(&ProcessRole::Platform);
    let td = if is_colocated { ProcessRole::Platform } else { ProcessRole::Td };
    // The platform ends like td, when the master stops it; its md leaves the master before.
    programs.push(Program { name: "td".to_owned(), ..one(td) });
    if let Some(cpu) = parameters.host_core {
        programs.push(start(ProcessRole::Host, ProcessRole::Host.name(), vec![cpu]));
    }
    // The CPUs in turn, one per process.
    let cpus = pins(ProcessRole::Strategies);
    let mut cpus = cpus.iter().cycle().map(|cpu| vec![*cpu]);
    let mut next_cpu = || cpus.next().unwrap_or_default();
    for number in 0..if parameters.host_core.is_some() { 0 } else { parameters.strategies } {
        programs.push(numbered(ProcessRole::Strategies, number, &format!("s{number}"), next_cpu()));
    }
    programs.extend(own.iter().map(|own| Program { cpus: next_cpu(), ..own.clone() }));
    if !is_colocated {
        programs.push(one(ProcessRole::Md));
    }
    programs
}

/// File of cached's state in the run of this master.
pub fn store_in(options: &PipelineOptions, socket: &Path) -> Option<PathBuf> {
    let folder = socket.parent().unwrap_or(socket).display().to_string();
    options.cached_store.as_ref().map(|store| store.replace(FOLDER, &folder).into())
}

/// How a process waits in a run.
pub fn wait(role: ProcessRole, parameters: &PipelineParameters) -> Wait {
    use ProcessRole::{Md, Platform, Strategies, Td};
    match role {
        _ if role.spins(parameters) => Wait::Fast,
        // It was moved out of its host, and has no dedicated CPU.
        Strategies if parameters.host_core.is_some() => Wait::Parked,
        Md | Td | Platform | Strategies if parameters.mode == Mode::Adaptive => Wait::Adaptive,
        _ => Wait::Parked,
    }
}

/// True if a process with this name is auxiliary: its end costs no figure of the run.
pub fn is_beside(name: &str) -> bool {
    [RECORDER, ProcessRole::Cached.name()].contains(&name) || name.starts_with(ProcessRole::Follower.name())
}

/// The process of a strategy that its host (`host`) moves out. It runs where the kernel puts it.
pub fn moved_out(host: &Program, number: u32) -> Program {
    let strategies = ProcessRole::Strategies.name();
    let as_strategy = |word: &String| if word == &host.role { strategies.to_owned() } else { word.clone() };
    let numbered = ["--number".to_owned(), number.to_string()];
    Program {
        name: format!("s{number}"),
        role: strategies.to_owned(),
        arguments: host.arguments.iter().map(as_strategy).chain(numbered).collect(),
        cpus: Vec::new(),
        ..host.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowlat_pipeline::{RecordedTicks, check::spinning};

    fn request(mode: Mode, host_core: Option<u32>) -> PipelineRequest {
        let pins = [(ProcessRole::Md, vec![1]), (ProcessRole::Strategies, vec![2, 3])].into();
        let parameters = PipelineParameters {
            strategies: 3,
            rate_per_s: 0.5,
            mode,
            duration_s: 2.0,
            pins,
            host_core,
            may_use_huge_pages: false,
            has_md_threads: false,
            strategy_cost_ns: 0,
        };
        PipelineRequest { parameters, options: PipelineOptions::default() }
    }

    fn of(request: &PipelineRequest) -> Vec<Program> {
        programs(request, Path::new("lowlat"), &[])
    }

    fn names(programs: &[Program]) -> Vec<&str> {
        programs.iter().map(|program| program.name.as_str()).collect()
    }

    #[test]
    fn readers_start_before_writers_and_cpus_are_used_in_turn() {
        let programs = of(&request(Mode::Mixed, None));
        let told: Vec<_> =
            programs.iter().map(|program| (program.name.as_str(), program.cpus.as_slice())).collect();
        let expected: [(&str, &[u32]); 5] =
            [("td", &[]), ("s0", &[2]), ("s1", &[3]), ("s2", &[2]), ("md", &[1])];
        assert_eq!(told, expected);
    }

    #[test]
    fn strategies_of_the_user_follow_on_the_next_cpus() {
        let own = ["maker", "taker"].map(|name| Program { name: name.to_owned(), ..Program::default() });
        let programs = programs(&request(Mode::Mixed, None), Path::new("lowlat"), &own);
        assert_eq!(names(&programs), ["td", "s0", "s1", "s2", "maker", "taker", "md"]);
        assert_eq!(
            (programs[4].cpus.as_slice(), programs[5].cpus.as_slice()),
            ([3].as_slice(), [2].as_slice())
        );
    }

    #[test]
    fn a_request_arrives_at_every_process_as_it_was_made() {
        let mut request = request(Mode::Mixed, None);
        request.options = PipelineOptions {
            cached_store: Some("state \"of\" {master}.sqlite".to_owned()),
            wake_core: Some(3),
            ticks: Some(RecordedTicks { file: "/tmp/monday.csv".to_owned(), speed: "x2".to_owned() }),
            symbols: vec!["AAPL".to_owned(), "MSFT".to_owned()],
            ..PipelineOptions::default()
        };
        let programs = of(&request);
        assert_eq!(names(&programs), ["cached", "td", "s0", "s1", "s2", "md"]);
        for program in programs {
            let words: Vec<&str> = program.arguments.iter().map(String::as_str).collect();
            let role = program.role.as_str();
            assert_eq!(words[..5], ["pipeline-role", role, "--master", MASTER, "--run"]);
            assert_eq!(serde_json::from_str::<PipelineRequest>(words[5]).unwrap(), request);
            let number = program.name.strip_prefix('s').map(|number| vec!["--number", number]);
            assert_eq!(words[6..], number.unwrap_or_default());
        }
    }

    #[test]
    fn a_recorder_starts_first_on_its_cpu() {
        let mut request = request(Mode::Parked, None);
        request.parameters.pins.insert(ProcessRole::Recorder, vec![5]);
        request.options.recording = Some("/tmp/monday".to_owned());
        request.options.recorder_arguments = vec!["--roll".to_owned(), "1h".to_owned()];
        let programs = of(&request);
        assert_eq!((programs[0].name.as_str(), programs[0].cpus.as_slice()), (RECORDER, [5].as_slice()));
        assert_eq!(
            programs[0].arguments.join(" "),
            "journal record --run {master} --out /tmp/monday --name recorder --roll 1h"
        );
        assert_eq!(programs[1].name, "td");
    }

    #[test]
    fn the_platform_takes_the_place_of_md_and_td() {
        let mut request = request(Mode::Fast, Some(1));
        request.parameters.pins = [(ProcessRole::Platform, vec![0])].into();
        let programs = of(&request);
        let told: Vec<_> =
            programs.iter().map(|program| (program.name.as_str(), program.role.as_str())).collect();
        assert_eq!(told, [("td", "platform"), ("host", "host")]);
        assert_eq!((&programs[0].cpus[..], &programs[1].cpus[..]), (&[0][..], &[1][..]));
    }

    #[test]
    fn the_report_s_platform_has_followers() {
        let mut request = request(Mode::PlatformFast, None);
        request.options.followers = 2;
        let programs = of(&request);
        assert_eq!(names(&programs), ["follower0", "follower1", "td", "s0", "s1", "s2", "md"]);
        assert!(programs[1].arguments.ends_with(&["--number".to_owned(), "1".to_owned()]));
        assert!(is_beside("follower1") && !is_beside("td"));
    }

    #[test]
    fn a_store_may_be_in_the_run_folder() {
        let of = |store: &str| {
            let options =
                PipelineOptions { cached_store: Some(store.to_owned()), ..PipelineOptions::default() };
            store_in(&options, Path::new("/run/lowlat/a/master.sock"))
        };
        assert_eq!(of("{folder}/cached.sqlite").unwrap(), Path::new("/run/lowlat/a/cached.sqlite"));
        assert_eq!(of("/var/state").unwrap(), Path::new("/var/state"));
    }

    #[test]
    fn a_moved_out_strategy_sleeps() {
        let request = request(Mode::Fast, Some(7));
        let programs = of(&request);
        assert_eq!(names(&programs), ["td", "host", "md"]);
        let out = moved_out(&programs[1], 2);
        assert_eq!((out.name.as_str(), out.role.as_str(), out.cpus.len()), ("s2", "strategies", 0));
        assert_eq!(out.arguments[..2], ["pipeline-role", "strategies"]);
        assert_eq!(out.arguments[6..], ["--number", "2"]);
        assert_eq!(wait(ProcessRole::Strategies, &request.parameters), Wait::Parked);
    }

    /// The checks before a run judge exactly the processes that are started.
    #[test]
    fn processes_that_spin_are_those_that_the_checks_count() {
        for mode in Mode::WORDS.map(|(_, mode)| mode) {
            for (host, has_md_threads) in [(None, false), (Some(1), false), (None, true)] {
                let mut request = request(mode, host);
                request.parameters.has_md_threads = has_md_threads;
                let roles = [ProcessRole::Md, ProcessRole::Td, ProcessRole::Host, ProcessRole::Strategies];
                let spins = |program: &&Program| {
                    let role = roles.into_iter().find(|role| role.name() == program.role).unwrap();
                    wait(role, &request.parameters) == Wait::Fast
                };
                let fast = of(&request).iter().filter(spins).count();
                assert_eq!(u32::try_from(fast).unwrap(), spinning(&request.parameters), "{mode:?} {host:?}");
            }
        }
        let adaptive = request(Mode::Adaptive, None).parameters;
        let waits = [ProcessRole::Md, ProcessRole::Td, ProcessRole::Strategies, ProcessRole::Cached];
        assert_eq!(
            waits.map(|role| wait(role, &adaptive)),
            [Wait::Adaptive, Wait::Adaptive, Wait::Adaptive, Wait::Parked]
        );
    }
}
