//! The table of remedies: one rule per line. The first one that matches a cause applies.
//!
//! Names are those of kernels 5.10 to 6.18. Sources: kernel Documentation/timers/no_hz.rst,
//! Documentation/admin-guide/kernel-per-CPU-kthreads.rst, Documentation/admin-guide/kernel-parameters.txt,
//! Documentation/core-api/irq/irq-affinity.rst, Documentation/core-api/workqueue.rst.

use super::case::Case;
use super::{Advice, Rule, calls, hardware, interrupts, isolation, memory, threads, ticks};
use crate::attribution::{ASLEEP_NAME, IDLE_NAME};
use crate::{
    CauseKind, CauseKind::CallFunction, CauseKind::FirmwareOrHypervisor, CauseKind::Held, CauseKind::Hrtimer,
    CauseKind::Irq, CauseKind::Nmi, CauseKind::PageFault, CauseKind::Signal, CauseKind::Softirq,
    CauseKind::Tasklet, CauseKind::Thread, CauseKind::Timer, CauseKind::Unexplained, CauseKind::Vector,
    CauseKind::Work,
};

type Act = fn(&Case<'_>) -> Advice;

/// A cause that belongs on housekeeping CPUs.
const fn placed(kind: CauseKind, names: &'static [&'static str], setting: &'static str, act: Act) -> Rule {
    Rule { kind, names, setting, belongs_to_housekeeping: true, act }
}

/// A cause that is unwanted on any CPU, or that no placement removes.
const fn anywhere(kind: CauseKind, names: &'static [&'static str], setting: &'static str, act: Act) -> Rule {
    Rule { kind, names, setting, belongs_to_housekeeping: false, act }
}

/// No setting of the host removes it; a program must change.
const PROGRAM: &str = "";

/// Functions of the tick: before 6.8, in 6.8, since 6.9.
const TICK: &[&str] =
    &["tick_sched_timer", "tick_nohz_highres_handler", "tick_nohz_handler", "tick_periodic"];
const MEMBARRIER: &[&str] = &["ipi_mb", "ipi_sync_core", "ipi_rseq", "ipi_sync_rq_state", "membarrier*"];
const REGISTERS: &[&str] = &["__rdmsr*", "__wrmsr*", "rdmsr*", "wrmsr*", "aperfmperf*", "*cpuid_smp*"];
const PERF: &[&str] = &["remote_function", "__perf_event*", "perf_*", "*_hrtimer_handle", "*perf_event*"];
const DRAINS: &[&str] =
    &["lru_add_drain_per_cpu", "drain_local_pages*", "drain_local_stock", "drain_*pages*"];
const WRITEBACK: &[&str] = &["wb_workfn", "wb_update_bandwidth_workfn", "inode_switch_wbs_work_fn"];
const RCU_THREADS: &[&str] = &["rcuo*", "rcu_*", "rcub/*", "srcu*", "rcu*"];
/// Signals that stop and resume a thread.
const STOPS: &[&str] = &["sigstop", "sigtstp", "sigttin", "sigttou", "sigcont"];
const SELF_BUILT_IPI: &[&str] = &["*call function*", "*ipi*", "*function call*"];

