//! Resource use of processes, as counted by the kernel.

use crate::master::{Master, Use, private_bytes};
use lowlat_pipeline::ProcessUse;
use std::{collections::BTreeMap, fs};

/// All processes at one moment: role and counters by process id.
pub(super) type Uses = BTreeMap<u32, (String, Use)>;
/// Largest private memory of a process of each role, in bytes.
pub(super) type Private = BTreeMap<String, u64>;

/// Reads the memory of the running started processes.
pub(super) fn private(master: &Master) -> Private {
    let mut private = Private::new();
    for (_, role, pid) in master.processes() {
        if let Some(bytes) = private_bytes(pid) {
            let most = private.entry(role).or_default();
            *most = bytes.max(*most);
        }
    }
    private
}

/// Reads all of them: running and ended started processes, and this process as `master`.
pub(super) fn read(master: &Master) -> Uses {
    let mut processes = master.processes();
    processes.push(("master".to_owned(), "master".to_owned(), std::process::id()));
    let living = processes.into_iter().filter_map(|(_, role, pid)| Some((pid, (role, Use::of(pid)?))));
    // md has ended by the end of a run.
    master.ended_uses().into_iter().map(|(role, pid, used)| (pid, (role, used))).chain(living).collect()
}

/// Resource use between two moments, one row per role. A process that was started in between counts from its
/// start.
pub(super) fn between(before: &Uses, after: &Uses, private: &Private) -> Vec<ProcessUse> {
    let mut rows: BTreeMap<&str, ProcessUse> = BTreeMap::new();
    for (pid, (role, used)) in after {
        let used = used.since(before.get(pid).map_or_else(Use::default, |(_, before)| *before));
        let row = rows.entry(role).or_insert_with(|| ProcessUse {
            role: role.clone(),
            private_bytes_max: private.get(role).copied(),
            ..ProcessUse::default()
        });
        row.processes += 1;
        row.cpu_s += used.cpu_ns as f64 / 1e9;
        row.voluntary_switches += used.voluntary;
        row.involuntary_switches += used.involuntary;
        row.minor_faults += used.minor_faults;
        row.major_faults += used.major_faults;
    }
    rows.into_values().collect()
}

/// Time that all CPUs of the machine were idle since the boot, seconds, and how many CPUs those are; `None` if unknown.
pub(super) type Idle = Option<(f64, usize)>;

pub(super) fn machine_idle() -> Idle {
    idle_of(&fs::read_to_string("/proc/stat").ok()?)
}

/// Idle time of all CPUs: fields idle and iowait, which dynticks count by the clock, unlike those of busy time
/// (proc(5)).
fn idle_of(stat: &str) -> Idle {
    let fields = stat.lines().next()?.strip_prefix("cpu ")?.split_ascii_whitespace();
    let ticks: Option<u64> = fields.skip(3).take(2).map(|field| field.parse::<u64>().ok()).sum();
    let cpus = stat.lines().skip(1).take_while(|line| line.starts_with("cpu")).count();
    Some((ticks? as f64 / rustix::param::clock_ticks_per_second() as f64, cpus))
}

/// CPU time that others than these processes used during `elapsed_s`, seconds, including interrupts and a hypervisor.
pub(super) fn others_cpu_s([before, after]: [Idle; 2], elapsed_s: f64, own: &[ProcessUse]) -> Option<f64> {
    let ((before_s, cpus), (after_s, _)) = before.zip(after).filter(|((_, were), (_, are))| were == are)?;
    let own_s: f64 = own.iter().map(|used| used.cpu_s).sum();
    Some((elapsed_s * cpus as f64 - (after_s - before_s) - own_s).max(0.0))
}

/// Pages that the host moved to and from swap since its start (pswpin and pswpout of /proc/vmstat); `None` if
/// unknown.
pub(super) fn swapped_pages() -> Option<u64> {
    let text = fs::read_to_string("/proc/vmstat").ok()?;
    let count =
        |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
    Some(count("pswpin ")? + count("pswpout ")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_sums_the_use_of_its_processes() {
        let used = |cpu_ns, minor_faults| Use { cpu_ns, minor_faults, ..Use::default() };
        let of = |list: &[(u32, Use)]| -> Uses {
            list.iter().map(|(pid, used)| (*pid, ("td".to_owned(), *used))).collect()
        };
        // The second was started in between.
        let rows = between(
            &of(&[(1, used(100, 5))]),
            &of(&[(1, used(300, 6)), (2, used(50, 7))]),
            &[("td".to_owned(), 4096)].into(),
        );
        let row = rows.first().unwrap();
        assert_eq!((rows.len(), row.processes, row.minor_faults, row.role.as_str()), (1, 2, 8, "td"));
        assert!((row.cpu_s * 1e9 - 250.0).abs() < 1e-6 && row.private_bytes_max == Some(4096));
    }

    #[test]
    fn what_is_neither_idle_nor_own_was_taken_by_others() {
        let stat = |idle: u64| {
            format!(
                "cpu  10 0 10 {idle} 50 0 0 0 0 0\ncpu0 5 0 5 1 1 0 0 0 0 0\ncpu1 5 0 5 1 1 0 0 0 0 0\nintr 1 2\n"
            )
        };
        let hz = rustix::param::clock_ticks_per_second();
        let both = [0, 15 * hz].map(|idle| idle_of(&stat(idle)));
        let own = [ProcessUse { cpu_s: 2.0, ..ProcessUse::default() }];
        let others = others_cpu_s(both, 10.0, &own).unwrap();
        assert!((others - 3.0).abs() < 1e-9, "10 s of 2 CPUs, 15 idle, 2 own: {others}");
        assert_eq!(others_cpu_s(both, 8.0, &own), Some(0.0), "never below 0");
        assert_eq!(others_cpu_s([None, both[1]], 10.0, &own), None);
        assert_eq!(others_cpu_s([Some((0.0, 3)), both[1]], 10.0, &own), None, "a CPU went offline");
        for stat in ["", "cpu  1 2 3", "cpu  1 2 3 x 4", "intr 5"] {
            assert!(idle_of(stat).is_none_or(|(_, cpus)| cpus == 0), "{stat}");
        }
    }
}
