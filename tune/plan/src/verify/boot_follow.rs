//! Checks whether the kernel follows a parameter on its command line.

use super::Culprit;
use super::culprit;
use super::judge::{Scene, culprit_of};
use lowlat_host::{CpuSet, Reading, cmdline::CommandLine};
use lowlat_settings::{
    Verdict,
    change::{BootToken, Target},
    same_meaning,
};

/// The value that the kernel shows instead.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct NotFollowed {
    /// The shown value; empty to show the parameter itself.
    pub(super) observed: String,
    pub(super) why: String,
    /// The program or file that set it after the start, if known.
    pub(super) by: Option<Culprit>,
}

/// Parameters whose effect can be changed while the host runs, and the file that shows it.
const SHOWN_IN: &[(&str, &str)] = &[
    ("transparent_hugepage", "/sys/kernel/mm/transparent_hugepage/enabled"),
    ("nmi_watchdog", "/proc/sys/kernel/nmi_watchdog"),
    ("nosoftlockup", "/proc/sys/kernel/soft_watchdog"),
    ("mce", "/sys/devices/system/machinecheck/machinecheck0/ignore_ce"),
    ("rcupdate.rcu_normal_after_boot", "/sys/kernel/rcu_normal"),
    ("clocksource", "/sys/devices/system/clocksource/clocksource0/current_clocksource"),
];

/// The kernel's deviation from the parameter, if any.
pub(super) fn does_not_follow(scene: &Scene<'_>, token: &BootToken) -> Option<NotFollowed> {
    let value = token.value.as_deref()?;
    let topology = &scene.host.topology;
    let (fault, is_shown) = match token.name.as_str() {
        "isolcpus" => (isolated(scene, value), topology.isolated.is_known()),
        "nohz_full" => (nohz_full(scene, value), topology.nohz_full.is_known()),
        _ => (module_parameter(scene, token, value), false),
    };
    // If the kernel shows the set, that decides.
    fault.or_else(|| if is_shown { None } else { by_the_catalogue(scene, token) })
}

/// Without the flag `domain` the scheduler still balances onto the CPUs (kernel-parameters.txt).
fn isolated(scene: &Scene<'_>, value: &str) -> Option<NotFollowed> {
    let line = CommandLine::parse(&format!("isolcpus={value}"));
    let planned = line.cpus("isolcpus", lowlat_host::CPU_ID_MAX + 1)?.ok()?;
    let flags = line.isolation();
    if !flags.contains(&"domain") {
        return Some(NotFollowed {
            why: format!(
                "isolcpus= without the flag domain keeps {} off, but the scheduler still places threads there",
                if flags.contains(&"managed_irq") { "managed interrupts" } else { "ticks" }
            ),
            ..NotFollowed::default()
        });
    }
    let why = "the kernel ignores the whole parameter because of an invalid flag or CPU";
    of_set(scene, &scene.host.topology.isolated, &planned, "/sys/devices/system/cpu/isolated", why)
}

fn nohz_full(scene: &Scene<'_>, value: &str) -> Option<NotFollowed> {
    let line = CommandLine::parse(&format!("nohz_full={value}"));
    let planned = line.cpus("nohz_full", lowlat_host::CPU_ID_MAX + 1)?.ok()?;
    let why = if scene.host.kernel.config_option("NO_HZ_FULL") == Reading::Known(None) {
        "this kernel is built without CONFIG_NO_HZ_FULL and ignores the parameter"
    } else if scene.host.kernel.tokens().last("nohz") == Some("off") {
        "nohz=off on the command line keeps the tick on every CPU"
    } else {
        "the kernel ignores the list; search its log for \"NO_HZ\""
    };
    let path = "/sys/devices/system/cpu/nohz_full";
    // A kernel without the feature lacks this file, or it contains "(null)" (drivers/base/cpu.c).
    match &scene.host.topology.nohz_full {
        Reading::Absent if scene.host.kernel.config_option("NO_HZ_FULL") == Reading::Known(None) => {
            Some(NotFollowed { observed: format!("{path} is absent"), why: why.to_owned(), by: None })
        }
        shown => of_set(scene, shown, &planned, path, why),
    }
}

