//! The table of remedies: kind, names, setting, and the advice. The first rule that matches a cause applies.
//!
//! Names are those of kernels 5.10 to 6.18. Sources: kernel Documentation/timers/no_hz.rst,
//! Documentation/admin-guide/kernel-per-CPU-kthreads.rst, Documentation/admin-guide/kernel-parameters.txt,
//! Documentation/core-api/irq/irq-affinity.rst, Documentation/core-api/workqueue.rst.

use super::case::Case;
use super::{Advice, Rule, RuleAct, calls, interrupts, memory, threads, ticks};
use crate::CauseKind::{
    self, CallFunction, FirmwareOrHypervisor, Held, Hrtimer, Irq, Nmi, PageFault, Signal, Softirq, Tasklet,
    Thread, Timer, Unexplained, Vector, Work,
};
use crate::attribution::{ASLEEP_NAME, IDLE_NAME};

/// A cause that belongs on housekeeping CPUs.
const fn placed(kind: CauseKind, names: &'static [&'static str], setting: &'static str) -> Rule {
    Rule { belongs_to_housekeeping: true, ..anywhere(kind, names, setting) }
}

/// A cause that is unwanted on any CPU, or that no placement removes.
const fn anywhere(kind: CauseKind, names: &'static [&'static str], setting: &'static str) -> Rule {
    Rule { kind, names, setting, belongs_to_housekeeping: false, act: RuleAct::Say("") }
}

impl Rule {
    const fn say(self, text: &'static str) -> Self {
        Self { act: RuleAct::Say(text), ..self }
    }

