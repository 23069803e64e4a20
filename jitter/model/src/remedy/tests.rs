//! A case for every rule, and the actions on different hosts.

use super::{rules::RULES, *};
use crate::{CauseStudy, SenderStudy};
use CauseKind::{
    CallFunction, EntryExit, FirmwareOrHypervisor, Held, Hrtimer, Irq, Nmi, NotTraced, PageFault, Signal,
    Softirq, Tasklet, Thread, Timer, Unexplained, Vector, Work,
};
use lowlat_catalogue::{
    CATALOGUE,
    testing::{Bench, list},
};
use lowlat_host::{
    Profile, Reading,
    snapshot::{CpusetPartition, Nic, QueueMask},
};

/// Kind, name, and the setting on a host of which only the CPUs are known. Names as printed by kernels 5.10
/// to 6.18.
const CASES: &[(CauseKind, &str, &str)] = &[
    (Nmi, "", "sysctl.kernel.nmi_watchdog"),
    (Irq, "arch_timer", "boot.nohz_full"),
    (Irq, "arm-pmu", "sysctl.kernel.nmi_watchdog"),
    (Irq, "eth0-TxRx-3", "irq.affinity"),
    (Irq, "nvme0q3", "irq.managed"),
    (Irq, "nvme0q0", "irq.affinity"),
    (Irq, "virtio1-req.0", "irq.managed"),
    (Irq, "virtio0-request", "irq.managed"),
    (Irq, "virtio1-requests", "irq.affinity"),
    (Vector, "local timer", "boot.nohz_full"),
    (Vector, "local timer (tick_nohz_handler)", "boot.nohz_full"),
    (Vector, "local timer (hrtimer_wakeup)", "boot.isolcpus"),
    (Vector, "local timer (perf_swevent_hrtimer)", ""),
    (Vector, "reschedule", "boot.isolcpus"),
    (Vector, "irq work", "boot.nohz_full"),
    (Vector, "thermal", "firmware.thermal_configuration"),
    (Vector, "hypervisor callback", "readiness.virtual_machine"),
    (Vector, "posted interrupt wake-up", "service.libvirt"),
    (Vector, "machine check", ""),
    (Vector, "threshold", ""),
    (Vector, "deferred error", ""),
    (Vector, "spurious APIC", "firmware.bios_version"),
    (Vector, "call function", "boot.rcupdate.rcu_normal_after_boot"),
    (Vector, "other IPI", "boot.rcupdate.rcu_normal_after_boot"),
    (Hrtimer, "tick_sched_timer", "boot.nohz_full"),
    (Hrtimer, "tick_nohz_highres_handler", "boot.nohz_full"),
    (Hrtimer, "tick_nohz_handler", "boot.nohz_full"),
    (Hrtimer, "hrtimer_wakeup", "boot.isolcpus"),
    (Hrtimer, "watchdog_timer_fn", "sysctl.kernel.watchdog_cpumask"),
    (Hrtimer, "timerfd_tmrproc", "boot.isolcpus"),
    (Hrtimer, "posix_timer_fn", "boot.isolcpus"),
    (Hrtimer, "dl_task_timer", ""),
    (Hrtimer, "sched_rt_period_timer", "sysctl.kernel.sched_rt_runtime_us"),
    (Hrtimer, "napi_watchdog", "nic.gro_flush_timeout"),
    (Hrtimer, "perf_mux_hrtimer_handler", ""),
    (Hrtimer, "rapl_hrtimer_handle", ""),
    (Hrtimer, "idle_inject_timer_fn", "firmware.thermal_configuration"),
    (Hrtimer, "apic_timer_fn", "service.libvirt"),
    (Hrtimer, "0xffffffff81234560", "boot.isolcpus"),
    (Timer, "function not known", "boot.isolcpus"),
    (Timer, "mce_timer_fn", "sysfs.machinecheck.check_interval"),
    (Timer, "clocksource_watchdog", "boot.tsc"),
    (Timer, "do_nocb_deferred_wakeup_timer", "boot.rcu_nocb_poll"),
    (Timer, "delayed_work_timer_fn", "boot.nohz_full"),
    (Timer, "process_timeout", "boot.isolcpus"),
    (Timer, "mix_interrupt_randomness", "irq.affinity"),
    (Timer, "tcp_orphan_update", "boot.isolcpus"),
    (CallFunction, "do_kernel_range_flush", ""),
    (CallFunction, "flush_tlb_func", ""),
    (CallFunction, "flush_tlb_func_remote", ""),
    (CallFunction, "do_flush_tlb_all", ""),
    (CallFunction, "tlb_remove_table_smp_sync", ""),
    (CallFunction, "ipi_mb", ""),
    (CallFunction, "do_sync_core", ""),
    (CallFunction, "rcu_exp_handler", "boot.rcupdate.rcu_normal_after_boot"),
    (CallFunction, "rcu_barrier_handler", "boot.rcu_nocbs"),
    (CallFunction, "sched_ttwu_pending", "boot.isolcpus"),
    (CallFunction, "nohz_csd_func", "boot.isolcpus"),
    (CallFunction, "__blk_mq_complete_request_remote", "boot.isolcpus"),
    (CallFunction, "retrigger_next_event", "service.clock_discipline"),
    (CallFunction, "clocksource_verify_one_cpu", "boot.tsc"),
    (CallFunction, "__rdmsr_safe_on_cpu", ""),
    (CallFunction, "remote_function", ""),
    (CallFunction, "invalidate_bh_lru", ""),
    (CallFunction, "do_nothing", ""),
    (Softirq, "TIMER", "boot.isolcpus"),
    (Softirq, "NET_RX", "irq.spread_nic_queues"),
    (Softirq, "NET_TX", "nic.xps"),
    (Softirq, "BLOCK", "boot.isolcpus"),
    (Softirq, "SCHED", "boot.isolcpus"),
    (Softirq, "HRTIMER", "boot.isolcpus"),
    (Softirq, "RCU", "boot.rcu_nocbs"),
    (Softirq, "TASKLET", "irq.affinity"),
    (Softirq, "HI", "irq.affinity"),
    (Tasklet, "tasklet_fn", "irq.affinity"),
    (Work, "vmstat_update", "sysctl.vm.stat_interval"),
    (Work, "lru_add_drain_per_cpu", "memory.thp_enabled"),
    (Work, "wb_workfn", "kthread.workqueue.writeback"),
    (Work, "wait_rcu_exp_gp", "boot.rcupdate.rcu_normal_after_boot"),
    (Work, "clocksource_watchdog_work", "boot.tsc"),
    (Work, "psi_avgs_work", "boot.isolcpus"),
    (Thread, "swapper/3", ""),
    (Thread, crate::attribution::IDLE_NAME, ""),
    (Thread, crate::attribution::ASLEEP_NAME, "sysfs.cpuidle.deep_states"),
    (Thread, "migration/3", "boot.isolcpus"),
    (Thread, "ksoftirqd/3", "irq.affinity"),
    (Thread, "cpuhp/3", "sysfs.cpu.online_cycle"),
    (Thread, "idle_inject/3", "firmware.thermal_configuration"),
    (Thread, "rcuc/3", "boot.rcu_nocbs"),
    (Thread, "rcuop/3", "kthread.rcu"),
    (Thread, "rcu_preempt", "kthread.rcu"),
    (Thread, "kworker/u16:2", "kthread.workqueue.global"),
    (Thread, "kworker/3:1H", "boot.isolcpus"),
    (Thread, "sugov:0", "sysfs.cpufreq.governor"),
    (Thread, "irq/47-eth0-TxRx", "irq.affinity"),
    (Thread, "kswapd0", "kthread.kswapd"),
    (Thread, "kcompactd0", "sysctl.vm.compaction_proactiveness"),
    (Thread, "khugepaged", "memory.thp_enabled"),
    (Thread, "ksmd", "memory.ksm"),
    (Thread, "CPU 0/KVM", "service.libvirt"),
    (Thread, "tokio-rt-worker", "boot.isolcpus"),
    (PageFault, "", ""),
    (Signal, "SIGALRM", ""),
    (Signal, "34", ""),
    (Signal, "SIGSTOP", ""),
    (Held, "stopped (SIGSTOP)", ""),
    (Held, "throttled (real-time limit)", "sysctl.kernel.sched_rt_runtime_us"),
    (Held, "throttled (CPU quota)", ""),
    (Held, "blocked in the kernel", ""),
    (FirmwareOrHypervisor, "", "firmware.dynamic_power_capping_functionality"),
    (Unexplained, "", "firmware.dynamic_power_capping_functionality"),
];

