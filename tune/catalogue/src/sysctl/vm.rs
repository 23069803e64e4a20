//! Virtual memory: write-back, statistics, swapping, compaction.

use super::{GUIDE, NETWORK_LATENCY, SYSCTL, VM_DOC, named, number};
use lowlat_host::snapshot::sysctl_path;
use lowlat_settings::{Context, Impact, Judgement, Needs, Setting, Verdict, Want, change, judge};

/// The shortest interval for folding per-CPU counters on a quiet host, as TuneD's network-latency sets it.
const STAT_INTERVAL_S_MIN: i64 = 10;

/// The highest swappiness on a quiet host, as TuneD's latency-performance sets it.
const SWAPPINESS_MAX: i64 = 10;

const LATENCY_PERFORMANCE: &str = "TuneD 2.28 profile latency-performance";

pub(crate) const SETTINGS: &[Setting] = &named([
    Setting {
        id: "sysctl.vm.dirty_background_ratio",
        acts_when: "files are written",
        reason: "The share of dirty memory at which the write-back threads start. Starting early and often \
                 keeps each burst of disk work on the housekeeping CPUs short.",
        cost: "More, smaller writes to disk.",
        reads: &["/proc/sys/vm/dirty_background_ratio", "/proc/sys/vm/dirty_background_bytes"],
        both: Want::Value("3"),
        sources: &[GUIDE, LATENCY_PERFORMANCE, VM_DOC],
        judge: |context, setting| dirty(context, setting, "vm.dirty_background_bytes"),
        ..SYSCTL
    },
    Setting {
        id: "sysctl.vm.dirty_ratio",
        acts_when: "files are written",
        reason: "The share of dirty memory at which a writing process must write back its own pages. A \
                 thread that logs from the hot path is blocked there.",
        cost: "Processes that write much are slowed down earlier.",
        reads: &["/proc/sys/vm/dirty_ratio", "/proc/sys/vm/dirty_bytes"],
        both: Want::Value("10"),
        sources: &[GUIDE, LATENCY_PERFORMANCE, VM_DOC],
        judge: |context, setting| dirty(context, setting, "vm.dirty_bytes"),
        ..SYSCTL
    },
    Setting {
        id: "sysctl.vm.stat_interval",
        change: |context, setting| change::sysctl::key_or(context, setting, "10"),
        reason: "How often each CPU folds its memory counters into the global ones. This is a work item on \
                 every CPU that has used memory, on older kernels including isolated ones.",
        cost: "/proc/vmstat and /proc/meminfo lag behind by the interval.",
        impact: Impact::High,
        effective: "No vmstat_update work item on isolated CPUs in the workqueue trace events.",
        reads: &["/proc/sys/vm/stat_interval"],
        trading: Want::State("at least 10 s"),
        guide: Want::Value("3600"),
        sources: &[GUIDE, NETWORK_LATENCY, VM_DOC],
        judge: |context, setting| numbered(context, setting, |seconds| seconds >= STAT_INTERVAL_S_MIN),
        ..SYSCTL
    },
    Setting {
        id: "sysctl.vm.swappiness",
        acts_when: "memory is short",
        change: |context, setting| change::sysctl::key_or(context, setting, "10"),
        reason: "How readily the kernel swaps anonymous memory instead of dropping file pages. A swapped \
                 page of a trading process costs a disk read on the hot path.",
        cost: "Under memory pressure the kernel drops file caches first, and kills processes sooner.",
        impact: Impact::Medium,
        effective: "pswpout in /proc/vmstat does not increase.",
        reads: &["/proc/sys/vm/swappiness"],
        trading: Want::State("at most 10"),
        guide: Want::Value("0"),
        sources: &[GUIDE, LATENCY_PERFORMANCE, VM_DOC],
        judge: |context, setting| numbered(context, setting, |value| (0..=SWAPPINESS_MAX).contains(&value)),
        ..SYSCTL
    },
    Setting {
        id: "sysctl.vm.zone_reclaim_mode",
        acts_when: "memory is short",
        reason: "With a value other than 0, a thread that allocates on a full NUMA node reclaims pages there \
                 before it uses another node. The allocating thread does that work.",
        needs: Needs::ANY.with_config(&["NUMA"]),
        impact: Impact::Medium,
        effective: "zone_reclaim_success and zone_reclaim_failed in /proc/vmstat do not increase.",
        reads: &["/proc/sys/vm/zone_reclaim_mode"],
        both: Want::Value("0"),
        sources: &[GUIDE, VM_DOC],
        ..SYSCTL
    },
    Setting {
        id: "sysctl.vm.compaction_proactiveness",
        acts_when: "memory is fragmented",
        reason: "With a value above 0 the kernel compacts memory in the background without a request. Pages \
                 of running processes are moved. The kernel's documentation warns of latency spikes from it.",
        cost: "Huge pages become scarcer over time: reserve them at boot.",
        impact: Impact::Medium,
        needs: Needs::since(5, 9).with_config(&["COMPACTION"]),
        effective: "The kcompactd threads use no processor time while no program requests huge pages.",
        reads: &["/proc/sys/vm/compaction_proactiveness"],
        trading: Want::Value("0"),
        sources: &[VM_DOC],
        ..SYSCTL
    },
]);

/// A limit where the profile wants a state, and the exact value where it names one.
fn numbered(context: &Context<'_>, setting: &Setting, is_wanted: fn(i64) -> bool) -> Judgement {
    match setting.want(context.profile) {
        Want::State(_) => judge::sysctl_where(context, setting, |text| number(text).is_some_and(is_wanted)),
        _ => judge::sysctl(context, setting),
    }
}

/// A dirty ratio reads 0 while its counterpart in bytes is set.
fn dirty(context: &Context<'_>, setting: &Setting, twin: &str) -> Judgement {
    let judgement = judge::sysctl(context, setting);
    let twin_path = sysctl_path(twin);
    let bytes = context.host.file(&twin_path).known().and_then(|text| number(text)).unwrap_or(0);
    if !judgement.verdict.is_fault() || bytes <= 0 {
        return judgement;
    }
    let observed = format!("{}; {twin} is {bytes}", judgement.observed);
    let because = format!("{twin} is set and takes precedence");
    Judgement::new(Verdict::Shadowed, observed, because).at(twin_path)
}
