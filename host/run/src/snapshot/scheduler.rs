//! Reads the scheduler's domains, its balancing by cache, and a loaded BPF scheduler.

use crate::Root;
use lowlat_host::{
    CpuId, CpuSet, Reading,
    snapshot::{NamedDomain, SchedDomain, SchedulerFacts},
};
use std::collections::{BTreeMap, BTreeSet};

const SCHEDSTAT: &str = "/proc/schedstat";
const DOMAINS: &str = "/sys/kernel/debug/sched/domains";
const LLC_BALANCING: &str = "/sys/kernel/debug/sched/llc_balancing";
const EXT: &str = "/sys/kernel/sched_ext";
/// First version of /proc/schedstat with the names of domains.
const VERSION_WITH_NAMES: u32 = 17;

pub(super) fn read(root: &Root) -> SchedulerFacts {
    let schedstat = root.read(SCHEDSTAT);
    let version = schedstat.clone().parse(SCHEDSTAT, "a line such as \"version 17\"", version);
    let domains = match version.known() {
        Some(version) => {
            schedstat.parse(SCHEDSTAT, "lines of domains with CPU masks", |text| domains(text, *version))
        }
        None => version.clone().map(|_| Vec::new()),
    };
    SchedulerFacts {
        schedstat_version: version,
        domains,
        named_domains: named_domains(root),
        llc_balancing: files(root, LLC_BALANCING),
        ext_state: root.read(&format!("{EXT}/state")).map(|text| text.trim().to_owned()),
        ext_scheduler: root.read(&format!("{EXT}/root/ops")).map(|text| text.trim().to_owned()),
    }
}

fn version(text: &str) -> Option<u32> {
    text.lines().next()?.strip_prefix("version ")?.trim().parse().ok()
}

/// Lines such as "domain0 CLS 0000000f 0 0 …", below the line of their CPU; the name is missing in old versions
/// (Documentation/scheduler/sched-stats.rst).
fn domains(text: &str, version: u32) -> Option<Vec<SchedDomain>> {
    let mut found = BTreeSet::new();
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        let Some(level) = words.next().and_then(|word| word.strip_prefix("domain")) else { continue };
        let level = level.parse().ok()?;
        let name = if version >= VERSION_WITH_NAMES { Some(words.next()?.to_owned()) } else { None };
        let cpus = CpuSet::parse_mask(words.next()?).ok()?;
        found.insert(SchedDomain { level, name, cpus });
    }
    Some(found.into_iter().collect())
}

/// Reads `name` and `flags` of each `cpuN/domainM`.
fn named_domains(root: &Root) -> Reading<Vec<NamedDomain>> {
    root.list(DOMAINS).map(|names| {
        let mut levels: BTreeMap<(u32, String), NamedDomain> = BTreeMap::new();
        for (cpu, folder) in numbered(names, DOMAINS, "cpu") {
            let of_cpu = root.list(&folder).into_known().unwrap_or_default();
            for (level, folder) in numbered(of_cpu, &folder, "domain") {
                let Reading::Known(name) = root.read(&format!("{folder}/name")) else { continue };
                let name = name.trim().to_owned();
                let domain = levels.entry((level, name.clone())).or_insert_with(|| NamedDomain {
                    level,
                    name,
                    flags: root
                        .read(&format!("{folder}/flags"))
                        .map(|text| text.split_ascii_whitespace().map(str::to_owned).collect()),
                    cpus: CpuSet::new(),
                });
                domain.cpus.insert(cpu);
            }
        }
        levels.into_values().collect()
    })
}

/// Folders such as "cpu3" with their number.
fn numbered(names: Vec<String>, folder: &str, prefix: &str) -> Vec<(CpuId, String)> {
    let number =
        |name: &str| name.strip_prefix(prefix)?.parse().ok().filter(|n| *n <= lowlat_host::CPU_ID_MAX);
    names.into_iter().filter_map(|name| Some((number(&name)?, format!("{folder}/{name}")))).collect()
}

fn files(root: &Root, folder: &str) -> Reading<BTreeMap<String, Reading<String>>> {
    root.list(folder).map(|names| {
        let value = |name: &String| root.read(&format!("{folder}/{name}")).map(|text| text.trim().to_owned());
        names.into_iter().map(|name| (name.clone(), value(&name))).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestTree;

    fn set(list: &str) -> CpuSet {
        CpuSet::parse_list(list).unwrap()
    }

    #[test]
    fn domains_are_read_once_each_with_names_from_version_17() {
        let text = "version 17\ntimestamp 4295\ncpu0 0 0 0\ndomain0 CLS 0f 0 0\ndomain1 PKG ff 0\ncpu1 0\n\
                    domain0 CLS 0f 1 1\ndomain1 PKG ff 1\ncpu4 0\ndomain0 CLS f0 0\ndomain1 PKG ff 0\n";
        let facts = read(&TestTree::of(&[(SCHEDSTAT, text)]).root());
        let domains = facts.domains.into_known().unwrap();
        let shown: Vec<(u32, Option<&str>, String)> =
            domains.iter().map(|d| (d.level, d.name.as_deref(), d.cpus.to_list())).collect();
        let expected = [
            (0, Some("CLS"), "0-3".to_owned()),
            (0, Some("CLS"), "4-7".into()),
            (1, Some("PKG"), "0-7".into()),
        ];
        assert_eq!(shown, expected);
        assert_eq!(facts.schedstat_version, Reading::Known(17));
    }

    #[test]
    fn old_versions_have_spans_without_names() {
        let text = "version 15\ncpu0 0\ndomain0 00000000,00000003 0 0\n";
        let facts = read(&TestTree::of(&[(SCHEDSTAT, text)]).root());
        let expected = SchedDomain { level: 0, name: None, cpus: set("0-1") };
        assert_eq!(facts.domains, Reading::Known(vec![expected]));
    }

    #[test]
    fn absent_and_unparsable_are_kept_apart() {
        let none = read(&TestTree::new().root());
        assert!(none.domains.is_absent() && none.named_domains.is_absent() && none.ext_state.is_absent());
        assert_eq!(none.loaded_ext(), None);
        for text in ["", "hello", "version x", "version 17\ndomain0 CLS zz\n", "version 17\ndomain0\n"] {
            let facts = read(&TestTree::of(&[(SCHEDSTAT, text)]).root());
            assert!(matches!(facts.domains, Reading::Unparsable(_)), "{text}: {facts:?}");
        }
    }

    #[test]
    fn debugfs_and_sched_ext_are_read() {
        let domain = |cpu: u32, file: &str| format!("{DOMAINS}/cpu{cpu}/domain0/{file}");
        let tree = TestTree::of(&[
            (&domain(0, "name"), "CLS\n"),
            (&domain(0, "flags"), "SD_BALANCE_NEWIDLE SD_CLUSTER \n"),
            (&domain(1, "name"), "CLS\n"),
            (&format!("{LLC_BALANCING}/enabled"), "1\n"),
            (&format!("{EXT}/state"), "enabled\n"),
            (&format!("{EXT}/root/ops"), "scx_rusty\n"),
        ]);
        let facts = read(&tree.root());
        let flags = ["SD_BALANCE_NEWIDLE", "SD_CLUSTER"].map(str::to_owned).to_vec();
        let expected =
            NamedDomain { level: 0, name: "CLS".into(), flags: Reading::Known(flags), cpus: set("0-1") };
        assert_eq!(facts.named_domains, Reading::Known(vec![expected]));
        assert_eq!(facts.llc_balancing.known().unwrap()["enabled"].text(), "1");
        assert_eq!(facts.loaded_ext(), Some("scx_rusty"));
    }
}