fn cause(kind: CauseKind, name: &str) -> Cause {
    Cause { kind, name: name.into(), ..Cause::default() }
}

fn numbered(kind: CauseKind, name: &str, number: i64) -> Cause {
    Cause { number: Some(number), ..cause(kind, name) }
}

trait Advice {
    fn remedy(&self, cause: &Cause, cpus: &str) -> Option<Remedy>;
    fn advises(&self, cause: &Cause, cpus: &str, setting: &str, pieces: &[&str]);
}

impl Advice for Bench {
    fn remedy(&self, cause: &Cause, cpus: &str) -> Option<Remedy> {
        let context = RemedyContext { host: &self.host, allocation: &self.allocation, role: &self.role };
        remedy(cause, &list(cpus), &context, &JitterStudy::default())
    }

    /// Asserts the setting, and that the action contains each piece of text.
    #[track_caller]
    fn advises(&self, cause: &Cause, cpus: &str, setting: &str, pieces: &[&str]) {
        let remedy = self.remedy(cause, cpus).unwrap();
        assert_eq!(remedy.setting, setting, "{}", remedy.action);
        for piece in pieces {
            assert!(remedy.action.contains(piece), "\"{piece}\" is not in \"{}\"", remedy.action);
        }
    }
}

/// A host of which only the CPUs are known.
fn unknown() -> Bench {
    Bench::of(Profile::Trading)
}

