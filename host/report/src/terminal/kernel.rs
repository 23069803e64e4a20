//! Text of the kernel, processors, power, kernel threads and services of a host.

use crate::fields::{Page, or_unknown, yes_no};
use crate::hardware::kernel_facts;
use lowlat_host::{
    Allocation, Count, CpuSet, HostSnapshot, Reading,
    snapshot::{CpuFreq, KernelThread, SchedPolicy, ServiceSource, Workqueue},
};
use lowlat_text::text::joined;
use lowlat_text::units::{count, plural};
use std::collections::BTreeMap;

/// Highest number of vulnerabilities, services and thread families listed.
const ROWS_MAX: usize = 24;

/// Adds release, command line and state of the kernel.
pub fn add_kernel(page: &mut Page, snapshot: &HostSnapshot) {
    page.heading("Kernel");
    // The target is among the services.
    for (label, text) in kernel_facts(snapshot).iter().filter(|(label, _)| *label != "Default target") {
        page.field(label, text);
    }
    page.fact("Up", &snapshot.kernel.uptime_s.as_ref().map(|seconds| uptime(*seconds)));
}

fn uptime(seconds: f64) -> String {
    let hours = seconds / 3_600.0;
    if hours < 48.0 { format!("{hours:.1} hours") } else { format!("{:.1} days", hours / 24.0) }
}

/// Adds model, microcode, clocks and mitigations.
pub fn add_cpu(page: &mut Page, snapshot: &HostSnapshot) {
    let cpu = &snapshot.cpu;
    page.heading("Processor");
    page.fact("Model", &cpu.model_name);
    let signature = [("family", &cpu.family), ("model", &cpu.model), ("stepping", &cpu.stepping)]
        .map(|(word, number)| Some(format!("{word} {}", number.known()?)));
    page.field("Signature", &joined(signature, ", "));
    let differs =
        if cpu.microcode_uniform.known() == Some(&false) { " (not the same on every CPU)" } else { "" };
    page.fact("Microcode", &cpu.microcode.as_ref().map(|code| format!("{code}{differs}")));
    page.fact("SMT", &cpu.smt_control);
    let clocks =
        cpu.clocksources_available.known().map_or_else(String::new, |all| format!(" of {}", all.join(" ")));
    page.fact("Clock source", &cpu.clocksource.as_ref().map(|clock| format!("{clock}{clocks}")));
    let tsc: Vec<&str> = ["constant_tsc", "nonstop_tsc", "tsc_known_freq", "tsc_reliable", "rdtscp"]
        .into_iter()
        .filter(|flag| cpu.has_flag(flag) == Reading::Known(true))
        .collect();
    page.field("TSC flags", &tsc.join(" "));
    for kind in &snapshot.topology.core_types {
        page.field("Core type", &format!("{}: {:#}", kind.name, kind.cpus));
    }
    for (name, state) in cpu.vulnerabilities.iter().take(ROWS_MAX) {
        match state.text() {
            "Not affected" => {}
            "" => page.field("Vulnerability", &format!("{name}: unknown")),
            _ => page.field("Vulnerability", &format!("{name}: {state}")),
        }
    }
}

/// Adds frequency scaling and idle states.
pub fn add_power(page: &mut Page, snapshot: &HostSnapshot) {
    let cpu = &snapshot.cpu;
    page.heading("Power");
    if cpu.frequency.is_empty() {
        page.field("Frequency", "no scaling driver");
    }
    for (text, cpus) in frequency_lines(&cpu.frequency) {
        page.field("Frequency", &format!("{cpus:#}: {text}"));
    }
    page.fact("Boost", &yes_no(&cpu.boost));
    let governor = cpu.idle_governor.known().map_or_else(String::new, |word| format!(", governor {word}"));
    page.fact("Idle driver", &cpu.idle_driver.as_ref().map(|driver| format!("{driver}{governor}")));
    for state in &cpu.idle_states {
        let latency = state.exit_latency_us.as_ref().map(|us| format!("{us} us to wake"));
        let enabled = if state.cpus_enabled.is_empty() {
            "off everywhere".to_owned()
        } else if state.cpus_enabled == state.cpus {
            "on everywhere".to_owned()
        } else {
            format!("on for {:#}", state.cpus_enabled)
        };
        page.field("Idle state", &format!("{}: {latency}, {enabled}", state.name));
    }
}

