//! Pairs of hosts, from captures: a well set one, and the same with one harmful change. Both differ in about thirty
//! settings that took no time in either run.

use super::runs::Hit;
use lowlat_catalogue::{CATALOGUE, testing::Bench, testing::list};
use lowlat_host::{Allocation, CpuSet, Profile, Reading, Role, cmdline::CommandLine, snapshot::IdleState};
use lowlat_host_run::{Root, snapshot};
use lowlat_jitter::CauseKind::{CallFunction, Hrtimer, Irq, Nmi, PageFault, Softirq, Thread, Vector, Work};
use std::path::Path;

/// A host, and what interrupts its isolated CPUs beyond the background.
pub struct Twin {
    pub bench: Bench,
    pub causes: Vec<Hit>,
    pub seed: u64,
}

/// Two hosts, and the setting that makes one of them worse.
pub struct Pair {
    pub harmful: &'static str,
    pub good: Twin,
    pub bad: Twin,
}

/// The setting, what changes on the host, and what interrupts isolated CPUs from then on.
type Harm = (&'static str, fn(Bench) -> Bench, &'static [Hit]);

const CAPTURES: [&str; 3] = ["epyc-7f32-2x8", "smt-2s", "xeon6-e-2x4-modules"];

#[rustfmt::skip]
const HARMS: &[Harm] = &[
    ("boot.nohz_full", no_tickless, &[
        (Hrtimer, "tick_nohz_handler", 250.0, 2_400), (Softirq, "sched", 3.0, 1_900), (Vector, "irq work", 0.5, 900),
    ]),
    ("irq.irqbalance_banned", balanced, &[(Irq, "eth0-3", 40.0, 3_600), (Softirq, "net_rx", 38.0, 5_200)]),
    ("sysctl.vm.stat_interval", |b| b.sysctl("vm.stat_interval", "1"), &[
        (Work, "vmstat_update", 1.0, 2_900), (Thread, "kworker/{cpu}:1", 1.0, 5_300),
    ]),
    ("sysfs.cpufreq.governor", |b| governed(b, "schedutil"), &[(Thread, "sugov:{cpu}", 12.0, 7_000)]),
    ("sysfs.cpuidle.deep_states", deep_idle, &[]),
    ("sysctl.kernel.numa_balancing", |b| b.sysctl("kernel.numa_balancing", "1"), &[
        (PageFault, "", 60.0, 1_700), (CallFunction, "flush_tlb_func", 8.0, 2_000),
    ]),
    ("sysctl.kernel.watchdog_cpumask", watched, &[
        (Hrtimer, "watchdog_timer_fn", 0.25, 3_800), (Thread, "migration/{cpu}", 0.25, 6_100),
    ]),
    ("sysctl.kernel.nmi_watchdog", |b| b.sysctl("kernel.nmi_watchdog", "1"), &[(Nmi, "", 0.2, 5_000)]),
    ("memory.thp_enabled", huge, &[(CallFunction, "flush_tlb_func", 6.0, 2_100), (Thread, "khugepaged", 0.1, 400_000)]),
    ("kthread.workqueue.global", queued, &[(Thread, "kworker/u64:3", 2.0, 9_000)]),
    ("memory.ksm", merged, &[(Thread, "ksmd", 50.0, 90_000), (CallFunction, "flush_tlb_func", 4.0, 2_300)]),
    ("boot.isolcpus", no_isolation, &[
        (Thread, "java", 3.0, 240_000), (Softirq, "sched", 20.0, 2_500), (CallFunction, "sched_ttwu_pending", 5.0, 1_400),
    ]),
];

const WORKQUEUES: &str = "/sys/devices/virtual/workqueue/cpumask";

/// Every pair, over the captured hosts in turn. The run of each host has its own seed.
pub fn pairs(profile: Profile) -> Vec<Pair> {
    let pair = |(at, (harmful, change, causes)): (usize, &Harm)| {
        let capture = CAPTURES[at % CAPTURES.len()];
        let seed = at as u64 * 2 + 11;
        let good = Twin { bench: alike(well_set(capture, profile)), causes: Vec::new(), seed };
        let bench = different(change(well_set(capture, profile)));
        Pair { harmful, good, bad: Twin { bench, causes: causes.to_vec(), seed: seed + 1 } }
    };
    HARMS.iter().enumerate().map(pair).collect()
}

