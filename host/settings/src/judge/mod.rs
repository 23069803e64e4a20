//! Judges shared by many settings.

mod boot;
mod boot_cpus;
mod cpus;
pub mod each;
mod files;
mod idle;
mod sysctl;

pub use boot::boot_key;
pub use boot::{
    ParameterInForce, boot_token, boot_token_in_force, boot_token_shown, command_line, no_command_line,
    on_line,
};
pub use boot_cpus::{boot_cpus, boot_cpus_in_force, cpus_on_line};
pub use cpus::{
    boot_irq_list, housekeeping_list, isolated_list, kept_off_isolated, off_isolated, tickless_list,
};
pub use files::chosen_word;
pub use files::files;
pub use idle::{IDLE_DESCRIPTIONS, is_polling, is_shallow};
pub use sysctl::{sysctl, sysctl_where};

use crate::{Context, Judgement, Layer, Makers, Setting, Verdict, Want, same_meaning};
use lowlat_host::{HostSnapshot, Reading, kernel_version::KernelVersion};

/// The highest load averages of a host that is ready. The guide wants "0.00,0.00,0.00", but a command that
/// was just typed shows as a few hundredths.
pub const LOAD_READY_MAX: f64 = 0.1;

/// Options that judges read, beyond those that settings need.
pub const CONFIG_OPTIONS: &[&str] = &[
    "EFI_DISABLE_RUNTIME",
    "HZ",
    "NO_HZ_FULL",
    "PREEMPT",
    "PREEMPT_DYNAMIC",
    "PREEMPT_RT",
    "PSI",
    "PSI_DEFAULT_DISABLED",
    "RCU_NOCB_CPU",
    "RT_GROUP_SCHED",
    "SECURITY_SELINUX_BOOTPARAM",
];

/// Options for finding bugs in the kernel that make its work several times longer, without `CONFIG_`.
pub const DEBUG_OPTIONS: &[&str] = &[
    "DEBUG_ATOMIC_SLEEP",
    "DEBUG_KMEMLEAK",
    "DEBUG_LOCK_ALLOC",
    "DEBUG_OBJECTS",
    "DEBUG_PAGEALLOC_ENABLE_DEFAULT",
    "DEBUG_PREEMPT",
    "DEBUG_SPINLOCK",
    "IRQSOFF_TRACER",
    "KASAN",
    "KCSAN",
    "KMSAN",
    "LOCK_STAT",
    "PREEMPT_TRACER",
    "PROVE_LOCKING",
    "SLUB_DEBUG_ON",
];

/// True if the host is known to be a virtual machine.
pub fn is_virtual(context: &Context<'_>) -> bool {
    context.host.virtualization.is_virtual == Reading::Known(true)
}

/// The reason why a setting does not apply here, if any: the role leaves it out, the profile has no preference, the processor is another one,
/// or the kernel is too old, too new, or built without an option. If that cannot be decided, the judgement is unknown.
pub fn inapplicable(
    context: &Context<'_>,
    setting: &Setting,
    want: &Want,
    wanted: Option<&str>,
) -> Option<Judgement> {
    if context.role.leaves_out(setting.id) {
        return Some(Judgement::not_applicable("the role leaves it out"));
    }
    if matches!(want, Want::Nothing) {
        return Some(Judgement::not_applicable(format!("profile {} does not set it", context.profile)));
    }
    if wanted.is_none() {
        return Some(Judgement::not_applicable("this host gives no basis for a value"));
    }
    let kernel = &context.host.kernel;
    if setting.needs.x86 && kernel.is_x86() == Some(false) {
        let why = format!("only x86 hosts have it, and this kernel is for {}", kernel.machine);
        return Some(Judgement::not_applicable(why));
    }
    if setting.layer == Layer::Firmware && kernel.unsupported().is_some() && kernel.is_x86() == Some(false) {
        let why = format!("a setting of x86 and Arm servers; this kernel is for {}", kernel.machine);
        return Some(Judgement::not_applicable(why));
    }
    if let Some(judgement) = of_another_maker(context, setting.needs.makers) {
        return Some(judgement);
    }
    if let Some(version) = kernel.version.known().filter(|_| !is_shown(context.host, setting)) {
        if let Some(since) = setting.needs.since.filter(|since| version < since) {
            return Some(Judgement::not_applicable(format!(
                "kernel {version} is older than {since}, which introduced it"
            )));
        }
        if let Some(until) = setting.needs.until.filter(|until| version >= until) {
            return Some(Judgement::not_applicable(gone(*version, until, setting.needs.moved_to)));
        }
    }
    let is_off = |option: &&&str| kernel.config_option(option) == Reading::Known(None);
    let missing = setting.needs.config.iter().find(is_off)?;
    Some(Judgement::not_applicable(format!("this kernel is built without CONFIG_{missing}")))
}