/// A host on which every remedy is in force.
fn tuned() -> Bench {
    Bench::trading()
        .line(
            "isolcpus=managed_irq,domain,1-7,9-15 nohz_full=1-7,9-15 rcu_nocbs=1-7,9-15 rcu_nocb_poll tsc=reliable",
        )
        .sysctl("kernel.nmi_watchdog", "0")
        .sysctl("kernel.timer_migration", "0")
        .sysctl("kernel.sched_rt_runtime_us", "-1")
        .sysctl("kernel.numa_balancing", "0")
        .sysctl("kernel.watchdog", "1")
        .sysctl("kernel.watchdog_cpumask", "0,8")
        .sysctl("vm.stat_interval", "3600")
        .sysctl("vm.compaction_proactiveness", "0")
        .knob("/sys/kernel/rcu_normal", "1")
        .knob("/sys/devices/system/machinecheck/machinecheck0/check_interval", "0")
        .with(|bench| {
            let isolated = bench.allocation.isolated.clone();
            for cpu in isolated.iter() {
                let path = format!("/sys/kernel/debug/sched/fair_server/cpu{cpu}/runtime");
                bench.host.files.insert(path, Reading::Known("0".into()));
            }
            bench.host.topology.isolated = Reading::Known(isolated.clone());
            bench.host.topology.nohz_full = Reading::Known(isolated);
            bench.host.tasks.workqueue_cpus = Reading::Known(list("0,8"));
            bench.host.memory.thp_enabled = Reading::Known("never".into());
            bench.host.memory.ksm_run = Reading::Known(0);
        })
}

/// A host as distributions ship it, with everything unfavourable.
fn stock() -> Bench {
    Bench::trading()
        .sysctl("kernel.nmi_watchdog", "1")
        .sysctl("kernel.timer_migration", "1")
        .sysctl("kernel.numa_balancing", "1")
        .sysctl("kernel.watchdog_cpumask", "0-15")
        .unit("irqbalance.service", "active")
        .with(|bench| {
            bench.host.topology.isolated = Reading::Known(CpuSet::new());
            bench.host.topology.nohz_full = Reading::Known(CpuSet::new());
            bench.host.tasks.workqueue_cpus = Reading::Known(list("0-15"));
        })
}