/// A captured host with good values of the settings that the harms change.
fn well_set(capture: &str, profile: Profile) -> Bench {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../fixtures/hosts/{capture}.tar.gz"));
    let host = snapshot::read(&Root::open(&path).unwrap(), CATALOGUE);
    let role = Role { profile, ..Role::default() };
    let allocation = Allocation::choose(&host, &role);
    let (isolated, housekeeping) = (allocation.isolated.clone(), allocation.housekeeping.clone());
    let line = format!(
        "quiet isolcpus=managed_irq,domain,{isolated} nohz_full={isolated} rcu_nocbs={isolated} irqaffinity={housekeeping}"
    );
    let bench = Bench { host, role, allocation, profile }.kernel(6, 12).line(&line).with(|bench| {
        let host = &mut bench.host;
        host.topology.nohz_full = Reading::Known(isolated.clone());
        host.topology.isolated = Reading::Known(isolated);
        host.memory.thp_enabled = Reading::Known("madvise".into());
        host.memory.ksm_run = Reading::Known(0);
        host.cpu.idle_driver = Reading::Known("intel_idle".into());
        let states = [idle("POLL", true, bench), idle("C1", true, bench), idle("C6", false, bench)];
        bench.host.cpu.idle_states = states.to_vec();
        bench.host.interrupts.irqs.clear();
        bench.host.tasks.workqueue_cpus = Reading::Known(housekeeping.clone());
    });
    let to = bench.allocation.housekeeping.to_list();
    let mask = bench.allocation.housekeeping.to_mask();
    governed(bench, "performance")
        .irq(31, "eth0-0", &to, Reading::Known(false))
        .irq(34, "eth0-3", &to, Reading::Known(false))
        .unit("irqbalance.service", "inactive")
        .sysctl("vm.stat_interval", "3600")
        .sysctl("kernel.numa_balancing", "0")
        .sysctl("kernel.watchdog", "0")
        .sysctl("kernel.watchdog_cpumask", &to)
        .sysctl("kernel.nmi_watchdog", "0")
        .knob(WORKQUEUES, &mask)
        .knob("/sys/kernel/mm/ksm/run", "0")
        .knob("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never")
}

fn idle(name: &str, is_enabled: bool, bench: &Bench) -> IdleState {
    let cpus = bench.host.topology.online.clone();
    let cpus_enabled = if is_enabled { cpus.clone() } else { bench.allocation.housekeeping.clone() };
    IdleState { name: name.into(), exit_latency_us: Reading::Known(1), cpus, cpus_enabled }
}

fn governed(bench: Bench, governor: &str) -> Bench {
    let cpus = bench.host.topology.online.to_list();
    bench
        .with(|bench| bench.host.cpu.frequency.clear())
        .policy(&cpus, "acpi-cpufreq", Reading::Known(governor.to_owned()))
        .with(|bench| {
            let files = bench.host.files.iter_mut();
            for (_, text) in files.filter(|(path, _)| path.ends_with("scaling_governor")) {
                *text = Reading::Known(governor.to_owned());
            }
        })
}

fn no_tickless(bench: Bench) -> Bench {
    let line = without(&bench, "nohz_full");
    bench.line(&line).with(|bench| bench.host.topology.nohz_full = Reading::Known(CpuSet::new()))
}

fn no_isolation(bench: Bench) -> Bench {
    let line = without(&bench, "isolcpus");
    bench.line(&line).with(|bench| bench.host.topology.isolated = Reading::Known(CpuSet::new()))
}

/// irqbalance runs, and the interrupts are where it put them.
fn balanced(bench: Bench) -> Bench {
    let to = bench.allocation.isolated.to_list();
    bench.unit("irqbalance.service", "active").with(|bench| {
        for irq in &mut bench.host.interrupts.irqs {
            (irq.affinity, irq.effective_affinity) = (Reading::Known(list(&to)), Reading::Known(list(&to)));
        }
    })
}

fn deep_idle(bench: Bench) -> Bench {
    bench.with(|bench| {
        for state in &mut bench.host.cpu.idle_states {
            state.cpus_enabled = state.cpus.clone();
        }
    })
}

fn watched(bench: Bench) -> Bench {
    let all = bench.host.topology.online.to_list();
    bench.sysctl("kernel.watchdog", "1").sysctl("kernel.watchdog_cpumask", &all)
}

