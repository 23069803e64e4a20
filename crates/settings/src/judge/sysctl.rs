//! Judges of sysctls: the value in force, and the sysctl.d files that ask for one.

use super::{missing, satisfies};
use crate::{Context, Judgement, Setting, Verdict};
use lowlat_host::{Reading, snapshot::sysctl_path};

/// Judges a sysctl by the value in force, and says when sysctl.d files disagree about it.
pub fn sysctl(context: &Context<'_>, setting: &Setting) -> Judgement {
    let want = setting.want(context.profile);
    sysctl_where(context, setting, |value| satisfies(context, &want, value))
}

/// The same for a state that no fixed value describes: `is_wanted` tells it from the text.
pub fn sysctl_where(context: &Context<'_>, setting: &Setting, is_wanted: impl Fn(&str) -> bool) -> Judgement {
    let path = sysctl_path(setting.name);
    match context.host.file(&path) {
        Reading::Known(value) if is_wanted(&value) => Judgement::good(value).at(path),
        Reading::Known(value) => sysctl_fault(context, setting, &is_wanted, &value).at(path),
        Reading::Absent => Judgement::not_applicable("this kernel has no such sysctl").at(path),
        other => missing(&other, &path),
    }
}

/// A wrong sysctl: shadowed when some file asks for the wanted value and a later one wins.
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
                "{}:{} asks for it, and {}:{} sorts later and wins",
                asking.path, asking.line, last.path, last.line
            ),
        ),
        (Some((_, asking)), _) => Judgement::new(
            Verdict::Ineffective,
            value,
            format!(
                "{}:{} asks for it, but the kernel has another value: not applied, or changed since",
                asking.path, asking.line
            ),
        ),
        (None, Some(last)) => Judgement::wrong(value, format!("set by {}:{}", last.path, last.line)),
        (None, None) => Judgement::wrong(value, ""),
    }
}
