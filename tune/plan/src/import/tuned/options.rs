//! Targets and values of the options of TuneD's plug-ins.

use super::Unit;
use crate::import::Wishes;
use lowlat_settings::change::Target;

/// Options that write their value to a file: plug-in, option, file. `*` is the name of a device, `#` its number.
const FILES: [(&str, &str, &str); 22] = [
    ("vm", "transparent_hugepages", "/sys/kernel/mm/transparent_hugepage/enabled"),
    ("vm", "transparent_hugepage", "/sys/kernel/mm/transparent_hugepage/enabled"),
    ("vm", "transparent_hugepage.defrag", "/sys/kernel/mm/transparent_hugepage/defrag"),
    ("vm", "dirty_bytes", "/proc/sys/vm/dirty_bytes"),
    ("vm", "dirty_ratio", "/proc/sys/vm/dirty_ratio"),
    ("vm", "dirty_background_bytes", "/proc/sys/vm/dirty_background_bytes"),
    ("vm", "dirty_background_ratio", "/proc/sys/vm/dirty_background_ratio"),
    ("cpu", "governor", "/sys/devices/system/cpu/*/cpufreq/scaling_governor"),
    ("cpu", EPP, "/sys/devices/system/cpu/*/cpufreq/energy_performance_preference"),
    ("cpu", "energy_perf_bias", "/sys/devices/system/cpu/*/power/energy_perf_bias"),
    ("cpu", "pm_qos_resume_latency_us", "/sys/devices/system/cpu/*/power/pm_qos_resume_latency_us"),
    ("cpu", "boost", "/sys/devices/system/cpu/cpufreq/policy#/boost"),
    ("cpu", "no_turbo", "/sys/devices/system/cpu/intel_pstate/no_turbo"),
    ("cpu", "min_perf_pct", "/sys/devices/system/cpu/intel_pstate/min_perf_pct"),
    ("cpu", "max_perf_pct", "/sys/devices/system/cpu/intel_pstate/max_perf_pct"),
    ("acpi", "platform_profile", "/sys/firmware/acpi/platform_profile"),
    ("disk", "elevator", "/sys/block/*/queue/scheduler"),
    ("disk", "readahead", "/sys/block/*/queue/read_ahead_kb"),
    ("net", "nf_conntrack_hashsize", "/sys/module/nf_conntrack/parameters/hashsize"),
    ("selinux", "avc_cache_threshold", "/sys/fs/selinux/avc/cache_threshold"),
    ("scsi_host", "alpm", "/sys/class/scsi_host/*/link_power_management_policy"),
    ("uncore", "max_freq_khz", "/sys/devices/system/cpu/intel_uncore_frequency/*/max_freq_khz"),
];

const EPP: &str = "energy_performance_preference";

/// The files that list the possible values of another file beside them.
pub const CHOICES: [(&str, &str); 3] = [
    ("scaling_governor", "scaling_available_governors"),
    (EPP, "energy_performance_available_preferences"),
    ("platform_profile", "platform_profile_choices"),
];

/// Words of `energy_perf_bias` that the kernel knows, and the numbers that it shows.
pub const BIASES: [(&str, &str); 5] = [
    ("performance", "0"),
    ("balance-performance", "4"),
    ("normal", "6"),
    ("balance-power", "8"),
    ("power", "15"),
];

/// Plug-ins and options that leave no value behind, and why.
const WITHOUT_VALUE: [(&str, &str, &str); 5] = [
    ("cpu", "force_latency", "TuneD holds /dev/cpu_dma_latency while it runs; nothing is set that stays"),
    ("rtentsk", "", "TuneD keeps a socket with time stamps open while it runs; nothing is set that stays"),
    ("script", "", "lowlat runs no scripts and does not know what they set"),
    ("bootloader", "initrd", "lowlat does not change the initial file system"),
    ("", "", "lowlat has no counterpart"),
];

/// The files that an option writes, with `*` and `#`, and the value. `[vm]` accepts a share of the memory instead of
/// bytes.
pub fn file_of<'a>(plugin: &str, key: &str, value: &'a str) -> Option<(String, &'a str)> {
    let (.., path) = FILES.iter().find(|(owner, option, _)| (*owner, *option) == (plugin, key))?;
    match value.strip_suffix('%').filter(|_| plugin == "vm") {
        Some(share) => Some((path.replace("_bytes", "_ratio"), share.trim())),
        None => Some(((*path).to_owned(), value)),
    }
}

pub fn reason(unit: &Unit, key: &str) -> Option<&'static str> {
    let is_meant = |plugin: &str, option: &str| {
        (plugin.is_empty() || plugin == unit.plugin) && (option.is_empty() || key.starts_with(option))
    };
    WITHOUT_VALUE.iter().find(|(plugin, option, _)| is_meant(plugin, option)).map(|(.., why)| *why)
}

pub fn unquoted(value: &str) -> &str {
    value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(value)
}

pub fn target_of(path: &str) -> Target {
    match path.strip_prefix("/proc/sys/") {
        Some(key) => Target::Sysctl { key: key.replace('/', ".") },
        None => Target::File { path: path.to_owned() },
    }
}

/// A size in KiB: a number, or a number of sectors such as `8192 s`.
pub fn kib(value: &str) -> String {
    match value.split_once(char::is_whitespace) {
        Some((size, unit)) if unit.trim_start().starts_with('s') => {
            let operator = size.chars().next().filter(|first| matches!(first, '<' | '>'));
            let number = size.trim_start_matches(['<', '>']).parse::<u64>().map(|sectors| sectors / 2);
            let number = number.map_or_else(|_| size.to_owned(), |number| number.to_string());
            operator.map(String::from).unwrap_or_default() + &number
        }
        Some((size, _)) => size.to_owned(),
        None => value.to_owned(),
    }
}

/// Reads an option such as `service.NAME=stop,disable`.
pub fn service(place: &str, key: &str, value: &str, wishes: &mut Wishes) {
    let name = key.strip_prefix("service.").unwrap_or(key);
    let unit = if name.contains('.') { name.to_owned() } else { format!("{name}.service") };
    let words: Vec<&str> = value.split(',').map(str::trim).collect();
    let has = |word: &str| words.contains(&word);
    let state = match (has("start"), has("stop"), has("enable"), has("disable")) {
        (true, false, true, false) => "active, enabled",
        (false, true, false, true) => "inactive, disabled",
        (true, false, false, false) => "active",
        (false, true, false, false) => "inactive",
        _ => return wishes.leave(place, "lowlat starts and enables, or stops and disables, a service"),
    };
    wishes.ask(place, Target::Service { unit }, state);
}
