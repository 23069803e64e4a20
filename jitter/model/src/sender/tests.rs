use super::*;
use lowlat_host::CpuSet;

fn sender(function: &str, path: &[&str]) -> Sender {
    Sender {
        thread: Some(812),
        name: "md".into(),
        cpus: CpuSet::of(0),
        function: function.into(),
        path: path.iter().map(|name| (*name).to_owned()).collect(),
        ..Sender::default()
    }
}

fn what(function: &str, path: &[&str]) -> String {
    sender(function, path).reason().what
}

const BROADCAST: [&str; 2] = ["smp_call_function_many_cond", "on_each_cpu_cond_mask"];

fn broadcast(function: &str, path: &[&str]) -> String {
    what(function, &[&BROADCAST[..], path].concat())
}

#[test]
fn a_reason_names_what_was_done_and_what_for() {
    let poke = ["smp_text_poke_batch_finish", "arch_jump_label_transform_apply", "__jump_label_update"];
    let key = |path: &[&str]| broadcast("do_sync_core", &[&poke[..], path].concat());
    let reasons = [
        broadcast("flush_tlb_func", &["flush_tlb_mm_range", "unmap_region", "__x64_sys_munmap"]),
        broadcast("flush_tlb_func", &["flush_tlb_mm_range", "change_prot_numa", "task_numa_work"]),
        broadcast("ipi_mb", &["membarrier_private_expedited", "__x64_sys_membarrier"]),
        key(&["static_key_enable_cpuslocked", "static_key_enable", "netstamp_clear", "process_one_work"]),
        key(&["static_key_disable_cpuslocked", "static_key_disable", "process_one_work", "worker_thread"]),
        key(&["static_key_slow_inc", "tracepoint_add_func", "tracepoint_probe_register"]),
        broadcast("do_sync_core", &["text_poke_bp_batch", "arm_kprobe", "register_kprobe"]),
        broadcast("do_sync_core", &[]),
        what(
            "remote_function",
            &["generic_exec_single", "smp_call_function_single", "perf_install_in_context"],
        ),
        what(
            "rcu_exp_handler",
            &["generic_exec_single", "__sync_rcu_exp_select_node_cpus", "kthread_worker_fn"],
        ),
        what("__rdmsr_on_cpu", &["generic_exec_single", "rdmsr_safe_on_cpu", "msr_read", "ksys_read"]),
        broadcast(
            "invalidate_bh_lru",
            &["drop_caches_sysctl_handler", "proc_sys_call_handler", "ksys_write"],
        ),
        what(
            "sched_ttwu_pending",
            &["__smp_call_single_queue", "try_to_wake_up", "wake_up_q", "__x64_sys_futex"],
        ),
        what("", &["kick_process", "signal_wake_up_state", "__x64_sys_tgkill"]),
        what("", &["add_timer_on", "clocksource_watchdog", "call_timer_fn"]),
        what("fresh_function", &["generic_exec_single"]),
        what("", &[]),
    ];
    assert_eq!(
        reasons,
        [
            "TLB shootdown: munmap",
            "TLB shootdown: NUMA balancing",
            "membarrier",
            "static key: packet time stamps",
            "static key: deferred work",
            "static key: tracepoint",
            "kernel probe: kprobe",
            "kernel code rewritten",
            "perf event",
            "RCU",
            "register access",
            "drop_caches",
            "wake-up: futex",
            "signal: tgkill",
            "timer migration: timer",
            "fresh_function",
            "reschedule",
        ]
    );
}

#[test]
fn a_remedy_names_the_sender() {
    let of = sender("ipi_mb", &["__x64_sys_membarrier"]).reason().remedy.unwrap();
    assert!(of.action.starts_with("md (pid 812) calls membarrier"), "{}", of.action);
    let of = Sender { process: "java".into(), ..sender("ipi_mb", &[]) };
    assert_eq!(of.who(), "md of java (pid 812)");
    assert_eq!(Sender { name: String::new(), ..of }.who(), "pid 812, ended");
}

#[test]
fn what_an_interrupt_interrupted_did_not_send() {
    let path = [
        "try_to_wake_up",
        "hrtimer_wakeup",
        "hrtimer_interrupt",
        "asm_sysvec_apic_timer_interrupt",
        "__x64_sys_munmap",
    ];
    let of = Sender { level: SenderLevel::Interrupt, thread: None, ..sender("sched_ttwu_pending", &path) };
    assert_eq!(
        (of.who().as_str(), of.reason().what.as_str()),
        ("interrupt on CPU 0", "wake-up: a sleep ended")
    );
}
