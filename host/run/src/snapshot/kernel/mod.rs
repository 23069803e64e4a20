//! Reads the kernel: release, command line, configuration, state, and the sysctl files applied at boot.

mod config;
mod identity;
mod sysctl_files;

use super::formats;
use crate::Root;
use lowlat_host::{Reading, cmdline::CommandLine, snapshot::KernelFacts};
use std::collections::BTreeSet;

pub use config::{BuiltInLine, built_in_line};
pub use sysctl_files::of_classic as sysctl_conf;

/// Place of the kernel's configuration in [`lowlat_host::HostSnapshot::unread`].
const CONFIG_PLACE: &str = "the kernel's configuration";
/// File that exists while SELinux runs.
const SELINUX_ENFORCE: &str = "/sys/fs/selinux/enforce";
/// Names of the security modules in use, with commas between them.
const SECURITY_MODULES: &str = "/sys/kernel/security/lsm";
const SELINUX_CONFIG: &str = "/etc/selinux/config";

pub(super) fn read(root: &Root, config_options: &[&str]) -> KernelFacts {
    let release = identity::release(root);
    let build = identity::build(root);
    KernelFacts {
        version: identity::version(&release),
        machine: identity::machine(root, &release),
        command_line: root.read("/proc/cmdline").map(|text| CommandLine::parse(&text)),
        config: noted(root, config::read(root, release.known().map(String::as_str), config_options)),
        tainted: root.read_as("/proc/sys/kernel/tainted", "a number of taint flags"),
        lockdown: formats::chosen_word(root, "/sys/kernel/security/lockdown"),
        selinux: selinux_mode(root),
        selinux_configured: selinux_configured(root),
        // Found by the boot loader's rules, outside of this crate.
        default_boot_line: Reading::Absent,
        is_realtime: is_realtime(root, &build),
        load_average: load_average(root),
        uptime_s: uptime(root),
        distribution: identity::distribution(root),
        boot_id: root.read("/proc/sys/kernel/random/boot_id").map(|text| text.trim().to_owned()),
        machine_id_digest: machine_id_digest(root),
        modules: modules(root),
        sysctl_files: sysctl_files::read(root),
        release,
        build,
    }
}

/// The digest of the machine's ID (machine-id(5)).
pub fn machine_id_digest(root: &Root) -> Reading<String> {
    root.read("/etc/machine-id").map(|text| lowlat_host::digest(text.trim()))
}

/// Kernels with the PREEMPT_RT patches have /sys/kernel/realtime; mainline kernels (since 6.12) show it only
/// in the build line.
fn is_realtime(root: &Root, build: &Reading<String>) -> Reading<bool> {
    let told = formats::read_flag(root, "/sys/kernel/realtime");
    told.or(|| build.as_ref().map(|line| line.contains("PREEMPT_RT") || line.contains("PREEMPT RT")))
}

/// The mode of SELinux: "enforcing", "permissive", or "disabled" if the kernel does not run it; absent if neither file
/// shows it.
fn selinux_mode(root: &Root) -> Reading<String> {
    let running = formats::read_flag(root, SELINUX_ENFORCE);
    running.map(|enforces| if enforces { "enforcing" } else { "permissive" }.to_owned()).or(|| {
        root.read(SECURITY_MODULES).and_then(|modules| {
            let is_in_use = modules.split(',').any(|module| module == "selinux");
            Reading::from_option((!is_in_use).then(|| "disabled".to_owned()))
        })
    })
}

/// SELINUX= of the configuration, the mode of later boots: "enforcing", "permissive", "disabled".
fn selinux_configured(root: &Root) -> Reading<String> {
    root.read(SELINUX_CONFIG).and_then(|text| {
        let value = |line: &str| line.trim().strip_prefix("SELINUX=").map(|value| value.trim().to_owned());
        Reading::from_option(text.lines().filter_map(value).next_back())
    })
}

/// Records an unread configuration: rows must not take it for an option that is off.
fn noted<T>(root: &Root, config: Reading<T>) -> Reading<T> {
    root.or_unread(CONFIG_PLACE, config.as_ref().map(|_| ()));
    config
}

/// The first word of each line of /proc/modules.
fn modules(root: &Root) -> Reading<BTreeSet<String>> {
    const PATH: &str = "/proc/modules";
    let name = |line: &str| {
        let (name, rest) = line.split_once(' ')?;
        rest.split(' ').next()?.parse::<u64>().ok()?;
        Some(name.to_owned())
    };
    root.read(PATH).parse(PATH, "lines with a module and its size", |text| text.lines().map(name).collect())
}

/// The load averages over 1, 5 and 15 minutes, from /proc/loadavg: "0.52 0.58 0.59 1/467 12345".
pub fn load_average(root: &Root) -> Reading<[f64; 3]> {
    let path = "/proc/loadavg";
    root.read(path).parse(path, "three load averages", |text| {
        let mut numbers = text.split_whitespace().map(measure);
        Some([numbers.next()??, numbers.next()??, numbers.next()??])
    })
}

fn uptime(root: &Root) -> Reading<f64> {
    let path = "/proc/uptime";
    root.read(path).parse(path, "the seconds since boot", |text| measure(text.split_whitespace().next()?))
}

/// A number as the kernel prints measurements: finite and not negative, where Rust would also parse "inf" and
/// "NaN".
fn measure(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0)
}

#[cfg(test)]
mod tests;
