//! Kernel threads and workqueues.

use crate::{CPU_PARTITIONING, HAZARDS};
use lowlat_host::snapshot::{KernelThread, SchedPolicy};
use lowlat_settings::{
    Context, Impact, Judgement, Layer, Needs, Risk, Setting, Verdict, Want, change, judge,
};

const THREADS: &str = "/proc/PID/status";
const WORKQUEUE_DOC: &str = "kernel Documentation/core-api/workqueue.rst";

/// The guide's real-time priorities (sections 4.3.2.1.1 and 4.3.2.1.2).
const KSOFTIRQD_PRIORITY: u32 = 2;
const RCUB_PRIORITY: u32 = 4;

const KTHREAD: Setting = Setting { layer: Layer::Kthread, ..Setting::BLANK };

pub(super) const SETTINGS: &[Setting] = &[
    Setting {
        id: "kthread.workqueue.writeback",
        acts_when: "files are written",
        change: change::kthread::writeback,
        name: "/sys/bus/workqueue/devices/writeback/cpumask",
        reason: "Workers of this queue write dirty pages back. They are unbound and run on any CPU of the \
                 mask, including isolated ones.",
        cost: "The housekeeping CPUs do the work.",
        effective: "The cpumask names no isolated CPU.",
        both: Want::Derived(judge::kept_off_isolated),
        hazard: "The guide writes it before it stops TuneD, whose rollback restores the old mask.",
        sources: &["guide 57037 section 4.3.3.1.2 step 2", HAZARDS, CPU_PARTITIONING, WORKQUEUE_DOC],
        judge: |context, _| {
            let queues = context.host.tasks.workqueues.iter().filter(|queue| queue.name == "writeback");
            let sets = queues.map(|queue| (queue.name.clone(), &queue.cpus));
            judge::off_isolated(context, "workqueues", "/sys/bus/workqueue/devices/writeback/cpumask", sets)
        },
        ..KTHREAD
    },
    Setting {
        id: "kthread.workqueue.writeback_numa",
        name: "/sys/bus/workqueue/devices/writeback/numa",
        reason: "With 1 the queue keeps workers for each NUMA node on that node's CPUs. With 0 the cpumask \
                 alone decides. A mask with a housekeeping CPU of every node works just as well.",
        impact: Impact::Low,
        needs: Needs::until(6, 6).moved_to("/sys/bus/workqueue/devices/writeback/affinity_scope"),
        effective: "The file contains 0.",
        reads: &["/sys/bus/workqueue/devices/writeback/numa"],
        guide: Want::Value("0"),
        hazard: "Removed in kernel 6.6; the guide's script does not notice.",
        sources: &["guide 57037 section 4.3.3.1.2 step 2", WORKQUEUE_DOC],
        judge: judge::files,
        ..KTHREAD
    },
    Setting {
        id: "kthread.workqueue.global",
        change: change::kthread::unbound,
        name: "/sys/devices/virtual/workqueue/cpumask",
        reason: "The CPUs on which unbound work of the whole kernel may run. isolcpus=domain excludes \
                 isolated CPUs at boot. On current kernels nohz_full= alone does so too.",
        cost: "The housekeeping CPUs do the work.",
        impact: Impact::High,
        effective: "The cpumask names no isolated CPU.",
        both: Want::Derived(judge::kept_off_isolated),
        hazard: "Set by TuneD's cpu-partitioning, and reverted when the guide stops TuneD.",
        sources: &["guide 57037 section 4.3.2.1.1", HAZARDS, CPU_PARTITIONING, WORKQUEUE_DOC],
        judge: |context, _| {
            let sets = std::iter::once(("all unbound work".to_owned(), &context.host.tasks.workqueue_cpus));
            judge::off_isolated(context, "workqueue masks", "/sys/devices/virtual/workqueue/cpumask", sets)
        },
        ..KTHREAD
    },
    Setting {
        id: "kthread.rcu",
        change: |context, _| change::kthread::off_isolated(context, |comm| comm.starts_with("rcu")),
        name: "rcu kernel threads",
        reason: "The threads that run RCU callbacks for offloaded CPUs and drive grace periods. They wake up \
                 often. On an isolated CPU each wake-up is an interruption.",
        cost: "The housekeeping CPUs do the work.",
        impact: Impact::High,
        effective: "Cpus_allowed_list of each thread names no isolated CPU.",
        both: Want::Derived(judge::kept_off_isolated),
        hazard: "The guide finds them with `pgrep rcu`, which matches any name that contains rcu. Threads \
                 bound to one CPU cannot be moved.",
        sources: &[
            "guide 57037 section 4.3.3.1.2 step 6",
            HAZARDS,
            "kernel Documentation/admin-guide/kernel-per-CPU-kthreads.rst",
        ],
        judge: |context, _| movable_threads(context, "RCU threads", |comm| comm.starts_with("rcu")),
        ..KTHREAD
    },
    Setting {
        id: "kthread.kswapd",
        acts_when: "memory is short",
        change: |context, _| change::kthread::off_isolated(context, is_kswapd),
        name: "kswapd",
        reason: "One thread per NUMA node frees memory when it runs short. By default it may use every CPU \
                 of its node.",
        cost: "With one housekeeping CPU for several nodes, a distant CPU frees the pages.",
        effective: "Cpus_allowed_list of each kswapd names no isolated CPU.",
        both: Want::Derived(judge::kept_off_isolated),
        hazard: "`pgrep kswapd?` is a pattern that also matches other names, and the guide moves the thread \
                 of one socket to CPUs of the other as well. The setting is lost when memory or CPUs are \
                 hot-plugged.",
        sources: &["guide 57037 section 4.3.3.1.2 step 8", HAZARDS],
        judge: |context, _| movable_threads(context, "kswapd threads", is_kswapd),
        ..KTHREAD
    },
    Setting {
        id: "kthread.ksoftirqd",
        change: |context, _| change::kthread::fifo(context, "ksoftirqd/", KSOFTIRQD_PRIORITY),
        name: "group.ksoftirqd",
        reason: "The guide raises ksoftirqd to SCHED_FIFO, so that real-time threads do not starve deferred \
                 softirqs. It changes nothing where isolated CPUs get no softirq work.",
        cost: "Deferred softirq work runs before every thread of the default policy, on housekeeping CPUs \
               too.",
        risk: Risk::Availability,
        impact: Impact::Low,
        effective: "`chrt -p` of each ksoftirqd shows SCHED_FIFO and the priority; its affinity remains its \
                    own CPU.",
        guide: Want::State("SCHED_FIFO, priority 2"),
        hazard: "The affinity on the same line never works: each ksoftirqd is bound to its CPU, and the \
                 kernel returns EINVAL. A priority above that of stalld can freeze the host.",
        sources: &["guide 57037 sections 4.3.2.1.1 and 4.3.2.1.2", HAZARDS],
        judge: |context, _| fifo(context, "ksoftirqd/", KSOFTIRQD_PRIORITY),
        ..KTHREAD
    },
    Setting {
        id: "kthread.rcub",
        change: |context, _| change::kthread::fifo(context, "rcub/", RCUB_PRIORITY),
        name: "group.rcub",
        reason: "The guide raises the threads that boost blocked RCU readers to SCHED_FIFO. They exist only \
                 in kernels with RCU priority boosting.",
        cost: "The threads run before every real-time thread of a lower priority.",
        risk: Risk::Availability,
        impact: Impact::Low,
        needs: Needs::ANY.with_config(&["RCU_BOOST"]),
        effective: "`chrt -p` of each rcub thread shows SCHED_FIFO and the priority.",
        guide: Want::State("SCHED_FIFO, priority 4"),
        hazard: "Most distributions build kernels without RCU_BOOST, which have no such threads.",
        sources: &["guide 57037 sections 4.3.2.1.1 and 4.3.2.1.2", HAZARDS],
        judge: |context, _| fifo(context, "rcub/", RCUB_PRIORITY),
        ..KTHREAD
    },
];

