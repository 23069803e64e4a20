//! Reason that a CPU interrupted another, from the requested function and the kernel's stack, with its remedy.
//!
//! An entry of [`RULES`] is one rule, and the first that fits applies. Names are those of kernels 6.4 to 7.3.

use super::{Sender, SenderLevel};
use crate::Remedy;
use lowlat_host::snapshot::component_matches;

/// Reason that a sender interrupted other CPUs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reason {
    /// The action and its purpose: "TLB shootdown: munmap".
    pub what: String,
    /// `None` if nothing is known to prevent it.
    pub remedy: Option<Remedy>,
}

struct ReasonRule {
    what: &'static str,
    /// Requested functions, with `*`, separated by spaces; empty if the stack decides.
    functions: &'static str,
    /// Functions on the stack; empty if the requested function decides. Either suffices if both are given.
    path: &'static str,
    setting: &'static str,
    /// Advice; `{who}` is the sender.
    action: &'static str,
}

const fn rule(what: &'static str, functions: &'static str, path: &'static str) -> ReasonRule {
    ReasonRule { what, functions, path, setting: "", action: "" }
}

impl ReasonRule {
    /// A program must change.
    const fn advice(self, action: &'static str) -> Self {
        Self { action, ..self }
    }

    /// A setting of the host helps.
    const fn setting(self, setting: &'static str, action: &'static str) -> Self {
        Self { setting, action, ..self }
    }
}

const KEYS: &str = "static_key_* __static_key_* jump_label_* __jump_label_*";
const NO_PATCHES: &str = "{who} rewrites kernel code, which interrupts every CPU: switch tracing, BPF programs, perf events and \
    firewall rules before trading only";
const ISOLATE: &str = "{who} wakes a thread that may run on the CPU that it interrupts: isolate that CPU, and pin the thread elsewhere";