fn virtual_machine() -> Bench {
    unknown().with(|bench| bench.host.virtualization.is_virtual = Reading::Known(true))
}

/// A host without an allocation or facts.
fn nothing() -> Bench {
    unknown().with(|bench| {
        bench.allocation = Allocation::default();
        bench.host = HostSnapshot::default();
    })
}

#[test]
fn every_rule_has_a_case_and_the_first_that_fits_speaks() {
    let mut reached = vec![false; RULES.len()];
    for (kind, name, setting) in CASES {
        let cause = cause(*kind, name);
        let at = RULES
            .iter()
            .position(|rule| rule.fits(&behind(&cause, &CpuSet::new(), &JitterStudy::default())))
            .unwrap_or_else(|| panic!("no rule for {cause:?}"));
        reached[at] = true;
        let remedy = unknown().remedy(&cause, "3").unwrap();
        assert_eq!(remedy.setting, *setting, "{} -> {}", cause.label(), remedy.action);
    }
    for (rule, reached) in RULES.iter().zip(reached) {
        assert!(reached, "no case reaches {:?} {:?}", rule.kind, rule.names);
    }
}

#[test]
fn every_setting_is_in_the_catalogue_and_every_action_is_one_sentence() {
    for rule in RULES {
        assert!(rule.setting.is_empty() || CATALOGUE.find(rule.setting).is_some(), "{}", rule.setting);
        let lower = |pattern: &&str| pattern.chars().all(|c| !c.is_ascii_uppercase());
        assert!(rule.names.iter().all(lower), "names are compared in lower case: {:?}", rule.names);
    }
    let benches: [fn() -> Bench; 6] = [unknown, tuned, stock, virtual_machine, nothing, Bench::guide];
    for bench in benches {
        let bench = bench();
        for (kind, name, _) in CASES {
            for (cause, cpus) in
                [(cause(*kind, name), "3"), (numbered(*kind, name, 47), "1-3"), (cause(*kind, name), "0")]
            {
                let Remedy { setting, action } = bench.remedy(&cause, cpus).unwrap();
                assert!(setting.is_empty() || CATALOGUE.find(&setting).is_some(), "{setting}: {action}");
                let is_one = !action.contains(". ") && !action.ends_with('.') && !action.contains('\n');
                assert!(is_one && action.len() > 20 && !action.contains("  "), "{action}");
                assert!(!action.ends_with([':', ' ', ',']), "{action}");
            }
        }
    }
}

#[test]
fn what_nothing_removes_has_no_remedy() {
    for kind in [EntryExit, NotTraced] {
        assert_eq!(unknown().remedy(&cause(kind, ""), "3"), None);
    }
    let own = Cause { is_own: true, ..cause(Thread, "lowlat") };
    unknown().advises(&own, "3", "", &["lowlat's own work", "CPU 3"]);
}

#[test]
fn the_tick_knows_what_is_in_force() {
    let tick = cause(Hrtimer, "tick_nohz_handler");
    unknown().advises(&tick, "3", "boot.nohz_full", &["boot with nohz_full=1-7,9-15", "CPU 3"]);
    tuned().advises(
        &tick,
        "3",
        "boot.nohz_full",
        &["CPU 3 is in nohz_full already", "second runnable thread"],
    );
    tuned().advises(&tick, "3-4", "boot.nohz_full", &["CPUs 3-4 are in nohz_full already"]);
    tuned().line("nohz=off").advises(&tick, "3", "boot.nohz_full", &["nohz=off keeps the tick"]);
    unknown().config(&[]).advises(&tick, "3", "boot.nohz_full", &["built without CONFIG_NO_HZ_FULL"]);
    let served = tuned().knob("/sys/kernel/debug/sched/fair_server/cpu4/runtime", "50000000");
    served.advises(
        &tick,
        "3-4",
        "debugfs.sched.fair_server",
        &["echo 0 > /sys/kernel/debug/sched/fair_server/cpu4/runtime"],
    );
    let limited = tuned()
        .knob("/sys/kernel/debug/sched/fair_server/cpu4/runtime", "50000000")
        .sysctl("kernel.sched_rt_runtime_us", "950000");
    let lift = "sysctl -w kernel.sched_rt_runtime_us=-1 && echo 0 > /sys";
    limited.advises(&tick, "3-4", "debugfs.sched.fair_server", &[lift]);
    // A distribution added it to an older kernel.
    let older = served.kernel(6, 6);
    older.advises(&tick, "3-4", "debugfs.sched.fair_server", &["echo 0"]);
    let older = tuned().kernel(6, 6);
    older.advises(&tick, "3-4", "boot.nohz_full", &["already"]);
    let hpet = older.with(|bench| bench.host.cpu.clocksource = Reading::Known("hpet".into()));
    hpet.advises(&tick, "3", "sysfs.clocksource", &["hpet"]);
}