/// Describes frequency policies, grouping equal ones.
pub fn frequency_lines(policies: &[CpuFreq]) -> Vec<(String, CpuSet)> {
    let mut lines: BTreeMap<String, CpuSet> = BTreeMap::new();
    for policy in policies {
        let mut text = format!("{}, governor {}", policy.driver, policy.governor);
        if let (Some(low), Some(high)) = (policy.scaling_min_khz.known(), policy.scaling_max_khz.known()) {
            text.push_str(&format!(", {} to {} MHz", low / 1_000, high / 1_000));
        }
        if let Some(high) = policy.cpuinfo_max_khz.known() {
            text.push_str(&format!(" (hardware up to {} MHz)", high / 1_000));
        }
        if let Some(preference) = policy.energy_performance_preference.known() {
            text.push_str(&format!(", preference {preference}"));
        }
        let cpus = lines.entry(text).or_default();
        *cpus = cpus.union(&policy.cpus);
    }
    let mut lines: Vec<(String, CpuSet)> = lines.into_iter().collect();
    lines.sort_by_key(|(_, cpus)| cpus.lowest());
    lines
}

/// Adds kernel threads and workqueues.
pub fn add_threads(page: &mut Page, snapshot: &HostSnapshot, allocation: Option<&Allocation>) {
    let tasks = &snapshot.tasks;
    page.heading("Kernel threads");
    let movable: Vec<&KernelThread> = tasks.kernel_threads.iter().filter(|thread| !thread.is_bound).collect();
    let bound = tasks.kernel_threads.len() - movable.len();
    let threads = format!("{bound} bound to a CPU, {} movable", movable.len());
    let threads = snapshot.listed("/proc", threads).and_then(|text| snapshot.listed("/proc/*/stat", text));
    page.field("Threads", &or_unknown(&threads));
    let isolated = allocation.map(|a| &a.isolated).filter(|isolated| !isolated.is_empty());
    if let Some(isolated) = isolated.filter(|_| threads.is_known()) {
        let reaches =
            |thread: &&KernelThread| thread.cpus_allowed.as_ref().map(|cpus| !cpus.is_disjoint(isolated));
        let count: Count = movable.iter().map(reaches).collect();
        page.field("On chosen CPUs", &format!("{count} of the movable threads may run there"));
    }
    for (family, text) in realtime_families(&tasks.kernel_threads).into_iter().take(ROWS_MAX) {
        page.field("Real-time", &format!("{family}: {text}"));
    }
    page.fact("Unbound work", &tasks.workqueue_cpus.as_ref().map(|cpus| format!("{cpus:#}")));
    // A queue that was not read is shown too, because it may differ.
    let differs = |queue: &&Workqueue| match (&queue.cpus, &tasks.workqueue_cpus) {
        (Reading::Known(cpus), Reading::Known(usual)) => cpus != usual,
        (cpus, _) => !cpus.is_known(),
    };
    for queue in tasks.workqueues.iter().filter(differs).take(ROWS_MAX) {
        page.field("Workqueue", &format!("{}: {:#}", queue.name, queue.cpus));
    }
}