fn huge(bench: Bench) -> Bench {
    bench
        .knob("/sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never")
        .with(|bench| bench.host.memory.thp_enabled = Reading::Known("always".into()))
}

fn merged(bench: Bench) -> Bench {
    bench.knob("/sys/kernel/mm/ksm/run", "1").with(|bench| bench.host.memory.ksm_run = Reading::Known(1))
}

fn queued(bench: Bench) -> Bench {
    let (mask, all) = (bench.host.topology.online.to_mask(), bench.host.topology.online.clone());
    bench.knob(WORKQUEUES, &mask).with(|bench| bench.host.tasks.workqueue_cpus = Reading::Known(all))
}

/// Sysctls, each with the values of the two twins.
const SYSCTLS: &[(&str, &str, &str)] = &[
    ("vm.swappiness", "10", "60"),
    ("vm.dirty_ratio", "10", "40"),
    ("vm.dirty_background_ratio", "3", "15"),
    ("vm.zone_reclaim_mode", "0", "1"),
    ("vm.compaction_proactiveness", "0", "20"),
    ("kernel.printk", "4\t4\t1\t7", "7 4 1 7"),
    ("kernel.hung_task_timeout_secs", "600", "120"),
    ("kernel.watchdog_thresh", "60", "10"),
    ("kernel.core_pattern", "core", "|/usr/lib/systemd/systemd-coredump %P"),
    ("net.core.busy_read", "50", "0"),
    ("net.core.busy_poll", "50", "0"),
    ("net.core.rmem_max", "16777216", "212992"),
    ("net.ipv4.conf.all.rp_filter", "0", "2"),
    ("net.ipv4.tcp_slow_start_after_idle", "0", "1"),
    ("net.ipv4.tcp_autocorking", "0", "1"),
    ("net.ipv4.igmp_max_memberships", "256", "20"),
    ("kernel.sched_rt_runtime_us", "-1", "950000"),
];

/// Boot parameters that only one of the twins has.
const PARAMETERS: &str = "psi=0 skew_tick=1 rcu_nocb_poll rcupdate.rcu_normal_after_boot=1";

/// Units and whether they run; the other twin has the opposite.
const UNITS: &[(&str, &str)] = &[
    ("avahi-daemon.service", "active"),
    ("bluetooth.service", "active"),
    ("dnsmasq.service", "active"),
    ("kdump.service", "inactive"),
    ("libstoragemgmt.service", "active"),
    ("lvm2-monitor.service", "active"),
    ("mdmonitor.service", "active"),
    ("ModemManager.service", "active"),
    ("postfix.service", "active"),
    ("rhnsd.service", "active"),
    ("rhsmcertd.service", "active"),
    ("rpcbind.service", "active"),
    ("rpcbind.socket", "active"),
    ("virtlogd.socket", "active"),
    ("wpa_supplicant.service", "active"),
    ("mcelog.service", "active"),
    ("iprdump.service", "active"),
    ("firewalld.service", "active"),
    ("fstrim.timer", "active"),
    ("apt-daily.timer", "active"),
];

/// The settings in which every pair differs and that took no time: some better, some worse, some neither.
fn different(bench: Bench) -> Bench {
    let bench = SYSCTLS.iter().fold(bench, |bench, (key, _, value)| bench.sysctl(key, value));
    UNITS.iter().fold(bench, |bench, (unit, active)| bench.unit(unit, active))
}

/// The same settings with the other values.
fn alike(bench: Bench) -> Bench {
    let bench = SYSCTLS.iter().fold(bench, |bench, (key, value, _)| bench.sysctl(key, value));
    let other = |active: &str| if active == "active" { "inactive" } else { "active" };
    let bench = UNITS.iter().fold(bench, |bench, (unit, active)| bench.unit(unit, other(active)));
    let line = bench.host.kernel.command_line.known().map(CommandLine::raw).unwrap_or_default();
    let line = format!("{line} {PARAMETERS}");
    bench.line(&line)
}

/// The command line without a parameter.
fn without(bench: &Bench, parameter: &str) -> String {
    let line = bench.host.kernel.command_line.known().map(CommandLine::raw).unwrap_or_default();
    let kept = line.split(' ').filter(|word| !word.starts_with(&format!("{parameter}=")));
    kept.collect::<Vec<_>>().join(" ")
}