#[test]
fn housekeeping_cpus_keep_what_is_theirs() {
    for (kind, name) in
        [(Hrtimer, "tick_nohz_handler"), (Irq, "eth0"), (Softirq, "RCU"), (Thread, "kworker/u8:1")]
    {
        let action = stock().remedy(&cause(kind, name), "0,8").unwrap().action;
        let wanted =
            "CPUs 0,8 are housekeeping CPUs and the place for it: run trading threads on CPUs 1-7,9-15";
        assert_eq!(action, wanted);
    }
    // If isolated CPUs are affected as well, the advice is for them.
    let action = unknown().remedy(&cause(Hrtimer, "tick_nohz_handler"), "0,3").unwrap().action;
    assert!(action.contains("of CPU 3 while"), "{action}");
}

#[test]
fn interrupts_are_moved_unless_the_kernel_manages_them() {
    let bench = unknown().irq(36, "virtio0", "3", Reading::Known(false));
    let irq = numbered(Irq, "virtio0", 36);
    bench.advises(&irq, "3", "irq.affinity", &[]);
    let action = bench.remedy(&irq, "3").unwrap().action;
    assert_eq!(
        action,
        "move irq 36 virtio0 to housekeeping CPUs 0,8: echo 0,8 > /proc/irq/36/smp_affinity_list"
    );
    // The name identifies the number when causes of several CPUs were merged.
    bench.advises(&cause(Irq, "virtio0"), "3", "irq.affinity", &["/proc/irq/36/"]);
    bench.unit("irqbalance.service", "active").advises(&irq, "3", "irq.affinity", &["stop irqbalance"]);

    let moved = unknown().irq(36, "virtio0", "0", Reading::Known(false));
    moved.advises(&irq, "3", "irq.affinity", &["is CPU 0", "reached CPU 3"]);

    let queue = numbered(Irq, "nvme0q3", 47);
    let known = |is_managed| unknown().irq(47, "nvme0q3", "3", is_managed);
    known(Reading::Known(true)).advises(
        &queue,
        "3",
        "irq.managed",
        &["boot with isolcpus=managed_irq,domain,1-7,9-15"],
    );
    known(Reading::Denied).advises(&queue, "3", "irq.managed", &["probably"]);
    known(Reading::Known(false)).advises(&queue, "3", "irq.affinity", &["echo 0,8 > /proc/irq/47/"]);
    known(Reading::Known(true)).kernel(4, 18).advises(&queue, "3", "irq.managed", &["isolcpus=domain,1-7"]);
    let set = known(Reading::Known(true)).line("isolcpus=managed_irq,domain,1-7,9-15");
    set.advises(&queue, "3", "irq.managed", &["in force", "only for requests submitted there"]);

    let nic = unknown().irq(60, "eth0-rx-0", "3", Reading::Known(false)).with(|bench| {
        let eth0 = Nic { name: "eth0".into(), is_physical: true, irqs: vec![60], ..Nic::default() };
        bench.host.nics.push(eth0);
    });
    nic.advises(&numbered(Irq, "eth0-rx-0", 60), "3", "irq.spread_nic_queues", &["/proc/irq/60/"]);
    let steered = nic.with(|bench| {
        let mask = QueueMask { queue: "rx-0".into(), cpus: Reading::Known(list("2-3")) };
        bench.host.nics[0].rps.push(mask);
    });
    steered.advises(&cause(Softirq, "NET_RX"), "3", "nic.rps", &["/sys/class/net/eth0/queues/rx-0/rps_cpus"]);
}