/// Counts threads with real-time policies, by name without the CPU number.
fn realtime_families(threads: &[KernelThread]) -> BTreeMap<&str, String> {
    let mut families: BTreeMap<&str, (usize, String)> = BTreeMap::new();
    for thread in threads {
        let policy = match thread.policy {
            SchedPolicy::Fifo => "fifo",
            SchedPolicy::Rr => "rr",
            SchedPolicy::Deadline => "deadline",
            _ => continue,
        };
        let family = thread.comm.split(['/', ':']).next().unwrap_or_default();
        let entry = families.entry(family).or_insert_with(|| (0, format!("{policy} {}", thread.rt_priority)));
        entry.0 += 1;
    }
    let in_words = |(number, text): (usize, String)| format!("{}, {text}", plural(number, "thread"));
    families.into_iter().map(|(family, entry)| (family, in_words(entry))).collect()
}

/// Services that discipline the clock.
const CLOCK_SERVICES: &[&str] = &[
    "chronyd",
    "chrony",
    "ntpd",
    "ntp",
    "ntpsec",
    "systemd-timesyncd",
    "ptp4l",
    "phc2sys",
    "sfptpd",
    "openntpd",
];

/// Adds tuned, irqbalance, clock discipline, control groups.
pub fn add_services(page: &mut Page, snapshot: &HostSnapshot) {
    let services = &snapshot.services;
    page.heading("Services");
    match services.source {
        ServiceSource::SystemdBus => {}
        ServiceSource::UnitFiles => page.note("States are from unit files; systemd did not answer."),
        ServiceSource::None => page.note("No service manager was found."),
    }
    page.fact("Default target", &services.default_target);
    let tuned = services.tuned.profile.as_ref().map(|profile| match profile.as_str() {
        "" => "no profile".to_owned(),
        profile => format!("profile {profile}, rollback {}", services.tuned.rollback),
    });
    let has_tuned = services.units.contains_key("tuned.service");
    let no_profile = if has_tuned { "unknown profile" } else { "not installed" };
    page.field("tuned", &if tuned.is_absent() { no_profile.to_owned() } else { tuned.to_string() });
    let banned = services.irqbalance.banned_cpus.as_ref().map(|cpus| format!("; banned {cpus:#}"));
    let is_known =
        services.source != ServiceSource::None && snapshot.listed("systemd's unit files", ()).is_known();
    let or_unknown = |none: &str| if is_known { none.to_owned() } else { "unknown".to_owned() };
    let state = service_state(snapshot, "irqbalance").unwrap_or_else(|| or_unknown("not installed"));
    page.field("irqbalance", &format!("{state}{}", banned.known().map_or("", String::as_str)));
    let clocks: Vec<String> = CLOCK_SERVICES
        .iter()
        .filter_map(|name| Some(format!("{name} {}", service_state(snapshot, name)?)))
        .collect();
    let clocks = if clocks.is_empty() { or_unknown("none found") } else { clocks.join("; ") };
    page.field("Clock discipline", &clocks);
    let is_active = |state: &String| state == "active";
    let active: Count = services.units.values().map(|unit| unit.active.as_ref().map(is_active)).collect();
    if !services.units.is_empty() {
        let bound = if is_known { "" } else { "at least " };
        let text = format!("{bound}{active} active of {} checked", count(services.units.len() as u64));
        page.field("Units", &text);
    }
    page.fact(
        "Control groups",
        &services.cgroup_version.as_ref().map(|version| match version {
            0 => "hybrid".to_owned(),
            version => format!("version {version}"),
        }),
    );
    for partition in services.cpuset_partitions.iter().take(ROWS_MAX) {
        page.field(
            "Cpuset partition",
            &format!("{}: {}, {:#}", partition.group, partition.state, partition.cpus),
        );
    }
}

/// Returns the state of an installed service, such as "active, enabled".
fn service_state(snapshot: &HostSnapshot, name: &str) -> Option<String> {
    let unit = snapshot.services.units.get(&format!("{name}.service"))?;
    if unit.active.text() != "active" && unit.enablement.is_absent() {
        return None;
    }
    let enablement = unit.enablement.known().map_or_else(String::new, |word| format!(", {word}"));
    Some(format!("{}{enablement}", unit.active))
}
