//! Judges the observed facts.

use super::{BusyThread, BusyThreads, FrequencyFacts, ReadinessFacts, ReadinessPoint, ReadinessState};
use lowlat_host::{CpuSet, Reading};
use lowlat_settings::judge::LOAD_READY_MAX;
use std::collections::BTreeMap;

/// The governor that keeps the highest frequency.
const PERFORMANCE: &str = "performance";
/// Maximum number of names in one text.
const NAMED_MAX: usize = 8;

/// Judges one kind of fact.
type Check = fn(&ReadinessFacts) -> ReadinessPoint;

/// The points with their names, and whether a measurement of isolated CPUs should wait for them.
const CHECKS: [(&str, bool, Check); 6] = [
    ("load", true, load),
    ("affinity", false, affinity),
    ("profile", false, profile),
    ("swap", true, swap),
    ("governor", false, governor),
    ("busy_threads", true, busy_threads),
];

/// Judges whether the host is ready, one point per kind of fact.
pub fn judge(facts: &ReadinessFacts) -> Vec<ReadinessPoint> {
    let point = |(id, is_blocking, check): (&str, bool, Check)| ReadinessPoint {
        id: id.to_owned(),
        is_blocking,
        ..check(facts)
    };
    CHECKS.map(point).into()
}

fn ready(observed: impl Into<String>) -> ReadinessPoint {
    ReadinessPoint { state: ReadinessState::Ready, ..not_ready(observed, "") }
}

fn not_ready(observed: impl Into<String>, action: impl Into<String>) -> ReadinessPoint {
    let (state, observed, action) = (ReadinessState::NotReady, observed.into(), action.into());
    ReadinessPoint { state, observed, action, ..ReadinessPoint::default() }
}

fn not_known(observed: impl Into<String>, action: impl Into<String>) -> ReadinessPoint {
    ReadinessPoint { state: ReadinessState::NotKnown, ..not_ready(observed, action) }
}

/// For a file without a value: "/proc/loadavg: absent".
fn missing<T>(reading: &Reading<T>, path: &str) -> ReadinessPoint {
    let observed = format!("{path}: {}", reading.missing_in_words().unwrap_or_default());
    let action = match reading {
        Reading::Denied => "Run lowlat as root.",
        _ => "Check it manually.",
    };
    not_known(observed, action)
}

/// The 1-minute average decides: the other two lag behind and would delay a quiet host for a long time.
fn load(facts: &ReadinessFacts) -> ReadinessPoint {
    let Reading::Known([one, five, fifteen]) = &facts.load_average else {
        return missing(&facts.load_average, "/proc/loadavg");
    };
    let is_calm = |load: &f64| (0.0..=LOAD_READY_MAX).contains(load);
    let past = if is_calm(five) && is_calm(fifteen) {
        ""
    } else {
        "; the 5- and 15-minute averages lag behind, so the 1-minute one decides"
    };
    let observed = format!("{one:.2}, {five:.2} and {fifteen:.2} over 1, 5 and 15 minutes{past}");
    if is_calm(one) {
        return ready(observed);
    }
    let busy = facts.busy.known().map(|busy| busy_anywhere(busy, facts.look_ms)).unwrap_or_default();
    not_ready(
        observed,
        format!(
            "Wait until it is at most {LOAD_READY_MAX} (--when-quiet does this): the 1-minute average takes a few \
             minutes to fall.{busy} Spinning threads and threads that wait for a disk also count as load."
        ),
    )
}

fn busy_anywhere(busy: &BusyThreads, look_ms: u64) -> String {
    let mut all: Vec<_> = busy.measured.iter().chain(&busy.elsewhere).cloned().collect();
    all.sort_by_key(|thread| std::cmp::Reverse(thread.used_ms));
    let count = busy.measured_count.saturating_add(busy.elsewhere_count);
    if all.is_empty() {
        return " No thread used CPU time just now.".to_owned();
    }
    format!(" Busy just now: {}.", named_threads(&all, count, look_ms))
}