#[test]
fn isolation_in_force_turns_to_who_is_left() {
    let wakeup = cause(Vector, "reschedule");
    stock().advises(&wakeup, "3", "boot.isolcpus", &["boot with isolcpus=managed_irq,domain,1-7,9-15"]);
    tuned().advises(&wakeup, "3", "boot.isolcpus", &["although CPU 3 is isolated", "own affinity"]);
    let partitioned = stock().with(|bench| {
        let part = CpusetPartition {
            group: "trading".into(),
            state: "isolated".into(),
            cpus: Reading::Known(list("1-7")),
        };
        bench.host.services.cpuset_partitions.push(part);
    });
    partitioned.advises(&wakeup, "3", "boot.isolcpus", &["although CPU 3 is isolated"]);
    partitioned.advises(&wakeup, "9", "boot.isolcpus", &["boot with"]);

    let thread = numbered(Thread, "chronyd", 812);
    stock().advises(&thread, "3", "boot.isolcpus", &["thread chronyd (pid 812) may run here"]);
    tuned().advises(&thread, "3", "sysfs.cpuset.partition", &["taskset -pc 0,8 812"]);
    let bound = tuned().thread("kthread_x", "3", (lowlat_host::snapshot::SchedPolicy::Other, 0), true);
    bound.advises(&numbered(Thread, "kthread_x", 2), "3", "", &["bound to its CPU"]);
}

#[test]
fn values_in_force_are_said_and_not_advised_again() {
    let cases = [
        (Nmi, "", "", "0 already"),
        (Hrtimer, "sched_rt_period_timer", "sysctl.kernel.sched_rt_runtime_us", "-1 already"),
        (Work, "vmstat_update", "sysctl.vm.stat_interval", "3600 s already"),
        (CallFunction, "rcu_exp_handler", "boot.rcupdate.rcu_normal_after_boot", "1 already"),
        (Vector, "call function", "", "requested a function to run here"),
        (Timer, "clocksource_watchdog", "boot.tsc", "tsc=reliable is on the command line already"),
        (Timer, "mce_timer_fn", "sysfs.machinecheck.check_interval", "0 already"),
        (Timer, "do_nocb_deferred_wakeup_timer", "", "in force already"),
        (Softirq, "RCU", "boot.rcu_nocbs", "offloaded already"),
        (Softirq, "TIMER", "", "armed by a system call or interrupt"),
        (Thread, "kworker/u8:1", "kthread.workqueue.global", "excludes CPU 3 already"),
        (Thread, "ksmd", "memory.ksm", "off already"),
        (Thread, "khugepaged", "memory.thp_enabled", "never already"),
        (Thread, "kcompactd0", "sysctl.vm.compaction_proactiveness", "0 already"),
        (Hrtimer, "watchdog_timer_fn", "sysctl.kernel.watchdog_cpumask", "excludes CPU 3"),
        (Timer, "delayed_work_timer_fn", "boot.nohz_full", "in nohz_full already"),
    ];
    for (kind, name, setting, piece) in cases {
        tuned().advises(&cause(kind, name), "3", setting, &[piece]);
    }
    stock().advises(
        &cause(Softirq, "TIMER"),
        "3",
        "sysctl.kernel.timer_migration",
        &["kernel.timer_migration=0"],
    );
    stock().advises(&cause(Thread, "migration/3"), "3", "sysctl.kernel.watchdog_cpumask", &["=0,8"]);
    stock().advises(&cause(CallFunction, "flush_tlb_func"), "3", "sysctl.kernel.numa_balancing", &["=0"]);
    stock().advises(&cause(PageFault, ""), "3", "sysctl.kernel.numa_balancing", &["=0"]);
    let patient = tuned().knob("/sys/module/rcutree/parameters/nohz_full_patience_delay", "0");
    patient.advises(&cause(Softirq, "RCU"), "3", "boot.rcutree.nohz_full_patience_delay", &["=1000"]);
    stock().config(&["NO_HZ_FULL"]).advises(
        &cause(Softirq, "RCU"),
        "3",
        "boot.rcu_nocbs",
        &["CONFIG_RCU_NOCB_CPU"],
    );
}