/// True if the kernel shows that it has the setting, whatever its version: distributions backport settings and keep
/// removed ones. The first file that a row reads belongs to the setting; a row without files is judged by the options
/// that it needs.
fn is_shown(host: &HostSnapshot, setting: &Setting) -> bool {
    if let Some(own) = setting.reads.first() {
        return host.files_matching(own).any(|(_, reading)| reading.is_known());
    }
    let is_built = |option: &&str| matches!(host.kernel.config_option(option), Reading::Known(Some(_)));
    !setting.needs.config.is_empty() && setting.needs.config.iter().all(is_built)
}

/// The reason why a setting does not apply to the processor, by its maker; unknown if the maker is.
fn of_another_maker(context: &Context<'_>, makers: Makers) -> Option<Judgement> {
    let cpu = &context.host.cpu;
    let (is_theirs, whose) = match makers {
        Makers::All => return None,
        // Seen on any processor, so an unknown maker does not matter.
        Makers::NotAmd => (!cpu.is_amd(), "of other makers than AMD"),
        Makers::Amd => (cpu.is_amd(), "of AMD"),
        Makers::Intel => (cpu.is_intel(), "of Intel"),
    };
    match &cpu.vendor {
        _ if is_theirs => None,
        Reading::Known(vendor) => {
            let why = format!("a setting of processors {whose}; this one is {vendor}");
            Some(Judgement::not_applicable(why))
        }
        unread => Some(missing(unread, "vendor_id of /proc/cpuinfo")),
    }
}

fn gone(version: KernelVersion, until: KernelVersion, moved_to: &str) -> String {
    match moved_to {
        "" => format!("kernel {until} removed it; this is {version}"),
        place => format!("kernel {until} moved it to {place}; this is {version}"),
    }
}

/// True if the profile accepts a value.
pub fn satisfies(context: &Context<'_>, want: &Want, value: &str) -> bool {
    match want {
        Want::Nothing | Want::State(_) => true,
        Want::Value(wanted) => same_meaning(wanted, value),
        Want::OneOf(values) => values.iter().any(|wanted| same_meaning(wanted, value)),
        Want::Derived(derive) => derive(context).is_some_and(|wanted| same_meaning(&wanted, value)),
    }
}

/// The judgement for a reading without a value.
pub fn missing<T>(reading: &Reading<T>, path: &str) -> Judgement {
    let because = match reading {
        Reading::Known(_) | Reading::Absent => format!("{path} does not exist on this host"),
        Reading::Denied => format!("permission denied for {path}; run as root to read it"),
        Reading::Unparsable(why) => why.to_string(),
    };
    Judgement::unknown(because).at(path)
}

/// Judges a known value, and names its place.
pub fn known<'a, T>(
    reading: &'a Reading<T>,
    path: &str,
    judge: impl FnOnce(&'a T) -> Judgement,
) -> Judgement {
    reading.known().map_or_else(|| missing(reading, path), judge).at(path)
}

