//! Judges of kernel command-line parameters: the requested value, and its effect in the kernel.

use super::{good_because, known, missing, satisfies};
use crate::{Context, Judgement, Setting, Verdict, Want, compare::same_meaning};
use lowlat_host::{
    HostSnapshot, Profile, Reading,
    cmdline::{CommandLine, Repeat},
};

/// Effect of a parameter in the running kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParameterInForce {
    /// The parameter is in force. Contains the observed state.
    Yes(String),
    /// The parameter is not in force.
    /// - `because`: the reason why the parameter has no effect.
    No { observed: String, because: String },
    /// The kernel does not show its effect, or the reading has no value.
    Unseen,
}

impl ParameterInForce {
    pub fn no(observed: String, because: &str) -> Self {
        Self::No { observed, because: because.to_owned() }
    }
}

/// Request for one parameter on the command line.
enum Asked {
    Missing,
    /// The wanted value, as spelled there.
    Wanted(String),
    /// Another value, as spelled there.
    Other(String),
    Contrary(String),
}

pub fn command_line(host: &HostSnapshot) -> Option<&CommandLine> {
    host.kernel.command_line.known()
}

/// The judgement for a host whose command line is unknown.
pub fn no_command_line(host: &HostSnapshot) -> Judgement {
    missing(&host.kernel.command_line, "/proc/cmdline")
}

/// Judges the command line, and names it as the place.
pub fn on_line(context: &Context<'_>, judge: impl FnOnce(&CommandLine) -> Judgement) -> Judgement {
    known(&context.host.kernel.command_line, "/proc/cmdline", judge)
}

/// The parameter's name without its equals sign.
pub fn boot_key(setting: &Setting) -> &'static str {
    setting.name.split('=').next().unwrap_or(setting.name)
}

/// Judges a command-line parameter named `name=` (or a bare token `name`) by the value that the kernel uses.
pub fn boot_token(context: &Context<'_>, setting: &Setting) -> Judgement {
    boot_token_in_force(context, setting, ParameterInForce::Unseen)
}

/// Judges a command-line parameter by its effect in the running kernel. In profile `trading` a wanted state
/// is good even if it was reached another way. In profile `guide-57037` the parameter itself must be on the
/// command line.
pub fn boot_token_in_force(
    context: &Context<'_>,
    setting: &Setting,
    in_force: ParameterInForce,
) -> Judgement {
    let Some(line) = command_line(context.host) else { return no_command_line(context.host) };
    let key = boot_key(setting);
    let is_trading = context.profile == Profile::Trading;
    let judgement = match (asked(context, &setting.want(context.profile), line, key), in_force) {
        (Asked::Contrary(all), _) => Judgement::new(
            Verdict::Conflicting,
            all,
            format!(
                "the parameter occurs more than once on the command line with different values; {}",
                Repeat::of(key).rule()
            ),
        ),
        (Asked::Wanted(token), ParameterInForce::No { observed, because }) => {
            Judgement::not_in_force(format!("{token}, but {observed}"), because)
        }
        (Asked::Wanted(token), _) => Judgement::good(token),
        (Asked::Missing, ParameterInForce::Yes(seen)) if is_trading => good_because(
            seen,
            "not on the command line, but in force: set at run time or the kernel's default",
        ),
        (Asked::Other(token), ParameterInForce::Yes(seen)) if is_trading => {
            good_because(seen, format!("the command line has {token}, but it was changed later"))
        }
        (Asked::Missing, ParameterInForce::No { observed, .. }) => {
            Judgement::wrong(format!("not on the command line; {observed}"), "")
        }
        (Asked::Missing, _) => Judgement::wrong("not on the command line", ""),
        (Asked::Other(token), _) => Judgement::wrong(token, ""),
    };
    judgement.at("/proc/cmdline")
}

fn asked(context: &Context<'_>, want: &Want, line: &CommandLine, key: &str) -> Asked {
    let values: Vec<&str> = line.all(key).map(Option::unwrap_or_default).collect();
    let Some(last) = values.last() else { return Asked::Missing };
    if Repeat::of(key) == Repeat::Each
        && let Some(wanted) = values.iter().find(|value| satisfies(context, want, value))
    {
        return Asked::Wanted(spell(key, wanted));
    }
    if values.iter().any(|value| !same_meaning(value, last)) {
        return Asked::Contrary(values.iter().map(|value| spell(key, value)).collect::<Vec<_>>().join(" "));
    }
    if satisfies(context, want, last) {
        Asked::Wanted(spell(key, last))
    } else {
        Asked::Other(spell(key, last))
    }
}

/// Spells a parameter as on the command line.
fn spell(key: &str, value: &str) -> String {
    if value.is_empty() { key.to_owned() } else { format!("{key}={value}") }
}

/// Judges a command-line parameter by the file of the running kernel that the row reads, which then contains `shown_as`.
/// `because` explains another value.
pub fn boot_token_shown(
    context: &Context<'_>,
    setting: &Setting,
    shown_as: &str,
    because: &str,
) -> Judgement {
    let path = setting.reads.first().copied().unwrap_or_default();
    boot_token_in_force(context, setting, shown(context, path, shown_as, because))
}

/// Checks that a file of the running kernel contains `wanted`. `because` explains another value.
fn shown(context: &Context<'_>, path: &str, wanted: &str, because: &str) -> ParameterInForce {
    match context.host.file(path) {
        Reading::Known(value) if same_meaning(&value, wanted) => {
            ParameterInForce::Yes(format!("{path} is {value}"))
        }
        Reading::Known(value) => ParameterInForce::no(format!("{path} is {value}"), because),
        _ => ParameterInForce::Unseen,
    }
}
