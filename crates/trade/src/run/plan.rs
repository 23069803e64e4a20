//! Which processes a run has: pure.

use crate::master::Program;
use lowlat_model::pipeline::{Mode, PipelineParameters};
use std::path::Path;

/// Stands for the master's socket in arguments and environment.
pub const MASTER: &str = "{master}";
/// How often a process of a run is started again within a minute.
const RESTARTS_PER_MINUTE_MAX: u32 = 3;

/// The processes of a run in the order in which they are started: readers before those whose records they read.
/// `program` is `lowlat` itself.
pub fn programs(parameters: &PipelineParameters, program: &Path) -> Vec<Program> {
    let (platform, strategies) = waits(parameters.mode);
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
    let mut programs = vec![role("td", "td", platform, pins("td"), &[("strategies", count.to_string())])];
    if let Some(cpu) = parameters.host_core {
        let more = [("strategies", count.to_string())];
        programs.push(role("host", "host", "fast", vec![cpu], &more));
    } else {
        let cpus = pins("strategies");
        for number in 0..count {
            // The CPUs in turn, one for each process.
            let turn = usize::try_from(number).unwrap_or(0).checked_rem(cpus.len());
            let cpu = turn.and_then(|turn| cpus.get(turn)).copied();
            let more = [("instrument", number.to_string())];
            let name = format!("s{number}");
            programs.push(role("strategy", &name, strategies, cpu.into_iter().collect(), &more));
        }
    }
    let more = [
        ("strategies", count.to_string()),
        ("rate-per-s", parameters.rate_per_s.to_string()),
        ("duration-s", parameters.duration_s.to_string()),
    ];
    programs.push(role("md", "md", platform, pins("md"), &more));
    programs
}

/// How md and td wait, and how strategies do.
fn waits(mode: Mode) -> (&'static str, &'static str) {
    match mode {
        Mode::Fast => ("fast", "fast"),
        Mode::Parked => ("parked", "parked"),
        Mode::Adaptive => ("adaptive", "adaptive"),
        Mode::Mixed => ("fast", "parked"),
    }
}

/// How many processes of a run never sleep.
pub fn spinners(parameters: &PipelineParameters) -> u32 {
    let strategies = match (parameters.host_core, parameters.mode) {
        (Some(_), _) => 1,
        (None, Mode::Fast) => parameters.strategies,
        (None, _) => 0,
    };
    strategies + if matches!(parameters.mode, Mode::Fast | Mode::Mixed) { 2 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
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
    fn readers_come_before_writers_and_cpus_in_turn() {
        let programs = programs(&parameters(Mode::Mixed, None), Path::new("lowlat"));
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
        assert!(programs[1].arguments.join(" ").contains("--wait parked --instrument 0"));
    }

    #[test]
    fn a_host_takes_the_place_of_the_strategies_and_spins() {
        let programs = programs(&parameters(Mode::Parked, Some(7)), Path::new("lowlat"));
        let names: Vec<_> = programs.iter().map(|program| program.name.as_str()).collect();
        assert_eq!(names, ["td", "host", "md"]);
        assert_eq!(programs[1].cpus, [7]);
        let count = |mode, host| spinners(&parameters(mode, host));
        assert_eq!([count(Mode::Fast, None), count(Mode::Mixed, None), count(Mode::Parked, None)], [5, 2, 0]);
        assert_eq!([count(Mode::Fast, Some(1)), count(Mode::Adaptive, Some(1))], [3, 1]);
    }
}
