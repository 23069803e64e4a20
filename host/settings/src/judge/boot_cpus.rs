//! Judges of command-line parameters that contain a CPU list: compared as sets, never as text.

use super::{boot_key, command_line, good_because, no_command_line};
use crate::{Context, Judgement, Setting, Verdict};
use lowlat_host::{
    CPU_ID_MAX, CpuSet, ListError, Profile, Reading,
    cmdline::{CommandLine, Repeat},
};

/// Judges a parameter that contains a CPU list, with flags before it if the wanted value has some.
pub fn boot_cpus(context: &Context<'_>, setting: &Setting) -> Judgement {
    boot_cpus_in_force(context, setting, &Reading::Absent, "")
}

/// Judges such a parameter by the set that the kernel shows at `path`.
pub fn boot_cpus_in_force(
    context: &Context<'_>,
    setting: &Setting,
    kernel_set: &Reading<CpuSet>,
    path: &str,
) -> Judgement {
    let Some(line) = command_line(context.host) else { return no_command_line(context.host) };
    let key = boot_key(setting);
    let wanted_line = CommandLine::parse(&format!(
        "{key}={}",
        setting.want(context.profile).text(context).unwrap_or_default()
    ));
    let Some(Ok(wanted)) = cpus_on_line(context, &wanted_line, key) else {
        return Judgement::unknown("the wanted value is not a CPU list");
    };
    let judgement = match cpus_on_line(context, line, key) {
        None => absent(context, &wanted, kernel_set, path),
        Some(Err(error)) => Judgement::new(
            Verdict::Ineffective,
            spell(line, key),
            format!("the kernel cannot read the list and ignores the parameter: {error}"),
        ),
        Some(Ok(found)) => {
            let flags = line.isolation();
            let missing_flags: Vec<&str> =
                wanted_line.isolation().into_iter().filter(|flag| !flags.contains(flag)).collect();
            present(context, &wanted, &found, &missing_flags, line, key, (kernel_set, path))
        }
    };
    judgement.at("/proc/cmdline")
}

/// CPUs named by a parameter of a command line; `None` if the parameter is missing. If the host's number of
/// CPUs is unknown, the limit against hostile input applies.
pub fn cpus_on_line(
    context: &Context<'_>,
    line: &CommandLine,
    key: &str,
) -> Option<Result<CpuSet, ListError>> {
    let cpu_count = match context.host.topology.cpu_count() {
        0 => CPU_ID_MAX + 1,
        count => count,
    };
    line.cpus(key, cpu_count)
}

fn spell(line: &CommandLine, key: &str) -> String {
    format!("{key}={}", line.in_force(key).unwrap_or_default())
}

fn absent(context: &Context<'_>, wanted: &CpuSet, kernel_set: &Reading<CpuSet>, path: &str) -> Judgement {
    if context.profile == Profile::Trading && kernel_set.known() == Some(wanted) && !path.is_empty() {
        return good_because(
            format!("{path} is {wanted}"),
            "not on the command line, but in force through another parameter or at run time",
        );
    }
    Judgement::wrong("not on the command line", "")
}

fn present(
    context: &Context<'_>,
    wanted: &CpuSet,
    found: &CpuSet,
    missing_flags: &[&str],
    line: &CommandLine,
    key: &str,
    (kernel_set, path): (&Reading<CpuSet>, &str),
) -> Judgement {
    let token = spell(line, key);
    let values: Vec<&str> = line.all(key).map(Option::unwrap_or_default).collect();
    let is_contrary = values.iter().any(|value| {
        let other = CommandLine::parse(&format!("{key}={value}"));
        cpus_on_line(context, &other, key).is_none_or(|cpus| cpus.as_ref() != Ok(found))
    });
    if is_contrary {
        let (times, rule) = (values.len(), Repeat::of(key).rule());
        let because = format!("{key}= occurs {times} times on the command line with different CPUs; {rule}");
        return Judgement::new(Verdict::Conflicting, values.join(" and "), because);
    }
    let mut faults = Vec::new();
    let (lacking, extra) = (wanted.difference(found), found.difference(wanted));
    // CPUs that are offline do no harm.
    let extra = if context.host.topology.online.is_empty() {
        extra
    } else {
        extra.intersection(&context.host.topology.online)
    };
    if !lacking.is_empty() {
        faults.push(format!("it lacks {lacking:#}"));
    }
    if !extra.is_empty() {
        faults.push(format!("it should not include {extra:#}"));
    }
    if !missing_flags.is_empty() {
        faults.push(format!("it lacks {}", missing_flags.join(" and ")));
    }
    if !faults.is_empty() {
        return Judgement::wrong(token, faults.join("; "));
    }
    match kernel_set {
        Reading::Known(held) if !found.is_subset(held) => {
            let shown = if held.is_empty() { "empty".to_owned() } else { held.to_string() };
            let because =
                format!("{path} is {shown}: the kernel did not accept {:#}", found.difference(held));
            Judgement::not_in_force(token, because)
        }
        _ => Judgement::good(token),
    }
}
