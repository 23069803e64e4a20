//! Judges that many settings share.

use super::{Context, Judgement, Setting, Verdict, Want, compare::same_meaning};
use crate::{HostSnapshot, Reading, cmdline::CommandLine, kernel_version::KernelVersion};

/// Options that judges look up beyond those that settings need.
pub(super) const CONFIG_OPTIONS: &[&str] = &["HZ", "PREEMPT_RT", "PREEMPT_DYNAMIC", "PREEMPT"];

/// Why a setting does not apply here, if it does not: the profile has no opinion, the kernel is too old or too
/// new, or was built without an option.
pub(super) fn inapplicable(
    context: &Context<'_>,
    setting: &Setting,
    want: &Want,
    wanted: Option<&str>,
) -> Option<Judgement> {
    if matches!(want, Want::Nothing) {
        return Some(Judgement::not_applicable(format!("profile {} leaves it alone", context.profile)));
    }
    if wanted.is_none() {
        return Some(Judgement::not_applicable("this host gives no ground for a value"));
    }
    let kernel = &context.host.kernel;
    if let Some(version) = kernel.version.known() {
        if let Some(since) = setting.needs.since.filter(|since| version < since) {
            return Some(Judgement::not_applicable(format!(
                "kernel {version} is older than {since}, which brought it"
            )));
        }
        if let Some(until) = setting.needs.until.filter(|until| version >= until) {
            return Some(Judgement::not_applicable(format!("kernel {until} dropped it; this is {version}")));
        }
    }
    let is_off = |option: &&&str| kernel.config_option(option) == Reading::Known(None);
    let missing = setting.needs.config.iter().find(is_off)?;
    Some(Judgement::not_applicable(format!("this kernel is built without CONFIG_{missing}")))
}

/// Whether a value satisfies what the profile wants.
pub(super) fn satisfies(context: &Context<'_>, want: &Want, value: &str) -> bool {
    match want {
        Want::Nothing | Want::State(_) => true,
        Want::Value(wanted) => same_meaning(wanted, value),
        Want::OneOf(values) => values.iter().any(|wanted| same_meaning(wanted, value)),
        Want::Derived(derive) => derive(context).is_some_and(|wanted| same_meaning(&wanted, value)),
    }
}

/// The judgement for a reading that has no value.
pub(super) fn missing<T>(reading: &Reading<T>, path: &str) -> Judgement {
    let because = match reading {
        Reading::Known(_) | Reading::Absent => format!("{path} does not exist on this host"),
        Reading::Denied => format!("{path} may not be read; run as root to see it"),
        Reading::Unparsable(why) => why.to_string(),
    };
    Judgement::unknown(because).at(path)
}

/// Judges a sysctl by the value in force, and says when sysctl.d files disagree about it.
pub(super) fn sysctl(context: &Context<'_>, setting: &Setting) -> Judgement {
    let path = crate::snapshot::sysctl_path(setting.name);
    let want = setting.want(context.profile);
    let reading = context.host.file(&path);
    let Reading::Known(value) = &reading else {
        return match reading {
            Reading::Absent => Judgement::not_applicable("this kernel has no such sysctl").at(path),
            other => missing(&other, &path),
        };
    };
    if satisfies(context, &want, value) {
        Judgement::good(value.as_str()).at(path)
    } else {
        sysctl_fault(context, setting, &want, value).at(path)
    }
}