fn affinity(facts: &ReadinessFacts) -> ReadinessPoint {
    let Reading::Known(own) = &facts.own_cpus else {
        return missing(&facts.own_cpus, "/proc/self/status, Cpus_allowed_list");
    };
    let reached = own.intersection(&facts.measured);
    if reached.is_empty() {
        return ready(format!("this process may use {own:#}, and none of them is measured"));
    }
    if facts.housekeeping.is_empty() {
        return not_ready(
            format!("every CPU is measured ({:#}), so lowlat itself runs on one of them", facts.measured),
            "Leave a CPU out with --cpus.",
        );
    }
    not_ready(
        format!("this process may use {own:#}, and {reached:#} of them are measured"),
        format!(
            "Start it from a shell on the housekeeping CPUs: taskset -c {} lowlat jitter. Ordinary processes \
             can reach the measured CPUs in the same way.",
            facts.housekeeping
        ),
    )
}

fn profile(facts: &ReadinessFacts) -> ReadinessPoint {
    let profile = &facts.profile;
    let (name, good) = (&profile.name, profile.good_count);
    let rows = |what: &str, ids: &[String]| {
        let (count, named) = (ids.len(), named_ids(ids));
        format!("boot and TuneD rows of profile {name}: {good} good, {count} {what}: {named}")
    };
    if !profile.faults.is_empty() {
        let action = "See these rows in lowlat audit. Until then the host is measured unchanged.";
        return not_ready(rows("with a fault", &profile.faults), action);
    }
    if !profile.unknown.is_empty() || good == 0 {
        let observed = rows("unknown", &profile.unknown);
        let observed = observed.trim_end_matches([':', ' ']);
        return not_known(observed, "See these rows in lowlat audit; run it as root to see more.");
    }
    ready(format!("all {good} applicable boot and TuneD rows of profile {name} are good"))
}

fn swap(facts: &ReadinessFacts) -> ReadinessPoint {
    let look_ms = facts.look_ms;
    match (&facts.swap.in_pages, &facts.swap.out_pages) {
        (Reading::Known(0), Reading::Known(0)) => ready(format!("no page was swapped in {look_ms} ms")),
        (Reading::Known(read), Reading::Known(written)) => not_ready(
            format!("{read} pages swapped in and {written} out in {look_ms} ms"),
            "Wait until swapping ends, or find what uses up the memory (vmstat 1, ps -eo pid,rss,comm).",
        ),
        (Reading::Known(_), missed) | (missed, _) => missing(missed, "/proc/vmstat, pswpin and pswpout"),
    }
}

fn governor(facts: &ReadinessFacts) -> ReadinessPoint {
    let governed: Vec<&FrequencyFacts> =
        facts.clocks.iter().filter(|clock| !clock.governor.is_absent()).collect();
    let is_fixed = |of: &FrequencyFacts| matches!(&of.limits_khz, [Reading::Known(low), Reading::Known(high)] if low == high);
    let mut free: BTreeMap<String, CpuSet> = BTreeMap::new();
    let mut unknown = CpuSet::new();
    for clock in &governed {
        match &clock.governor {
            Reading::Known(name) if name == PERFORMANCE => {}
            _ if is_fixed(clock) => {}
            Reading::Known(name) => {
                free.entry(name.clone()).or_default().insert(clock.cpu);
            }
            _ => {
                unknown.insert(clock.cpu);
            }
        }
    }
    let clocked = frequencies(&facts.clocks);
    if !free.is_empty() {
        let named: Vec<String> = free.iter().map(|(name, cpus)| format!("{name} on {cpus:#}")).collect();
        return not_ready(
            format!("{}{clocked}", named.join(", ")),
            "Set the performance governor (cpupower frequency-set -g performance); see lowlat audit.",
        );
    }
    if !unknown.is_empty() {
        let observed = format!("cannot read the governor of {unknown:#}");
        return not_known(observed, "Check scaling_governor manually.");
    }
    if governed.is_empty() {
        return ready("the measured CPUs have no governor (no cpufreq)");
    }
    let is_same = governed.iter().all(|clock| clock.governor.text() == PERFORMANCE);
    let what = if is_same { "performance" } else { "performance, or one fixed frequency," };
    ready(format!("{what} on all measured CPUs{clocked}"))
}