/// `kswapd` followed by the number of a node.
fn is_kswapd(comm: &str) -> bool {
    comm.strip_prefix("kswapd")
        .is_some_and(|node| !node.is_empty() && node.bytes().all(|b| b.is_ascii_digit()))
}

/// Threads with a matching name that the kernel allows to be moved must not use isolated CPUs.
fn movable_threads(context: &Context<'_>, what: &str, is_named: fn(&str) -> bool) -> Judgement {
    let threads = context.host.tasks.kernel_threads.iter();
    let movable = threads.filter(|thread| !thread.is_bound && is_named(&thread.comm));
    let sets = movable.map(|thread| (thread.comm.clone(), &thread.cpus_allowed));
    unless_unread(context, judge::off_isolated(context, what, THREADS, sets))
}

/// A reading without a value if there may be more threads than were read.
fn unread(context: &Context<'_>) -> lowlat_host::Reading<()> {
    context.host.listed("/proc", ()).and_then(|()| context.host.listed("/proc/*/stat", ()))
}

/// Makes the judgement unknown if threads that were not read may be at fault.
fn unless_unread(context: &Context<'_>, judgement: Judgement) -> Judgement {
    let listed = unread(context);
    if judgement.verdict.is_fault() || listed.is_known() {
        judgement
    } else {
        judge::missing(&listed, "/proc")
    }
}

/// Threads with the name prefix must be SCHED_FIFO with the given priority.
fn fifo(context: &Context<'_>, prefix: &str, priority: u32) -> Judgement {
    let bound = if unread(context).is_known() { "" } else { "at least " };
    unless_unread(context, fifo_of(&context.host.tasks.kernel_threads, prefix, priority, bound))
}

fn fifo_of(all: &[KernelThread], prefix: &str, priority: u32, bound: &str) -> Judgement {
    if all.is_empty() {
        return Judgement::unknown("no kernel threads are visible here").at(THREADS);
    }
    let named: Vec<&KernelThread> = all.iter().filter(|thread| thread.comm.starts_with(prefix)).collect();
    if named.is_empty() {
        return Judgement::not_applicable(format!("no thread named {prefix}N is running")).at(THREADS);
    }
    let is_wanted =
        |thread: &&&KernelThread| thread.policy == SchedPolicy::Fifo && thread.rt_priority == priority;
    let good = named.iter().filter(is_wanted).count();
    let observed = format!("{good} of {bound}{} are SCHED_FIFO of priority {priority}", named.len());
    let verdict = if good == named.len() { Verdict::Good } else { Verdict::Wrong };
    Judgement::new(verdict, observed, "").at(THREADS)
}