#[test]
fn firmware_and_hypervisor_are_distinguished() {
    virtual_machine().advises(&cause(FirmwareOrHypervisor, ""), "3", "readiness.steal", &["nothing inside"]);
    virtual_machine().advises(&cause(Unexplained, ""), "3", "readiness.virtual_machine", &["probably"]);
    let pcc = unknown().policy("0-15", "pcc-cpufreq", Reading::Known("performance".into()));
    pcc.advises(
        &cause(FirmwareOrHypervisor, ""),
        "3",
        "firmware.collaborative_power_control",
        &["pcc-cpufreq"],
    );
}

#[test]
fn a_signal_is_the_programs() {
    let alarm = numbered(Signal, "SIGALRM", 14);
    let pieces =
        ["the program's own signal", "block signal SIGALRM there", "housekeeping CPUs 0,8", "signalfd"];
    stock().advises(&alarm, "3", "", &pieces);
    stock().advises(&numbered(Signal, "SIGSTOP", 19), "3", "", &["signal SIGSTOP comes from", "debugger"]);
}

#[test]
fn names_from_the_host_are_cleaned() {
    let hostile = numbered(Thread, &format!("x\u{1b}[31m\n{}", "y".repeat(500)), 7);
    let action = stock().remedy(&hostile, "3").unwrap().action;
    assert!(!action.contains(['\u{1b}', '\n']) && action.len() < 300, "{action}");
}

/// Findings of a run on CPU 3.
fn run(causes: &[(Cause, u64)], senders: &[(&str, &str, &str)]) -> JitterStudy {
    let cause = |(cause, count): &(Cause, u64)| CauseStudy {
        cause: cause.clone(),
        cpus: list("3"),
        count: *count,
        ..CauseStudy::default()
    };
    let sender = |(who, what, action): &(&str, &str, &str)| SenderStudy {
        who: (*who).to_owned(),
        what: (*what).to_owned(),
        cpus: list("3"),
        remedy: Some(Remedy { setting: String::new(), action: format!("{who} {action}") }),
        is_known: true,
        ..SenderStudy::default()
    };
    JitterStudy {
        causes: causes.iter().map(cause).collect(),
        senders: senders.iter().map(sender).collect(),
        ..JitterStudy::default()
    }
}