/// ", 3693 to 3700 MHz".
fn frequencies(clocks: &[FrequencyFacts]) -> String {
    let khz = || clocks.iter().flat_map(|clock| &clock.khz).filter_map(Reading::known);
    match (khz().min(), khz().max()) {
        (Some(low), Some(high)) if low / 1_000 == high / 1_000 => format!(", {} MHz", low / 1_000),
        (Some(low), Some(high)) => format!(", {} to {} MHz", low / 1_000, high / 1_000),
        _ => String::new(),
    }
}

fn busy_threads(facts: &ReadinessFacts) -> ReadinessPoint {
    let Reading::Known(busy) = &facts.busy else { return missing(&facts.busy, "/proc") };
    let look_ms = facts.look_ms;
    if busy.measured_count > 0 {
        let named = named_threads(&busy.measured, busy.measured_count, look_ms);
        let observed = format!("in {look_ms} ms on measured CPUs: {named}");
        return not_ready(observed, what_to_do(busy, &facts.housekeeping));
    }
    let observed = format!("no other thread used CPU time on measured CPUs in {look_ms} ms");
    if busy.unseen.is_empty() {
        return ready(observed);
    }
    not_known(
        format!("{observed}, but {}", busy.unseen),
        "Run lowlat as root, and not in a container, to see all threads.",
    )
}

fn what_to_do(busy: &BusyThreads, housekeeping: &CpuSet) -> String {
    let mut steps = Vec::new();
    if busy.measured.iter().any(|thread| !thread.is_kernel) {
        let elsewhere = format!(", move them (taskset -pc {housekeeping} PID)");
        let elsewhere = if housekeeping.is_empty() { "" } else { &elsewhere };
        steps.push(format!("Stop the processes{elsewhere}, or leave their CPUs out with --cpus."));
    }
    if busy.measured.iter().any(|thread| thread.is_kernel) {
        steps.push("For kernel threads see the kthread and irq rows of lowlat audit.".to_owned());
    }
    steps.push("--force measures anyway.".to_owned());
    steps.join(" ")
}

/// "md (pid 12, CPU 3, 100 %), kernel thread ksoftirqd/3 (pid 30, CPU 3, 4 %) and 5 more". `count` is the
/// total number.
fn named_threads(threads: &[BusyThread], count: usize, look_ms: u64) -> String {
    and_more(threads.iter().map(|thread| in_words(thread, look_ms)), count)
}

/// "boot.nohz_full, boot.isolcpus and 3 more".
fn named_ids(ids: &[String]) -> String {
    and_more(ids.iter().cloned(), ids.len())
}

fn and_more(words: impl Iterator<Item = String>, count: usize) -> String {
    let words: Vec<String> = words.take(NAMED_MAX).collect();
    let named = words.join(", ");
    match count.saturating_sub(words.len()) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

fn in_words(thread: &BusyThread, look_ms: u64) -> String {
    let kind = if thread.is_kernel { "kernel thread " } else { "" };
    let tid = if thread.tid == thread.pid { String::new() } else { format!(", thread {}", thread.tid) };
    let share = thread.used_ms.saturating_mul(100).checked_div(look_ms).unwrap_or(0).clamp(1, 100);
    format!("{kind}{} (pid {}{tid}, CPU {}, {share} %)", thread.comm, thread.pid, thread.cpu)
}

#[cfg(test)]
mod tests;