const RULES: &[ReasonRule] = &[
    rule("drop_caches", "", "drop_caches_sysctl_handler drop_pagecache_sb drop_slab")
        .advice("{who} writes to vm.drop_caches: run what does so before trading only"),
    rule("vm.stat_refresh", "", "vmstat_refresh")
        .advice("{who} reads vm.stat_refresh, which runs work on every CPU: stop it"),
    rule("static key", "", "netstamp_clear net_*able_timestamp").setting(
        "nic.timestamp_static_key",
        "a socket with SO_TIMESTAMPING was opened or closed: let one program hold such a socket open for the \
         whole session",
    ),
    rule(
        "kernel probe",
        "",
        "*arm_kprobe* register_kprobe* unregister_kprobe* *able_kprobe *optimize_kprobe* kprobe_optimizer",
    )
    .advice(NO_PATCHES),
    rule("function tracing", "", "*ftrace_run_update* ftrace_modify_all_code ftrace_arch_code*")
        .advice(NO_PATCHES),
    rule("BPF", "", "bpf_trampoline_* bpf_arch_text_* bpf_prog_pack* bpf_jit_* bpf_int_jit*").advice(NO_PATCHES),
    rule("kernel module", "", "load_module init_module* free_module __*_sys_delete_module")
        .advice("{who} loads or unloads a kernel module: do so before trading only"),
    rule("static key", "", KEYS).advice(
        "{who} switches a part of the kernel on or off, which rewrites its code on every CPU: switch tracing, perf \
         events and packet time stamps (nic.timestamp_static_key) before trading only",
    ),
    rule("static call", "", "*static_call_update __static_call_*").advice(NO_PATCHES),
    rule("kernel code rewritten", "do_sync_core", "*text_poke* *patch_text*").advice(NO_PATCHES),
    rule("membarrier", "ipi_mb ipi_sync_core ipi_rseq ipi_sync_rq_state", "membarrier_* __*_sys_membarrier").advice(
        "{who} calls membarrier (garbage collectors, liburcu, rseq): none of the program's threads may do so while \
         trading",
    ),
    rule(
        "RCU",
        "rcu_exp_* rcu_barrier_handler",
        "*rcu_exp_* sync_rcu_exp* rcu_force_quiescent_state force_qs_rnp rcu_implicit_dynticks_qs",
    )
    .setting(
        "boot.rcupdate.rcu_normal_after_boot",
        "boot with rcupdate.rcu_normal_after_boot=1, so that no grace period interrupts other CPUs to end sooner",
    ),
    rule(
        "perf event",
        "remote_function __perf_event* perf_*",
        "perf_event_* __*_sys_perf_event_open perf_release perf_install_in_context",
    )
    .advice("{who} opens, reads or closes a perf event of that CPU: stop perf and what collects its counters"),
    rule(
        "clock set",
        "retrigger_next_event",
        "clock_was_set* do_settimeofday64 timekeeping_inject_offset",
    )
    .setting(
        "service.clock_discipline",
        "{who} steps the clock: configure the clock service to slew, and to step only when it starts",
    ),
    rule("register access", "__rdmsr* __wrmsr* *cpuid_smp* aperfmperf*", "msr_read msr_write cpuid_read").advice(
        "{who} reads or writes that CPU's registers (turbostat, powertop, an MSR exporter): stop it",
    ),
    rule(
        "TLB shootdown of the kernel",
        "*kernel_range_flush*",
        "flush_tlb_kernel_range __purge_vmap_area_lazy",
    )
    .advice(
        "{who} frees memory that the kernel had mapped: load and unload no modules, BPF programs or tracers while \
         trading",
    ),
    rule(
        "TLB shootdown",
        "*flush_tlb* tlb_remove_table_* tlb_is_not_lazy",
        "flush_tlb_mm_range *tlb_flush* arch_tlbbatch_flush",
    )
    .advice(
        "{who} changes memory that it shares with a thread there: no thread of that program may unmap, protect or \
         free memory while it trades",
    ),
    rule("buffers dropped", "invalidate_bh_lru", "invalidate_bh_lrus*")
        .advice("{who} closes or unmounts a block device: do so before trading only"),
    rule("load balancing", "nohz_csd_func", "kick_ilb nohz_balance* *load_balance* sched_balance_*").setting(
        "boot.isolcpus",
        "isolate the CPU that it interrupts (isolcpus=domain or an isolated cpuset partition)",
    ),
    rule("tick restarted", "nohz_full_kick_func", "tick_nohz_full_kick* tick_nohz_dep_*").setting(
        "boot.nohz_full",
        "{who} needs the tick of that CPU (a CPU-time timer, perf): run no such thing for its threads",
    ),
    rule(
        "timer migration",
        "",
        "add_timer_on wake_up_nohz_cpu tmigr_* switch_hrtimer_base hrtimer_start_range_ns __mod_timer",
    )
    .setting(
        "sysctl.kernel.timer_migration",
        "{who} places a timer on that CPU: run the code that arms it on housekeeping CPUs",
    ),
    rule("signal", "", "kick_process signal_wake_up_state __send_signal* complete_signal")
        .advice("{who} sends a signal to a thread there: send it to a thread on a housekeeping CPU"),
    rule(
        "thread moved",
        "migration_cpu_stop stop_*",
        "stop_one_cpu* stop_two_cpus cpu_stop_queue* affine_move_task stop_machine* migration_cpu_stop",
    )
    .advice("{who} moves a thread to or from that CPU: set affinities before trading only"),
    rule("compaction", "", "*compact_zone* compact_node* kcompactd* sysctl_compaction_handler").advice(
        "{who} compacts memory, which drains the page lists of every CPU: write to vm.compact_memory before trading \
         only, and reserve huge pages at boot",
    ),
    rule("work queued", "", "queue_work_on __queue_work schedule_on_each_cpu queue_delayed_work_on")
        .advice("{who} queues work for that CPU"),
    rule(
        "wake-up",
        "sched_ttwu_pending",
        "try_to_wake_up ttwu_* wake_up_* __ttwu_* default_wake_function wakeup_preempt check_preempt*",
    )
    .setting("boot.isolcpus", ISOLATE),
    rule("reschedule", "", "resched_curr* __resched_curr resched_cpu").setting("boot.isolcpus", ISOLATE),
];

/// Purposes of actions, by functions further out on the stack; the innermost that has a line counts.
const PURPOSES: &[(&str, &str)] = &[
    ("netstamp_clear", "packet time stamps"),
    ("task_numa_work migrate_misplaced_*", "NUMA balancing"),
    ("khugepaged*", "huge pages"),
    ("ksm_*", "page merging"),
    ("compact_zone* kcompactd*", "compaction"),
    ("shrink_*", "memory reclaim"),
    ("do_exit", "exit"),
    ("begin_new_exec", "exec"),
    ("wp_page_copy", "copy on write"),
    ("do_anonymous_page handle_mm_fault", "page fault"),
    ("tracepoint_*", "tracepoint"),
    ("unregister_kprobe* register_kprobe*", "kprobe"),
    ("hrtimer_wakeup process_timeout", "a sleep ended"),
    ("net_rx_action", "packets received"),
    ("blk_*complete*", "disk"),
    ("rcu_core*", "RCU"),
    ("delayed_work_timer_fn", "delayed work"),
    ("call_timer_fn __hrtimer_run_queues", "timer"),
    ("sched_tick scheduler_tick", "scheduler tick"),
];