/// A wrong sysctl: shadowed when some file asks for the wanted value and a later one wins.
fn sysctl_fault(context: &Context<'_>, setting: &Setting, want: &Want, value: &str) -> Judgement {
    let lines: Vec<_> =
        context.host.kernel.sysctl_files.iter().filter(|line| line.key == setting.name).collect();
    let asks = lines.iter().rposition(|line| satisfies(context, want, &line.value));
    match (asks, lines.last()) {
        (Some(asks), Some(last)) if asks + 1 < lines.len() => Judgement::new(
            Verdict::Shadowed,
            value,
            format!(
                "{}:{} asks for it, and {}:{} sorts later and wins",
                lines[asks].path, lines[asks].line, last.path, last.line
            ),
        ),
        (Some(asks), _) => Judgement::new(
            Verdict::Ineffective,
            value,
            format!(
                "{}:{} asks for it, but the kernel has another value: not applied, or changed since",
                lines[asks].path, lines[asks].line
            ),
        ),
        (None, Some(last)) => Judgement::wrong(value, format!("set by {}:{}", last.path, last.line)),
        (None, None) => Judgement::wrong(value, ""),
    }
}

/// Judges every knob that `reads` matches by the wanted value; names the files that differ.
pub(super) fn files(context: &Context<'_>, setting: &Setting) -> Judgement {
    let want = setting.want(context.profile);
    let (mut good, mut bad, mut unread) = (0, Vec::new(), Vec::new());
    for (path, reading) in setting.reads.iter().flat_map(|glob| context.host.files_matching(glob)) {
        match reading {
            Reading::Known(value) if satisfies(context, &want, chosen_word(value)) => good += 1,
            Reading::Known(value) => bad.push((path, chosen_word(value).to_owned())),
            Reading::Absent => {}
            other => unread.push((path, other)),
        }
    }
    if let Some((path, value)) = bad.first() {
        let observed = if bad.len() + good == 1 {
            value.clone()
        } else {
            format!("{value} ({} of {})", bad.len(), bad.len() + good)
        };
        return Judgement {
            seen_at: bad.iter().take(8).map(|(path, _)| (*path).to_owned()).collect(),
            ..Judgement::wrong(observed, "")
        }
        .at_first(path);
    }
    match (good, unread.first()) {
        (0, Some((path, reading))) => missing(*reading, path),
        (0, None) => {
            Judgement::not_applicable(format!("{} does not exist on this host", setting.reads.join(", ")))
        }
        _ => Judgement::good(want.text(context).unwrap_or_default()).at(setting.reads[0]),
    }
}

impl Judgement {
    fn at_first(mut self, path: &str) -> Self {
        self.seen_at.retain(|seen| seen != path);
        self.seen_at.insert(0, path.to_owned());
        self
    }
}

/// The word in brackets of a sysfs choice (`always [madvise] never`), or the whole text.
pub(super) fn chosen_word(text: &str) -> &str {
    match (text.find('['), text.find(']')) {
        (Some(open), Some(close)) if open < close => &text[open + 1..close],
        _ => text,
    }
}

/// The command line, or why it is not known.
pub(super) fn command_line(host: &HostSnapshot) -> Result<&CommandLine, Judgement> {
    host.kernel.command_line.known().ok_or_else(|| missing(&host.kernel.command_line, "/proc/cmdline"))
}

/// Judges a command-line parameter named `name=` (or a bare token `name`) by its last value.
pub(super) fn boot_token(context: &Context<'_>, setting: &Setting) -> Judgement {
    let line = match command_line(context.host) {
        Ok(line) => line,
        Err(judgement) => return judgement,
    };
    let want = setting.want(context.profile);
    let key = setting.name.trim_end_matches('=').split('=').next().unwrap_or(setting.name);
    let judgement = match line.last(key) {
        Some(value) if satisfies(context, &want, value) => Judgement::good(spell(key, value)),
        Some(value) => Judgement::wrong(spell(key, value), ""),
        None => Judgement::wrong("not on the command line", ""),
    };
    judgement.at("/proc/cmdline")
}

fn spell(key: &str, value: &str) -> String {
    if value.is_empty() { key.to_owned() } else { format!("{key}={value}") }
}

/// Whether the kernel is at least this version; none when its version is not known.
#[allow(dead_code, reason = "for judges whose advice turns at a version")]
pub(super) fn kernel_at_least(host: &HostSnapshot, version: KernelVersion) -> Option<bool> {
    host.kernel.version.known().map(|v| *v >= version)
}
