//! Judges of sysctls: the value in force, and the sysctl.d files that set one.

use super::{missing, satisfies};
use crate::{Context, Judgement, Setting, Verdict, change::grammar::numbers};
use lowlat_host::{Reading, snapshot::sysctl_path};

/// Judges a sysctl by the value in force, and reports sysctl.d files that disagree with it.
pub fn sysctl(context: &Context<'_>, setting: &Setting) -> Judgement {
    let want = setting.want(context.profile);
    sysctl_where(context, setting, |value| satisfies(context, &want, value))
}

/// Judges a sysctl whose wanted state is not one fixed value; `is_wanted` checks the text.
pub fn sysctl_where(context: &Context<'_>, setting: &Setting, is_wanted: impl Fn(&str) -> bool) -> Judgement {
    let path = sysctl_path(setting.name);
    match context.host.file(&path) {
        Reading::Known(value) if is_wanted(&value) => Judgement::good(value).at(path),
        Reading::Known(value) if numbers(&value).is_none() => {
            missing(&Reading::<String>::unparsable(path.as_str(), &value, expected(context, setting)), &path)
        }
        Reading::Known(value) => sysctl_fault(context, setting, &is_wanted, &value).at(path),
        Reading::Absent => Judgement::not_applicable("this kernel has no such sysctl").at(path),
        other => missing(&other, &path),
    }
}

/// Format of a sysctl, for errors. It follows from the wanted value if that has several numbers or CPUs.
fn expected(context: &Context<'_>, setting: &Setting) -> &'static str {
    let wanted = setting.want(context.profile).text(context).unwrap_or_default();
    let is_list =
        setting.name.ends_with("cpumask") || numbers(&wanted).is_some_and(|text| text.contains(' '));
    if is_list { "integers or a CPU list" } else { "a number" }
}

/// Explains a wrong sysctl. It is shadowed if a file sets the wanted value and a later file overrides it.
fn sysctl_fault(
    context: &Context<'_>,
    setting: &Setting,
    is_wanted: &impl Fn(&str) -> bool,
    value: &str,
) -> Judgement {
    let lines: Vec<_> =
        context.host.kernel.sysctl_files.iter().filter(|line| line.key == setting.name).collect();
    let asks = lines.iter().rposition(|line| is_wanted(&line.value)).map(|at| (at, lines[at]));
    match (asks, lines.last()) {
        (Some((at, asking)), Some(last)) if at + 1 < lines.len() => Judgement::new(
            Verdict::Shadowed,
            value,
            format!(
                "{}:{} sets it, but {}:{} sorts later and wins",
                asking.path, asking.line, last.path, last.line
            ),
        ),
        (Some((_, asking)), _) => Judgement::new(
            Verdict::Ineffective,
            value,
            format!(
                "{}:{} sets it, but the kernel has another value: not applied, or changed later",
                asking.path, asking.line
            ),
        ),
        (None, Some(last)) => Judgement::wrong(value, format!("set by {}:{}", last.path, last.line)),
        (None, None) => Judgement::wrong(value, ""),
    }
}
