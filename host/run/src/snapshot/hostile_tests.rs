//! The readers return whatever the files contain.

use crate::Root;
use lowlat_catalogue::CATALOGUE;
use proptest::{collection::vec, prelude::*};
use std::collections::BTreeMap;

/// Files of a host that lead the readers to more files: CPUs, nodes, an interface, a disk, interrupts, kernel
/// threads.
const SEEDS: &[(&str, &str)] = &[
    (
        "/proc/cpuinfo",
        "processor\t: 0\nvendor_id\t: GenuineIntel\nflags\t: fpu hypervisor\nmicrocode : 0x1\n",
    ),
    ("/proc/meminfo", "MemTotal:  2048 kB\nMemAvailable: 1 kB\nHugepagesize: 2048 kB\n"),
    ("/proc/stat", "cpu  1\ncpu0 1 2 3 4 5 6 7 8 9 10\n"),
    ("/proc/swaps", "Filename Type Size Used Priority\n/dev/sda1 partition 8 4 -2\n"),
    (
        "/proc/interrupts",
        "           CPU0       CPU1\n  24:          1          2  PCI-MSI 1-edge  eth0-rx-0\nNMI: 1 2 Non-maskable\n",
    ),
    ("/proc/softirqs", "                    CPU0       CPU1\n          HI:          0          1\n"),
    (
        "/proc/2/stat",
        "2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 3 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n",
    ),
    ("/proc/2/status", "Name: kthreadd\nCpus_allowed: 3\nCpus_allowed_list: 0-1\n"),
    ("/proc/irq/24/smp_affinity", "3\n"),
    ("/proc/sys/kernel/osrelease", "6.1.0-28-amd64\n"),
    ("/sys/devices/system/cpu/online", "0-1\n"),
    ("/sys/devices/system/cpu/cpu0/topology/core_cpus", "1\n"),
    ("/sys/devices/system/cpu/cpu1/topology/core_cpus", "2\n"),
    ("/sys/devices/system/cpu/cpu1/online", "1\n"),
    ("/sys/devices/system/cpu/cpu0/cache/index2/type", "Unified\n"),
    ("/sys/devices/system/cpu/cpu0/cache/index2/level", "2\n"),
    ("/sys/devices/system/cpu/cpu0/cpuidle/state1/name", "C1\n"),
    ("/sys/devices/system/cpu/cpufreq/policy0/affected_cpus", "0\n"),
    ("/sys/devices/system/cpu/vulnerabilities/meltdown", "Not affected\n"),
    ("/sys/devices/system/node/node0/cpumap", "3\n"),
    ("/sys/devices/system/node/node0/distance", "10\n"),
    ("/sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages", "1\n"),
    ("/sys/devices/virtual/memory_tiering/memory_tier4/nodelist", "0\n"),
    ("/sys/devices/cpu_core/cpus", "0\n"),
    ("/sys/devices/cpu_atom/cpus", "1\n"),
    ("/sys/class/dmi/id/sys_vendor", "QEMU\n"),
    ("/sys/class/net/eth0/device/vendor", "0x1924\n"),
    ("/sys/class/net/eth0/queues/rx-0/rps_cpus", "3\n"),
    ("/sys/class/net/eth0/address", "52:54:00:12:34:56\n"),
    ("/sys/block/sda/size", "4096\n"),
    ("/sys/bus/workqueue/devices/writeback/cpumask", "3\n"),
    ("/sys/fs/cgroup/cgroup.controllers", "cpuset cpu\n"),
    ("/etc/sysctl.d/99-x.conf", "kernel.numa_balancing = 0\n"),
    ("/etc/tuned/active_profile", "network-latency\n"),
];

/// Rounds in which the requested files are created, so that the readers continue from them.
const ROUNDS: usize = 3;

/// Every file that the readers open on such a host, with its content or a plausible number.
fn files_asked_for() -> BTreeMap<String, Vec<u8>> {
    let mut files: BTreeMap<String, Vec<u8>> =
        SEEDS.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec())).collect();
    for _ in 0..ROUNDS {
        let root = Root::in_memory("asked", files.clone());
        root.start_recording();
        super::read(&root, CATALOGUE);
        for path in root.take_recording().asked {
            let below = format!("{path}/");
            let is_folder =
                files.range(below.clone()..).next().is_some_and(|(next, _)| next.starts_with(&below));
            let is_below_a_file = path.match_indices('/').any(|(at, _)| files.contains_key(&path[..at]));
            if !is_folder && !is_below_a_file {
                files.entry(path).or_insert_with(|| b"1\n".to_vec());
            }
        }
    }
    files
}

/// A modification of one file.
#[derive(Debug, Clone)]
enum Harm {
    Keep,
    Remove,
    Cut(prop::sample::Index),
    Replace(Vec<u8>),
    Append(Vec<u8>),
    Flip(prop::sample::Index, u8),
}

impl Harm {
    fn apply(&self, mut bytes: Vec<u8>) -> Option<Vec<u8>> {
        match self {
            Self::Remove => return None,
            Self::Cut(at) => bytes.truncate(at.index(bytes.len() + 1)),
            Self::Replace(junk) => bytes.clone_from(junk),
            Self::Append(junk) => bytes.extend(junk),
            Self::Flip(at, with) if !bytes.is_empty() => {
                let at = at.index(bytes.len());
                bytes[at] ^= with;
            }
            Self::Keep | Self::Flip(..) => {}
        }
        Some(bytes)
    }
}

fn any_junk() -> impl Strategy<Value = Vec<u8>> {
    let words = "([0-9a-fA-Fx,:. \n\t-]{0,40}|-1|99999999999999999999|0-65535|0-4294967295|[^\\x00]{0,20}|)";
    prop_oneof![vec(any::<u8>(), 0..40), words.prop_map(String::into_bytes)]
}

fn any_harm() -> impl Strategy<Value = Harm> {
    prop_oneof![
        3 => Just(Harm::Keep),
        1 => Just(Harm::Remove),
        2 => any::<prop::sample::Index>().prop_map(Harm::Cut),
        3 => any_junk().prop_map(Harm::Replace),
        2 => any_junk().prop_map(Harm::Append),
        2 => (any::<prop::sample::Index>(), any::<u8>()).prop_map(|(at, with)| Harm::Flip(at, with)),
    ]
}

#[test]
fn the_files_asked_for_are_those_of_every_reader() {
    let files = files_asked_for();
    for path in [
        "/proc/cmdline",
        "/proc/sys/kernel/tainted",
        "/sys/devices/system/cpu/cpu1/topology/die_cpus",
        "/sys/devices/system/cpu/cpufreq/policy0/scaling_governor",
        "/sys/kernel/mm/ksm/run",
        "/sys/firmware/dmi/tables/smbios_entry_point",
        "/.lowlat/interface/cpuid/hypervisor",
    ] {
        assert!(files.contains_key(path), "{path}");
    }
}

#[test]
fn no_bytes_in_any_file_make_a_reader_panic() {
    let files = files_asked_for();
    let harms = vec(any_harm(), files.len());
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        cases: 48,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    runner
        .run(&harms, |harms| {
            let harmed = files
                .iter()
                .zip(harms)
                .filter_map(|((path, bytes), harm)| Some((path.clone(), harm.apply(bytes.clone())?)));
            let host = super::read(&Root::in_memory("harmed", harmed), CATALOGUE);
            prop_assert!(host.topology.cores.iter().all(|core| core.cpus.is_subset(&host.topology.online)));
            Ok(())
        })
        .unwrap();
}