    const fn isolate(self, texts: [&'static str; 2]) -> Self {
        Self { act: RuleAct::Isolate(texts), ..self }
    }

    const fn by(self, act: fn(&Case<'_>) -> Advice) -> Self {
        Self { act: RuleAct::By(act), ..self }
    }
}

/// No setting of the host removes it; a program must change.
const PROGRAM: &str = "";
const POWER_CAPPING: &str = "firmware.dynamic_power_capping_functionality";

/// Functions of the tick: before 6.8, in 6.8, since 6.9.
const TICK: &[&str] =
    &["tick_sched_timer", "tick_nohz_highres_handler", "tick_nohz_handler", "tick_periodic"];
const MEMBARRIER: &[&str] = &["ipi_mb", "ipi_sync_core", "ipi_rseq", "ipi_sync_rq_state", "membarrier*"];
const REGISTERS: &[&str] = &["__rdmsr*", "__wrmsr*", "rdmsr*", "wrmsr*", "aperfmperf*", "*cpuid_smp*"];
const PERF: &[&str] = &["remote_function", "__perf_event*", "perf_*", "*_hrtimer_handle", "*perf_event*"];
const DRAINS: &[&str] =
    &["lru_add_drain_per_cpu", "drain_local_pages*", "drain_local_stock", "drain_*pages*"];
const PROCESS_TIMERS: &[&str] = &["timerfd_*", "it_real_fn", "posix_timer_fn", "alarmtimer_*"];
const DEADLINE_TIMERS: &[&str] = &["dl_task_timer", "inactive_task_timer", "dl_server_timer"];
const CLOCK_STEPS: &[&str] = &["retrigger_next_event", "clock_was_set*"];
const EXPEDITED_WORK: &[&str] = &["sync_rcu_exp*", "wait_rcu_exp*", "rcu_exp*"];
const INJECTION: &[&str] = &["idle_inject/*", "kidle_inj/*"];
const WRITEBACK: &[&str] = &["wb_workfn", "wb_update_bandwidth_workfn", "inode_switch_wbs_work_fn"];
const RCU_THREADS: &[&str] = &["rcuo*", "rcu_*", "rcub/*", "srcu*", "rcu*"];
/// Signals that stop and resume a thread.
const STOPS: &[&str] = &["sigstop", "sigtstp", "sigttin", "sigttou", "sigcont"];
const SELF_BUILT_IPI: &[&str] = &["*call function*", "*ipi*", "*function call*"];

const STOP_PERF: &str =
    "a perf event is open on this CPU: stop perf and other tools that collect its counters";
const STOPPED: &str = "{label} comes from job control, a debugger or a supervisor: none of them may stop the \
                       program while it trades";
/// Softirqs, tasklets and threads of drivers run where the device's interrupt fires.
const FOLLOWS_DEVICE: &str =
    "{label} runs where its device interrupts: move the device interrupts in this list to {housekeeping}";
const COOLING: &str = "{name} idles the CPU to cool it: improve the host's cooling";
/// A guest's processor, or its helpers.
const GUEST: &str = "{label} belongs to a virtual machine on this host: move or stop it";

pub(super) const RULES: &[Rule] = &[
    // Non-maskable and device interrupts.
    anywhere(Nmi, &[], "sysctl.kernel.nmi_watchdog").by(calls::nmi),
    placed(Irq, &["arch_timer"], "boot.nohz_full").by(ticks::tick),
    anywhere(Irq, &["*-pmu", "*pmuv3*"], "sysctl.kernel.nmi_watchdog").by(calls::nmi),
    placed(Irq, &[], "irq.affinity").by(interrupts::device),
    // Interrupts of the processor itself.
    placed(Vector, &["*timer*"], "boot.nohz_full").by(ticks::tick),
    placed(Vector, &["*reschedul*"], "boot.isolcpus").isolate(memory::RESCHEDULE),
    anywhere(Vector, &["irq work*", "irq_work*"], "boot.nohz_full").by(calls::irq_work),
    anywhere(Vector, &["*thermal*"], "firmware.thermal_configuration").say(
        "a processor reached its temperature limit: increase the cooling, and check for blocked airflow",
    ),
    anywhere(Vector, &["hypervisor*"], "readiness.virtual_machine")
        .say("the hypervisor interrupts its guest, which nothing inside can prevent: use a physical host"),
    placed(Vector, &["*posted interrupt*"], "service.libvirt").say(GUEST),
    anywhere(Vector, &["*threshold*", "*deferred*", "machine check*"], PROGRAM).say(
        "the hardware corrected errors: find the memory module or device in rasdaemon's log and replace \
         it",
    ),
    anywhere(Vector, &["*platform*", "*error*", "*spurious*"], "firmware.bios_version")
        .say("{label} is rare on a sound host: check the kernel log and update the firmware"),
    anywhere(Vector, SELF_BUILT_IPI, "boot.rcupdate.rcu_normal_after_boot").by(calls::call),
    // Functions of high-resolution timers.
    placed(Hrtimer, TICK, "boot.nohz_full").by(ticks::tick),
    placed(Hrtimer, &["hrtimer_wakeup"], "boot.isolcpus").by(ticks::sleeper),
    placed(Hrtimer, &["watchdog_timer_fn"], "sysctl.kernel.watchdog_cpumask").by(calls::soft_watchdog),
    placed(Hrtimer, PROCESS_TIMERS, "boot.isolcpus").isolate([
        "a process armed a timer here (timerfd, setitimer, timer_create)",
        "find the process that runs here and arms timers, and arm them in one that runs elsewhere",
    ]),
    placed(Hrtimer, DEADLINE_TIMERS, "debugfs.sched.fair_server").by(ticks::deadline_timer),
    anywhere(Hrtimer, &["sched_rt_period_timer"], "sysctl.kernel.sched_rt_runtime_us").by(|case| {
        let when_set =
            "check for real-time limits of control groups (cpu.rt_runtime_us) and for the fair server";
        case.set_sysctl("kernel.sched_rt_runtime_us", -1, when_set)
    }),
    placed(Hrtimer, &["napi_watchdog"], "nic.gro_flush_timeout").by(interrupts::napi_timer),
    anywhere(Hrtimer, PERF, PROGRAM).say(STOP_PERF),
    placed(Hrtimer, &["idle_inject_timer_fn"], "firmware.thermal_configuration").say(COOLING),
    placed(Hrtimer, &["apic_timer_fn", "kvm_*"], "service.libvirt").say(GUEST),
    placed(Hrtimer, &[], "boot.isolcpus").isolate(memory::OTHER_TIMER),
    // Functions of the timer wheel.
    anywhere(Timer, &["mce_timer_fn"], "sysfs.machinecheck.check_interval").by(calls::machine_check),
    anywhere(Timer, &["clocksource_watchdog"], "boot.tsc").by(ticks::clock_watchdog),
    placed(Timer, &["do_nocb_deferred_wakeup_timer"], "boot.rcu_nocb_poll").by(ticks::rcu_wakeup),
    placed(Timer, &["delayed_work_timer_fn"], "boot.nohz_full").by(ticks::delayed_work),
    placed(Timer, &["process_timeout"], "boot.isolcpus").by(ticks::sleeper),
    placed(Timer, &["mix_interrupt_randomness"], "irq.affinity").say(FOLLOWS_DEVICE),
    placed(Timer, &[], "sysctl.kernel.timer_migration").by(ticks::kernel_timer),
    // Functions requested by another CPU.
    anywhere(CallFunction, &["*kernel_range_flush*", "kernel_tlb_flush*"], PROGRAM).say(
        "another CPU freed memory that the kernel had mapped: load and unload no modules, BPF programs \
         or tracers while trading",
    ),
    anywhere(CallFunction, &["*flush_tlb*", "tlb_remove_table_*"], PROGRAM).by(memory::flush),
    anywhere(CallFunction, MEMBARRIER, PROGRAM).say(
        "a program with threads here calls membarrier (garbage collectors, liburcu, rseq): none of its \
         threads may do so while trading",
    ),
    anywhere(CallFunction, &["do_sync_core", "*text_poke*", "*patch_text*"], PROGRAM).say(
        "another CPU rewrote kernel code, which affects each CPU: do not switch tracing, BPF programs, \
         perf events or firewall rules on or off while trading",
    ),
    anywhere(CallFunction, &["rcu_exp_*"], "boot.rcupdate.rcu_normal_after_boot").by(ticks::rcu_expedited),
    placed(CallFunction, &["rcu_barrier*"], "boot.rcu_nocbs").by(ticks::rcu_callbacks),
    placed(CallFunction, &["sched_ttwu_pending"], "boot.isolcpus").isolate(memory::RESCHEDULE),
    placed(CallFunction, &["nohz_csd_func"], "boot.isolcpus").isolate(memory::BALANCE),
    placed(CallFunction, &["*blk_mq_complete*"], "boot.isolcpus").isolate(memory::BLOCK),
    anywhere(CallFunction, CLOCK_STEPS, "service.clock_discipline").say(
        "the host's clock was stepped, which affects every CPU: configure the clock service to slew, \
         and to step only when it starts",
    ),
    anywhere(CallFunction, &["clocksource_verify*"], "boot.tsc").by(ticks::clock_watchdog),
    anywhere(CallFunction, REGISTERS, PROGRAM).say(
        "a tool on another CPU reads or writes this CPU's registers (turbostat, powertop, an MSR \
         exporter): stop it",
    ),
    anywhere(CallFunction, PERF, PROGRAM).say(STOP_PERF),
    anywhere(CallFunction, &["*invalidate_bh_lru*"], PROGRAM)
        .say("a block device was closed or unmounted, which drops caches on every CPU: do so before trading"),
    anywhere(CallFunction, &[], PROGRAM)
        .say("another CPU requested {function} to run here: find the caller on the housekeeping CPUs"),
    // Softirqs and tasklets.
    placed(Softirq, &["timer"], "sysctl.kernel.timer_migration").by(ticks::kernel_timer),
    placed(Softirq, &["net_rx"], "irq.spread_nic_queues").by(interrupts::net_rx),
    placed(Softirq, &["net_tx"], "nic.xps").say(
        "packets sent from {on} complete here: send from other CPUs or through a kernel-bypass stack, \
         and give isolated CPUs separate transmit queues (xps_cpus)",
    ),
    placed(Softirq, &["block"], "boot.isolcpus").isolate(memory::BLOCK),
    placed(Softirq, &["sched"], "boot.isolcpus").isolate(memory::BALANCE),
    placed(Softirq, &["hrtimer"], "boot.isolcpus").isolate(memory::OTHER_TIMER),
    placed(Softirq, &["rcu"], "boot.rcu_nocbs").by(ticks::rcu_callbacks),
    placed(Softirq, &[], "irq.affinity").say(FOLLOWS_DEVICE),
    placed(Tasklet, &[], "irq.affinity").say(FOLLOWS_DEVICE),
    // Functions on workqueues.
    placed(Work, &["vmstat_*"], "sysctl.vm.stat_interval").by(memory::vmstat),
    anywhere(Work, DRAINS, "memory.thp_enabled").by(memory::drain),
    placed(Work, WRITEBACK, "kthread.workqueue.writeback").by(threads::unbound_worker),
    anywhere(Work, EXPEDITED_WORK, "boot.rcupdate.rcu_normal_after_boot").by(ticks::rcu_expedited),
    anywhere(Work, &["clocksource_watchdog*"], "boot.tsc").by(ticks::clock_watchdog),
    placed(Work, &[], "boot.isolcpus").isolate([
        "{function} was run by a kernel worker here",
        "a system call or an interrupt on these CPUs queues it; the timeline shows which",
    ]),
    // Threads.
    anywhere(Thread, &["swapper*", IDLE_NAME], PROGRAM).say(
        "the measured thread was held or moved away: check for SIGSTOP, the freezer and cpu.max of its \
         group",
    ),
    anywhere(Thread, &[ASLEEP_NAME], "sysfs.cpuidle.deep_states").say(
        "{on} left an idle state and then switched to the thread: disable deep idle states there, or \
         spin in place of sleeping",
    ),
    placed(Thread, &["migration/*"], "boot.isolcpus").by(threads::migration),
    placed(Thread, &["ksoftirqd/*", "ktimers/*", "irq_work/*"], "irq.affinity").say(
        "{name} is bound to its CPU and runs softirqs that piled up: move the interrupts that raise the \
         softirqs in this list to {housekeeping}",
    ),
    anywhere(Thread, &["cpuhp/*"], "sysfs.cpu.online_cycle")
        .say("{name} runs while a CPU is taken offline or online: do that before trading, not during it"),
    anywhere(Thread, INJECTION, "firmware.thermal_configuration").say(COOLING),
    placed(Thread, &["rcuc/*"], "boot.rcu_nocbs").by(ticks::rcu_callbacks),
    placed(Thread, RCU_THREADS, "kthread.rcu").by(threads::movable),
    placed(Thread, &["kworker/u*"], "kthread.workqueue.global").by(threads::unbound_worker),
    placed(Thread, &["kworker/*"], "boot.isolcpus").by(threads::bound_worker),
    placed(Thread, &["sugov:*"], "sysfs.cpufreq.governor")
        .say("{label} changes the frequency of these CPUs: write performance to scaling_governor of {on}"),
    placed(Thread, &["irq/*"], "irq.affinity").by(interrupts::irq_thread),
    placed(Thread, &["kswapd*"], "kthread.kswapd").by(threads::movable),
    anywhere(Thread, &["kcompactd*"], "sysctl.vm.compaction_proactiveness").by(memory::kcompactd),
    anywhere(Thread, &["khugepaged"], "memory.thp_enabled").by(memory::khugepaged),
    anywhere(Thread, &["ksmd"], "memory.ksm").by(memory::ksmd),
    placed(Thread, &["cpu */kvm", "vhost-*", "kvm-*"], "service.libvirt").say(GUEST),
    placed(Thread, &[], "boot.isolcpus").by(threads::any),
    // Memory and signals of the measured program, and what the kernel does not see.
    anywhere(PageFault, &[], PROGRAM).by(memory::page_fault),
    anywhere(Signal, STOPS, PROGRAM).say(STOPPED),
    anywhere(Held, &["stopped*"], PROGRAM).say(STOPPED),
    anywhere(Held, &["*real-time limit*"], "sysctl.kernel.sched_rt_runtime_us").by(ticks::limit),
    anywhere(Held, &["*quota*"], PROGRAM).say(
        "the quota of the thread's control group was used up: write max to its cpu.max (CPUQuota= of \
         its unit)",
    ),
    anywhere(Held, &[], PROGRAM).say(
        "the measured thread waited in the kernel, for a page or a lock: lock its memory, and keep \
         system calls out of it",
    ),
    anywhere(Signal, &[], PROGRAM).say(
        "the program's own signal: arm no timer that sends {label} to the trading thread, or block \
         {label} there and receive it in a thread on {housekeeping} (pthread_sigmask, sigwait or \
         signalfd)",
    ),
    anywhere(FirmwareOrHypervisor, &[], POWER_CAPPING).by(memory::firmware_or_hypervisor),
    anywhere(Unexplained, &[], POWER_CAPPING).by(memory::unexplained),
];