#[test]
fn what_else_the_run_found_decides_the_remedy() {
    /// Cause, other causes, senders, setting, a piece of the action.
    type Case<'a> = (&'a Cause, Vec<(Cause, u64)>, Vec<(&'a str, &'a str, &'a str)>, &'a str, &'a str);
    let nic = unknown().with(|bench| {
        let eth0 = Nic { name: "eth0".into(), is_physical: true, irqs: vec![60, 61], ..Nic::default() };
        bench.host.nics.push(eth0);
    });
    let receive = cause(Softirq, "NET_RX");
    let irq = |number| numbered(Irq, "eth0-rx", number);
    let other_than_nics = numbered(Irq, "nvme0q3", 47);
    let timer = cause(Hrtimer, "dl_task_timer");
    let deadline = Cause { priority: Some("deadline".into()), ..numbered(Thread, "feed", 71) };
    let (call, cpuid) = (cause(Vector, "call function single"), cause(CallFunction, "cpuid_smp_cpuid"));
    let (stopper, worker) = (cause(Thread, "migration/3"), cause(Thread, "kworker/3:1"));
    let moved = ("pinner (pid 9)", "thread moved: sched_setaffinity", "moves a thread");
    let by_stopper = ("migration/0 (pid 18)", "thread moved", "moves a thread");
    let compacts = ("balloon (pid 8)", "compaction", "compacts memory");
    let drain = cause(Work, "lru_add_drain_per_cpu");
    let with = |cause: &Cause, others: &[(Cause, u64)]| [&[(cause.clone(), 1_000)], others].concat();
    let table: Vec<Case<'_>> = vec![
        (&receive, vec![], vec![], "", "no NIC interrupts CPU 3, so a thread there sends to this host"),
        (&receive, vec![(other_than_nics, 5_000)], vec![], "", "no NIC interrupts CPU 3"),
        (&receive, vec![(irq(60), 7)], vec![], "", "NICs interrupt CPU 3 7 times, and this runs 1000 times"),
        (&receive, vec![(irq(61), 600)], vec![], "irq.spread_nic_queues", "irq 61 of a NIC fires on CPU 3"),
        (
            &receive,
            vec![(irq(61), 600), (irq(60), 90)],
            vec![],
            "irq.spread_nic_queues",
            "2 interrupts of NICs fire on CPU 3: echo 0,8 > /proc/irq/61/smp_affinity_list",
        ),
        (
            &receive,
            vec![(cause(CallFunction, "rps_trigger_softirq"), 900)],
            vec![],
            "nic.rps",
            "another CPU steers packets here",
        ),
        (&call, vec![], vec![], "boot.rcupdate.rcu_normal_after_boot", "requested a function"),
        (&call, vec![(cpuid, 900)], vec![], "", "a tool on another CPU reads or writes this CPU's registers"),
        (&timer, vec![(deadline, 90)], vec![], "", "feed is SCHED_DEADLINE and runs on CPU 3"),
        (&stopper, vec![], vec![moved], "", "pinner (pid 9) moves a thread"),
        (&stopper, vec![], vec![compacts], "boot.isolcpus", "is bound to its CPU"),
        (&stopper, vec![], vec![by_stopper, moved], "", "pinner (pid 9) moves a thread"),
        (&worker, vec![(drain.clone(), 9)], vec![compacts], "", "balloon (pid 8) compacts memory"),
        (&worker, vec![], vec![compacts], "boot.isolcpus", "runs work that was queued on its CPU"),
        (&drain, vec![], vec![compacts], "", "balloon (pid 8) compacts memory"),
        (&drain, vec![], vec![moved], "memory.thp_enabled", "compaction drain"),
    ];
    for (cause, others, senders, setting, piece) in table {
        let study = run(&with(cause, &others), &senders);
        let context = RemedyContext { host: &nic.host, allocation: &nic.allocation, role: &nic.role };
        let remedy = remedy(cause, &list("3"), &context, &study).unwrap();
        assert!(
            remedy.setting == setting && remedy.action.contains(piece),
            "{cause:?} {others:?}: {remedy:?}"
        );
    }
}

#[test]
fn isolation_does_not_remove_a_thread_with_its_own_affinity() {
    let bench = stock();
    let thread = numbered(Thread, "feed", 71);
    let context = RemedyContext { host: &bench.host, allocation: &bench.allocation, role: &bench.role };
    for (allowed, setting) in
        [(None, "boot.isolcpus"), (Some("0-15"), "boot.isolcpus"), (Some("3"), "sysfs.cpuset.partition")]
    {
        let mut study = run(&[(thread.clone(), 9)], &[]);
        study.causes[0].allowed_cpus = allowed.map(list);
        let remedy = remedy(&thread, &list("3"), &context, &study).unwrap();
        assert_eq!(remedy.setting, setting, "{}", remedy.action);
    }
}

#[test]
fn every_name_is_a_setting_and_none_decides_itself() {
    let is_known = |id: &str| CATALOGUE.settings().any(|setting| setting.id == id);
    for (setting, origins) in ORIGINS {
        assert!(is_known(setting), "{setting}");
        for origin in *origins {
            assert!(is_known(origin) && origin != setting, "{origin} of {setting}");
        }
    }
}