pub(super) const RULES: &[Rule] = &[
    // Non-maskable and device interrupts.
    anywhere(Nmi, &[], "sysctl.kernel.nmi_watchdog", calls::nmi),
    placed(Irq, &["arch_timer"], "boot.nohz_full", ticks::tick),
    anywhere(Irq, &["*-pmu", "*pmuv3*"], "sysctl.kernel.nmi_watchdog", calls::nmi),
    placed(Irq, &[], "irq.affinity", interrupts::device),
    // Interrupts of the processor itself.
    placed(Vector, &["*timer*"], "boot.nohz_full", ticks::tick),
    placed(Vector, &["*reschedul*"], "boot.isolcpus", isolation::reschedule),
    anywhere(Vector, &["irq work*", "irq_work*"], "boot.nohz_full", calls::irq_work),
    anywhere(Vector, &["*thermal*"], "firmware.thermal_configuration", hardware::thermal),
    anywhere(Vector, &["hypervisor*"], "readiness.virtual_machine", hardware::hypervisor),
    placed(Vector, &["*posted interrupt*"], "service.libvirt", threads::virtual_machine),
    anywhere(Vector, &["*threshold*", "*deferred*", "machine check*"], PROGRAM, hardware::corrected_errors),
    anywhere(Vector, &["*platform*", "*error*", "*spurious*"], "firmware.bios_version", hardware::stray),
    anywhere(Vector, SELF_BUILT_IPI, "boot.rcupdate.rcu_normal_after_boot", calls::call),
    // Functions of high-resolution timers.
    placed(Hrtimer, TICK, "boot.nohz_full", ticks::tick),
    placed(Hrtimer, &["hrtimer_wakeup"], "boot.isolcpus", ticks::sleeper),
    placed(Hrtimer, &["watchdog_timer_fn"], "sysctl.kernel.watchdog_cpumask", calls::soft_watchdog),
    placed(
        Hrtimer,
        &["timerfd_*", "it_real_fn", "posix_timer_fn", "alarmtimer_*"],
        "boot.isolcpus",
        ticks::process_timer,
    ),
    placed(
        Hrtimer,
        &["dl_task_timer", "inactive_task_timer", "dl_server_timer"],
        "debugfs.sched.fair_server",
        ticks::deadline_timer,
    ),
    anywhere(Hrtimer, &["sched_rt_period_timer"], "sysctl.kernel.sched_rt_runtime_us", ticks::throttle),
    placed(Hrtimer, &["napi_watchdog"], "nic.gro_flush_timeout", interrupts::napi_timer),
    anywhere(Hrtimer, PERF, PROGRAM, calls::perf),
    placed(Hrtimer, &["idle_inject_timer_fn"], "firmware.thermal_configuration", threads::idle_injection),
    placed(Hrtimer, &["apic_timer_fn", "kvm_*"], "service.libvirt", threads::virtual_machine),
    placed(Hrtimer, &[], "boot.isolcpus", isolation::other_timer),
    // Functions of the timer wheel.
    anywhere(Timer, &["mce_timer_fn"], "sysfs.machinecheck.check_interval", calls::machine_check),
    anywhere(Timer, &["clocksource_watchdog"], "boot.tsc", ticks::clock_watchdog),
    placed(Timer, &["do_nocb_deferred_wakeup_timer"], "boot.rcu_nocb_poll", ticks::rcu_wakeup),
    placed(Timer, &["delayed_work_timer_fn"], "boot.nohz_full", ticks::delayed_work),
    placed(Timer, &["process_timeout"], "boot.isolcpus", ticks::sleeper),
    placed(Timer, &["mix_interrupt_randomness"], "irq.affinity", interrupts::follows_device),
    placed(Timer, &[], "sysctl.kernel.timer_migration", ticks::kernel_timer),
    // Functions requested by another CPU.
    anywhere(CallFunction, &["*kernel_range_flush*", "kernel_tlb_flush*"], PROGRAM, memory::kernel_flush),
    anywhere(CallFunction, &["*flush_tlb*", "tlb_remove_table_*"], PROGRAM, memory::flush),
    anywhere(CallFunction, MEMBARRIER, PROGRAM, calls::membarrier),
    anywhere(CallFunction, &["do_sync_core", "*text_poke*", "*patch_text*"], PROGRAM, calls::code_patch),
    anywhere(CallFunction, &["rcu_exp_*"], "boot.rcupdate.rcu_normal_after_boot", ticks::rcu_expedited),
    placed(CallFunction, &["rcu_barrier*"], "boot.rcu_nocbs", ticks::rcu_callbacks),
    placed(CallFunction, &["sched_ttwu_pending"], "boot.isolcpus", calls::remote_wakeup),
    placed(CallFunction, &["nohz_csd_func"], "boot.isolcpus", isolation::balance),
    placed(CallFunction, &["*blk_mq_complete*"], "boot.isolcpus", isolation::block),
    anywhere(
        CallFunction,
        &["retrigger_next_event", "clock_was_set*"],
        "service.clock_discipline",
        calls::clock_step,
    ),
    anywhere(CallFunction, &["clocksource_verify*"], "boot.tsc", ticks::clock_watchdog),
    anywhere(CallFunction, REGISTERS, PROGRAM, calls::registers),
    anywhere(CallFunction, PERF, PROGRAM, calls::perf),
    anywhere(CallFunction, &["*invalidate_bh_lru*"], PROGRAM, calls::block_caches),
    anywhere(CallFunction, &[], PROGRAM, calls::other_function),
    // Softirqs and tasklets.
    placed(Softirq, &["timer"], "sysctl.kernel.timer_migration", ticks::kernel_timer),
    placed(Softirq, &["net_rx"], "irq.spread_nic_queues", interrupts::net_rx),
    placed(Softirq, &["net_tx"], "nic.xps", interrupts::net_tx),
    placed(Softirq, &["block"], "boot.isolcpus", isolation::block),
    placed(Softirq, &["sched"], "boot.isolcpus", isolation::balance),
    placed(Softirq, &["hrtimer"], "boot.isolcpus", isolation::other_timer),
    placed(Softirq, &["rcu"], "boot.rcu_nocbs", ticks::rcu_callbacks),
    placed(Softirq, &[], "irq.affinity", interrupts::follows_device),
    placed(Tasklet, &[], "irq.affinity", interrupts::follows_device),
    // Functions on workqueues.
    placed(Work, &["vmstat_*"], "sysctl.vm.stat_interval", memory::vmstat),
    anywhere(Work, DRAINS, "memory.thp_enabled", memory::drain),
    placed(Work, WRITEBACK, "kthread.workqueue.writeback", threads::unbound_worker),
    anywhere(
        Work,
        &["sync_rcu_exp*", "wait_rcu_exp*", "rcu_exp*"],
        "boot.rcupdate.rcu_normal_after_boot",
        ticks::rcu_expedited,
    ),
    anywhere(Work, &["clocksource_watchdog*"], "boot.tsc", ticks::clock_watchdog),
    placed(Work, &[], "boot.isolcpus", isolation::work),
    // Threads.
    anywhere(Thread, &["swapper*", IDLE_NAME], PROGRAM, ticks::idle),
    anywhere(Thread, &[ASLEEP_NAME], "sysfs.cpuidle.deep_states", ticks::asleep),
    placed(Thread, &["migration/*"], "boot.isolcpus", threads::migration),
    placed(Thread, &["ksoftirqd/*", "ktimers/*", "irq_work/*"], "irq.affinity", threads::ksoftirqd),
    anywhere(Thread, &["cpuhp/*"], "sysfs.cpu.online_cycle", threads::hotplug),
    anywhere(
        Thread,
        &["idle_inject/*", "kidle_inj/*"],
        "firmware.thermal_configuration",
        threads::idle_injection,
    ),
    placed(Thread, &["rcuc/*"], "boot.rcu_nocbs", ticks::rcu_callbacks),
    placed(Thread, RCU_THREADS, "kthread.rcu", threads::movable),
    placed(Thread, &["kworker/u*"], "kthread.workqueue.global", threads::unbound_worker),
    placed(Thread, &["kworker/*"], "boot.isolcpus", threads::bound_worker),
    placed(Thread, &["sugov:*"], "sysfs.cpufreq.governor", threads::governor),
    placed(Thread, &["irq/*"], "irq.affinity", interrupts::irq_thread),
    placed(Thread, &["kswapd*"], "kthread.kswapd", threads::movable),
    anywhere(Thread, &["kcompactd*"], "sysctl.vm.compaction_proactiveness", memory::kcompactd),
    anywhere(Thread, &["khugepaged"], "memory.thp_enabled", memory::khugepaged),
    anywhere(Thread, &["ksmd"], "memory.ksm", memory::ksmd),
    placed(Thread, &["cpu */kvm", "vhost-*", "kvm-*"], "service.libvirt", threads::virtual_machine),
    placed(Thread, &[], "boot.isolcpus", threads::any),
    // Memory and signals of the measured program, and what the kernel does not see.
    anywhere(PageFault, &[], PROGRAM, memory::page_fault),
    anywhere(Signal, STOPS, PROGRAM, calls::stopped),
    anywhere(Held, &["stopped*"], PROGRAM, calls::stopped),
    anywhere(Held, &["*real-time limit*"], "sysctl.kernel.sched_rt_runtime_us", ticks::limit),
    anywhere(Held, &["*quota*"], PROGRAM, ticks::quota),
    anywhere(Held, &[], PROGRAM, ticks::blocked),
    anywhere(Signal, &[], PROGRAM, calls::signal),
    anywhere(
        FirmwareOrHypervisor,
        &[],
        "firmware.dynamic_power_capping_functionality",
        hardware::firmware_or_hypervisor,
    ),
    anywhere(Unexplained, &[], "firmware.dynamic_power_capping_functionality", hardware::unexplained),
];