/// Reasons that are complete without a purpose.
const COMPLETE: &[&str] = &["compaction", "drop_caches", "vm.stat_refresh", "register access", "perf event"];

/// Functions where an interrupt starts on the stack: what follows is the interrupted code, which did not send.
const INTERRUPT_STARTS: &str = "asm_* common_interrupt el1h_64_irq* el0t_64_irq* handle_irq_event";
/// Functions where a softirq starts.
const SOFTIRQ_STARTS: &str = "handle_softirqs __do_softirq do_softirq* run_ksoftirqd irq_exit*";

fn fits(patterns: &str, name: &str) -> bool {
    patterns.split_ascii_whitespace().any(|pattern| component_matches(pattern, name))
}

impl Sender {
    /// The part of its stack that sent: in an interrupt, up to where that starts.
    fn own_path(&self) -> impl Iterator<Item = &str> {
        let level = self.level;
        self.path.iter().map(String::as_str).take_while(move |name| match level {
            SenderLevel::Thread => true,
            SenderLevel::Softirq => !fits(SOFTIRQ_STARTS, name) && !fits(INTERRUPT_STARTS, name),
            SenderLevel::Interrupt => !fits(INTERRUPT_STARTS, name),
        })
    }

    /// Its name for people: "md (pid 812)", "GC of java (pid 71)", "an interrupt on CPU 0".
    pub fn who(&self) -> String {
        let on = format!("on {:#}", self.cpus);
        match (self.level, self.thread) {
            (SenderLevel::Softirq, _) => format!("softirq {on}"),
            (SenderLevel::Interrupt, _) => format!("interrupt {on}"),
            (SenderLevel::Thread, None) => format!("idle task {on}"),
            (SenderLevel::Thread, Some(thread)) if self.name.is_empty() => format!("pid {thread}, ended"),
            (SenderLevel::Thread, Some(thread)) => format!("{} (pid {thread})", self.program()),
        }
    }

    /// The thread's name with its process's: "GC of java".
    pub(super) fn program(&self) -> String {
        if self.process.is_empty() { self.name.clone() } else { format!("{} of {}", self.name, self.process) }
    }

    pub fn reason(&self) -> Reason {
        let path: Vec<&str> = self.own_path().collect();
        let is_hit = |rule: &&ReasonRule| {
            fits(rule.functions, &self.function) || path.iter().any(|name| fits(rule.path, name))
        };
        let purpose = purpose(&path);
        let with = |what: &str| match &purpose {
            Some(purpose) if purpose != what && !COMPLETE.contains(&what) => format!("{what}: {purpose}"),
            _ => what.to_owned(),
        };
        let Some(rule) = RULES.iter().find(is_hit) else {
            let what = if self.function.is_empty() { "reschedule" } else { &self.function };
            return Reason { what: with(what), remedy: None };
        };
        let action = rule.action.replace("{who}", &self.who());
        Reason { what: with(rule.what), remedy: Some(Remedy { setting: rule.setting.to_owned(), action }) }
    }
}

/// Returns the purpose of a stack: a known one, a work function, or the system call.
fn purpose(path: &[&str]) -> Option<String> {
    let known = |name: &&str| PURPOSES.iter().find(|(functions, _)| fits(functions, name));
    if let Some((_, purpose)) = path.iter().find_map(known) {
        return Some((*purpose).to_owned());
    }
    if let Some(at) = path.iter().position(|name| *name == "process_one_work") {
        let work = at.checked_sub(1).and_then(|inner| path.get(inner))?;
        // A work function that ends with a call of another is not on the stack.
        return Some(if fits(KEYS, work) { "deferred work" } else { work }.to_owned());
    }
    path.iter().find_map(|name| system_call(name)).map(str::to_owned)
}

/// The system call that a function implements: "munmap" of `__x64_sys_munmap`.
fn system_call(name: &str) -> Option<&str> {
    const PREFIXES: [&str; 6] =
        ["__x64_sys_", "__ia32_sys_", "__arm64_sys_", "__se_sys_", "__do_sys_", "ksys_"];
    PREFIXES.iter().find_map(|prefix| name.strip_prefix(prefix))
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
