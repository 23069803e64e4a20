//! Where the platform's processes go in the groups that pin them.

use lowlat_host::{CpuId, CpuSet};
use std::collections::BTreeMap;

/// CPUs of master, cached, md and td in the report.
const REPORT: [CpuId; 4] = [0, 1, 6, 8];
const ROLES: [&str; 4] = ["master", "cached", "md", "td"];

/// The platform's CPUs on a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlatformPins {
    /// By role, as [`super::super::PipelineParameters::pins`].
    pub pins: BTreeMap<String, Vec<CpuId>>,
    /// The CPU of a strategy host.
    pub host_core: CpuId,
    /// The platform's beside a strategy host, which nobody shares its CPU with.
    pub host_pins: BTreeMap<String, Vec<CpuId>>,
    /// How the report's CPUs were mapped to this host's, one sentence.
    pub how: String,
}

/// Maps the report's pins (master, cached, md and td on CPUs 0, 1, 6 and 8 of 12) to the CPUs that may be used. md and
/// td keep a CPU each as long as there are two; the others share where there are too few. Strategies are not pinned, as
/// in the report.
///
/// # Errors
/// Why pinning makes no sense here.
pub fn platform_pins(cpus: &CpuSet) -> Result<PlatformPins, String> {
    let all: Vec<CpuId> = cpus.iter().collect();
    let (chosen, host, how) = match all.as_slice() {
        [] | [_] => return Err("pinning changes nothing with one CPU".to_owned()),
        [a, b] => ([*a, *a, *a, *b], *b, "master, cached and md share one CPU, td has the other"),
        [a, b, c] => ([*a, *a, *b, *c], *c, "master and cached share one CPU, md and td have one each"),
        [a, b, c, d] => ([*a, *a, *c, *d], *b, "master and cached share one CPU, md and td have one each"),
        _ if all.len() > 8 && REPORT.iter().all(|cpu| cpus.contains(*cpu)) => {
            let free = all.iter().copied().rfind(|cpu| !REPORT.contains(cpu));
            (REPORT, free.unwrap_or_default(), "as in the report")
        }
        [first, second, .., host, md, td] => {
            ([*first, *second, *md, *td], *host, "master and cached on the first CPUs, md and td on the last")
        }
    };
    let pins_of = |cpus: [CpuId; 4]| -> BTreeMap<String, Vec<CpuId>> {
        ROLES.iter().zip(cpus).map(|(role, cpu)| ((*role).to_owned(), vec![cpu])).collect()
    };
    // A host that spins leaves its CPU to nobody: with fewer than four, the platform has what is left.
    let beside_host = match all.as_slice() {
        [a, _] => [*a; 4],
        [a, b, _] => [*a, *a, *a, *b],
        _ => chosen,
    };
    let [master, cached, md, td] = chosen;
    let how = format!(
        "Platform pins on {} CPUs: {how} (master {master}, cached {cached}, md {md}, td {td}; the report: 0, 1, 6 and \
         8 of 12).",
        all.len()
    );
    Ok(PlatformPins { pins: pins_of(chosen), host_core: host, host_pins: pins_of(beside_host), how })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(list: &str) -> Vec<CpuId> {
        let pins = platform_pins(&CpuSet::parse_list(list).unwrap()).unwrap();
        ROLES.iter().map(|role| pins.pins[*role][0]).chain([pins.host_core]).collect()
    }

    #[test]
    fn the_report_s_cpus_where_there_are_that_many() {
        assert_eq!(chosen("0-11"), [0, 1, 6, 8, 11]);
        assert_eq!(chosen("0-8"), [0, 1, 6, 8, 7]);
        assert_eq!(chosen("2-15"), [2, 3, 14, 15, 13], "0 and 1 may not be used");
    }

    #[test]
    fn md_and_td_keep_a_cpu_each_on_small_hosts() {
        assert_eq!(chosen("0-7"), [0, 1, 6, 7, 5]);
        assert_eq!(chosen("0-3"), [0, 0, 2, 3, 1]);
        assert_eq!(chosen("0-2"), [0, 0, 1, 2, 2]);
        assert_eq!(chosen("0-1"), [0, 0, 0, 1, 1]);
        for count in 2..16 {
            let pins = platform_pins(&CpuSet::first(count)).unwrap();
            let beside: Vec<&CpuId> = pins.host_pins.values().flatten().collect();
            assert!(beside.len() == ROLES.len() && !beside.contains(&&pins.host_core), "{pins:?}");
        }
        assert!(platform_pins(&CpuSet::of(0)).unwrap_err().contains("one CPU"));
        let how = platform_pins(&CpuSet::first(2)).unwrap().how;
        assert!(how.contains("Platform pins on 2 CPUs") && how.contains("md 0, td 1"), "{how}");
    }
}