fn of_set(
    scene: &Scene<'_>,
    shown: &Reading<CpuSet>,
    planned: &CpuSet,
    path: &str,
    why: &str,
) -> Option<NotFollowed> {
    let shown = shown.known().filter(|shown| !scene.same_cpus(shown, planned))?;
    let seen = if shown.is_empty() { "empty".to_owned() } else { shown.to_list() };
    Some(NotFollowed { observed: format!("{path} is {seen}"), why: why.to_owned(), by: None })
}

/// The kernel's file for a parameter of a module: /sys/module/MODULE/parameters/NAME for `MODULE.NAME=`.
pub fn module_path(name: &str) -> Option<String> {
    let (module, parameter) = name.split_once('.')?;
    let is_name = |text: &str| {
        !text.is_empty()
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
    };
    (is_name(module) && is_name(parameter)).then(|| {
        format!("/sys/module/{}/parameters/{}", module.replace('-', "_"), parameter.replace('-', "_"))
    })
}

fn module_parameter(scene: &Scene<'_>, token: &BootToken, value: &str) -> Option<NotFollowed> {
    let path = module_path(&token.name)?;
    // Clamped or overruled values have a separate judge.
    let shown = scene.file(&path);
    let shown = shown.known().filter(|shown| !same_meaning(&plain(shown), &plain(value)))?;
    by_the_catalogue(scene, token).or_else(|| {
        Some(NotFollowed {
            observed: format!("{path} is {shown}"),
            why: "the kernel rejected the value, or it was changed since".to_owned(),
            by: None,
        })
    })
}

/// The kernel prints its booleans as letters.
fn plain(value: &str) -> String {
    match value.trim() {
        "Y" | "y" | "on" | "yes" | "true" => "1".to_owned(),
        "N" | "n" | "off" | "no" | "false" => "0".to_owned(),
        other => other.to_owned(),
    }
}

/// The catalogue's judges know the effect of each parameter. If another change of the plan sets the same
/// value, it is judged there.
fn by_the_catalogue(scene: &Scene<'_>, token: &BootToken) -> Option<NotFollowed> {
    let setting = scene.catalogue.find(&token.setting)?;
    if is_judged_elsewhere(scene, &token.name) {
        return None;
    }
    let finding = lowlat_settings::judge_one(&scene.context(), setting);
    if finding.verdict != Verdict::Ineffective {
        return None;
    }
    let path = SHOWN_IN.iter().find(|(name, _)| *name == token.name).map(|(_, path)| *path);
    let by = path.and_then(|path| {
        let shown = scene.file(path);
        culprit_of(&culprit::of_path(scene, path), shown.text())
    });
    Some(NotFollowed { observed: finding.observed, why: finding.because, by })
}

fn is_judged_elsewhere(scene: &Scene<'_>, name: &str) -> bool {
    let shown = SHOWN_IN.iter().find(|(parameter, _)| *parameter == name).map(|(_, path)| *path);
    scene.changes(|target| match target {
        Target::File { path } => shown == Some(path.as_str()),
        Target::Sysctl { key } => {
            shown == Some(lowlat_host::snapshot::sysctl_path(key).as_str())
                || (key == "kernel.watchdog" && matches!(name, "nmi_watchdog" | "nosoftlockup"))
        }
        Target::UserProcesses => name == "tuned.non_isolcpus",
        Target::DefaultIrqAffinity => name == "irqaffinity",
        Target::IdleState { .. } => name.ends_with("max_cstate"),
        Target::HugePages { .. } => matches!(name, "hugepages" | "hugepagesz"),
        _ => false,
    })
}
