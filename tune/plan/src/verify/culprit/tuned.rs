//! Values that TuneD's active profile sets, by plugin.

use super::at_line;
use crate::verify::judge::Claim;
use crate::{import::tuned::file_of, verify::CulpritKind, verify::Evidence, verify::TunedOption};
use lowlat_host::{
    cmdline::CommandLine,
    snapshot::{glob_matches, sysctl_path},
};

/// Options of the scheduler plugin that decide where threads and interrupts go.
const PLACES: &[&str] = &["isolated_cores", "default_irq_smp_affinity", "ps_whitelist", "cgroup_ps_affinity"];

/// A claim for each value of an option. `|` separates alternatives; `>` and `<` before a number mean "only
/// if it is larger" or smaller; TuneD computes values with unresolved variables.
fn claims_of(option: &TunedOption) -> Vec<Claim> {
    let text = option.value.trim().trim_matches('"');
    let does = format!("[{}] sets {} = {text} as TuneD's active profile", option.plugin, option.key);
    let values = text.split('|').map(|value| value.trim().trim_matches(['>', '<', '=', '%']).trim());
    values.map(|value| claim(option, does.clone(), value)).collect()
}

/// A claim on a value, unless TuneD computes it.
fn claim(option: &TunedOption, does: String, value: &str) -> Claim {
    let by = at_line(CulpritKind::Tuned, &option.path, option.line, does);
    Claim { by, value: Some(value.to_owned()).filter(|value| !value.contains("${")) }
}

fn of<'a>(evidence: &'a Evidence, is_meant: impl Fn(&TunedOption) -> bool + 'a) -> Vec<Claim> {
    evidence.tuned.iter().filter(|option| is_meant(option)).flat_map(claims_of).collect()
}

pub(super) fn sysctl(evidence: &Evidence, key: &str) -> Vec<Claim> {
    of(evidence, |option| match option.plugin.as_str() {
        "sysctl" => option.key.replace('/', ".") == key,
        "scheduler" => key.strip_prefix("kernel.") == Some(&option.key),
        plugin => {
            file_of(plugin, &option.key, &option.value).is_some_and(|(path, _)| path == sysctl_path(key))
        }
    })
}

pub(super) fn path(evidence: &Evidence, path: &str) -> Vec<Claim> {
    let of_scheduler = |key: &str| {
        let file = path.strip_prefix("/sys/kernel/debug/sched/");
        file.is_some_and(|file| key.strip_prefix("sched_") == Some(file) || key == file.replace('/', "_"))
    };
    of(evidence, |option| match option.plugin.as_str() {
        "sysfs" => glob_matches(&option.key, path),
        "scheduler" => of_scheduler(&option.key),
        plugin => file_of(plugin, &option.key, &option.value)
            .is_some_and(|(glob, _)| glob_matches(&glob.replace('#', "*"), path)),
    })
}

/// The plugins for the scheduler and for interrupts, which both compute the CPUs.
pub(super) fn irqs(evidence: &Evidence) -> Vec<Claim> {
    let is_meant = |option: &TunedOption| match option.plugin.as_str() {
        "scheduler" => matches!(option.key.as_str(), "isolated_cores" | "default_irq_smp_affinity"),
        "irq" => option.key == "affinity",
        _ => false,
    };
    worked_out(of(evidence, is_meant))
}

pub(in crate::verify) fn threads(evidence: &Evidence) -> Vec<Claim> {
    let is_meant = |option: &TunedOption| {
        option.plugin == "scheduler"
            && (option.key.starts_with("group.") || PLACES.contains(&option.key.as_str()))
    };
    worked_out(of(evidence, is_meant))
}

/// A claim without a value, because TuneD computes it from the option.
fn worked_out(claims: Vec<Claim>) -> Vec<Claim> {
    claims.into_iter().map(|claim| Claim { value: None, ..claim }).collect()
}

/// `coalesce = adaptive-rx off rx-usecs 0`: alternating names and values.
pub(super) fn net(evidence: &Evidence, nic: &str, key: &str, field: &str) -> Vec<Claim> {
    let is_for_nic = |devices: &str| {
        devices.is_empty()
            || devices
                .split([',', ' '])
                .any(|name| lowlat_host::snapshot::component_matches(name.trim(), nic))
    };
    let options = evidence
        .tuned
        .iter()
        .filter(|option| option.plugin == "net" && option.key == key && is_for_nic(&option.devices));
    options
        .filter_map(|option| {
            let words: Vec<&str> = option.value.trim().trim_matches('"').split_whitespace().collect();
            let pair = words.chunks(2).find(|pair| pair.first().copied() == Some(field))?;
            let value = pair.get(1).map(|value| (*value).to_owned())?;
            claims_of(option).into_iter().next().map(|claim| Claim { value: Some(value), ..claim })
        })
        .collect()
}

/// `cmdline`, `cmdline_realtime` and similar options of the bootloader plugin.
pub(in crate::verify) fn parameter(evidence: &Evidence, name: &str) -> Vec<Claim> {
    let options = evidence
        .tuned
        .iter()
        .filter(|option| option.plugin == "bootloader" && option.key.starts_with("cmdline"));
    options
        .flat_map(|option| {
            let text = option.value.trim().trim_start_matches(['+', '-']).trim().trim_matches('"');
            let claim = |value: &str| {
                claim(option, format!("[bootloader] adds {name}={value} as TuneD's active profile"), value)
            };
            let line = CommandLine::parse(text);
            line.all(name).map(|value| claim(value.unwrap_or_default())).collect::<Vec<_>>()
        })
        .collect()
}