/// Facts that rows are judged by although they name other files: their place, and the rows that need them.
type Basis = (&'static str, fn(&Setting, &Want) -> bool);
const BASES: [Basis; 6] = [
    // The processor decides whether a firmware setting exists, and what many rows want.
    ("/proc/cpuinfo", |setting, want| setting.layer == Layer::Firmware || matches!(want, Want::Derived(_))),
    ("/sys/devices/system/cpu/cpufreq", |setting, _| setting.id.contains("cpufreq")),
    ("/sys/devices/system/cpu/cpu*/cache", |setting, _| rests_on_place(setting)),
    ("/sys/devices/system/cpu/cpu*/cpuidle", |setting, _| {
        setting.id.starts_with("sysfs.cpuidle.") || setting.id == "sysfs.cpu_dma_latency"
    }),
    ("/sys/devices/system/cpu", |setting, _| rests_on_place(setting) || OF_CPUS.contains(&setting.id)),
    ("/sys/devices/system/node", |setting, _| rests_on_place(setting) || OF_NODES.contains(&setting.id)),
];

/// Rows that compare the places of CPUs in the topology.
fn rests_on_place(setting: &Setting) -> bool {
    setting.id.starts_with("sysfs.topology.") || setting.id == "sysfs.resctrl.ways"
}

/// Further rows for which each CPU's directory is read.
const OF_CPUS: &[&str] = &["boot.amd_pstate", "sysfs.cpu_dma_latency", "sysfs.smt.siblings_split"];
/// Further rows that compare NUMA nodes.
const OF_NODES: &[&str] = &[
    "firmware.acpi_slit",
    "firmware.llc_as_numa_node",
    "firmware.memory_proximity_reporting_for_io",
    "firmware.numa_memory_domains_per_socket",
    "memory.far_node_demotion",
    "memory.huge_pages_spread",
    "memory.population_balance",
    "nic.isolated_cpus_near",
    "nic.numa_node",
];

/// Makes a judgement unknown if it is good or not applicable only because something was not read: the facts that it is
/// judged by, or the directory of its file.
pub fn unless_unread(
    context: &Context<'_>,
    setting: &Setting,
    want: &Want,
    judgement: Judgement,
) -> Judgement {
    let is_open = matches!(judgement.verdict, Verdict::Good | Verdict::NotApplicable);
    if !is_open || matches!(want, Want::Nothing) {
        return judgement;
    }
    for (place, _) in BASES.iter().filter(|(_, needs)| needs(setting, want)) {
        let listed = context.host.listed(place, ());
        if !listed.is_known() {
            return missing(&listed, place);
        }
    }
    let is_below = |place: &str, folder: &str| {
        place.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let seen_at =
        judgement.seen_at.first().map(String::as_str).or(setting.reads.first().copied()).unwrap_or_default();
    match context.host.unread.iter().find(|(folder, _)| is_below(seen_at, folder)) {
        Some((folder, missing_folder)) if judgement.verdict == Verdict::NotApplicable => {
            missing(missing_folder, folder)
        }
        _ => judgement,
    }
}

/// Creates a judgement "as wanted" with a note for the user.
pub fn good_because(observed: impl Into<String>, because: impl Into<String>) -> Judgement {
    Judgement::new(Verdict::Good, observed, because)
}

/// True if the kernel is at least this version; `None` if its version is unknown.
pub fn kernel_at_least(host: &HostSnapshot, version: KernelVersion) -> Option<bool> {
    host.kernel.version.known().map(|v| *v >= version)
}

/// At most `shown` labels of a list, and the number of further ones, as text.
pub fn some_of(labels: &[String], shown: usize) -> String {
    first_of(labels, shown, [", ", " and "])
}

/// The first texts of a list with a separator between them, and the number of further ones after another.
pub fn first_of(texts: &[String], shown: usize, [between, before_more]: [&str; 2]) -> String {
    let text = texts.iter().take(shown).cloned().collect::<Vec<_>>().join(between);
    match texts.len().saturating_sub(shown) {
        0 => text,
        more => format!("{text}{before_more}{more} more"),
    }
}
