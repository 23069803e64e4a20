//! Kernel parameters, one row each: the line of the running kernel, and its effect.

use super::boot_follow;
use super::judge::{Scene, UnjudgedTarget, culprit_of};
use super::{BootSource, Culprit, CulpritKind, Row, Standing, culprit};
use crate::stands;
use lowlat_host::{
    Reading,
    cmdline::{CommandLine, Repeat},
};
use lowlat_settings::{
    change::{BootToken, Change},
    same_meaning,
};

pub(super) fn rows(scene: &Scene<'_>, at: usize, change: &Change, tokens: &[BootToken]) -> Vec<Row> {
    let line = match &scene.host.kernel.command_line {
        Reading::Known(line) => Ok(line),
        missing => Err(missing.clone().map(|_| String::new())),
    };
    tokens.iter().map(|token| of_token(scene, at, change, tokens, token, line.as_ref().copied())).collect()
}

const NOT_IN_NEXT: &str = "a reboot will not activate it: the next boot's entry lacks it, because the entry was \
     rewritten or another became the default; `lowlat tune apply` writes it again";
const ANOTHER_ENTRY: &str =
    "this boot used another entry; the next boot's entry has the parameter, so reboot";

/// A parameter with its value, in its usual form.
pub(super) fn spell(name: &str, value: &str) -> String {
    if value.is_empty() { name.to_owned() } else { format!("{name}={value}") }
}

fn of_token(
    scene: &Scene<'_>,
    at: usize,
    change: &Change,
    tokens: &[BootToken],
    token: &BootToken,
    line: Result<&CommandLine, &Reading<String>>,
) -> Row {
    let observed = match line {
        Ok(line) => Reading::Known(standing_on(line, &token.name)),
        Err(missing) => missing.clone(),
    };
    let what = spell(&token.name, "") + if token.value.as_deref() == Some("") { "" } else { "=" };
    let look = UnjudgedTarget::of(at, change, what, observed);
    let row = match line {
        Ok(line) if stands(line, token) => in_force(scene, token, look),
        Ok(line) => not_in_force(scene, tokens, token, line, look),
        Err(_) => look.judge(scene),
    };
    let planned = match &token.value {
        Some(value) => spell(&token.name, value),
        None => format!("no {}", token.name),
    };
    Row { settings: vec![token.setting.clone()], planned, ..row }
}

fn standing_on(line: &CommandLine, name: &str) -> String {
    let all: Vec<String> = line.all(name).map(|value| spell(name, value.unwrap_or_default())).collect();
    if all.is_empty() { "not on the command line".to_owned() } else { all.join(" ") }
}

/// The row of a parameter on the line, by whether the kernel follows it.
fn in_force(scene: &Scene<'_>, token: &BootToken, look: UnjudgedTarget<'_>) -> Row {
    let Some(fault) = boot_follow::does_not_follow(scene, token) else {
        return look.row(Standing::Held, "");
    };
    let observed =
        if fault.observed.is_empty() { look.observed.clone() } else { Reading::Known(fault.observed) };
    let look = UnjudgedTarget { observed, ..look };
    let standing = if fault.by.is_some() { Standing::Overridden } else { Standing::Ineffective };
    Row { by: fault.by, ..look.row(standing, fault.why) }
}

/// The row of a parameter that is not on the line as planned: not yet, no longer, or overridden.
fn not_in_force(
    scene: &Scene<'_>,
    tokens: &[BootToken],
    token: &BootToken,
    line: &CommandLine,
    look: UnjudgedTarget<'_>,
) -> Row {
    let next = scene.evidence.next_boot_line.as_ref().map(|line| CommandLine::parse(line));
    let comes = next.known().map(|next| stands(next, token));
    if let Some(refusal) = scene.refusal(&look.change.target) {
        // It may have been set manually since.
        return match comes {
            Some(true) => look.row(Standing::Pending, scene.why_pending()),
            _ => look.row(Standing::Refused, refusal.reason.clone()),
        };
    }
    if scene.is_boot_of_apply {
        return match comes {
            Some(false) => look.row(Standing::Lost, NOT_IN_NEXT),
            _ => look.row(Standing::Pending, scene.why_pending()),
        };
    }
    let values: Vec<&str> = line.all(&token.name).map(Option::unwrap_or_default).collect();
    let is_planned =
        |value: &&str| token.value.as_deref().is_some_and(|planned| same_meaning(value, planned));
    let mut others = values.iter().filter(|value| !is_planned(value));
    let other = match Repeat::of(&token.name) {
        Repeat::First => others.next(),
        Repeat::Last | Repeat::Each => others.next_back(),
    };
    if let Some(other) = other {
        return of_other_value(scene, token, other, values.iter().any(is_planned), look);
    }
    let configured = source_of(scene, token, |value| is_planned(&value));
    if is_eaten_first(tokens, token, line) {
        let place =
            configured.map_or_else(String::new, |source| format!(", although {} has it", place_of(source)));
        return look.row(
            Standing::Ineffective,
            format!(
                "the first of the new words is missing but the later ones are present{place}: a boot loader's \
                 script drops the first word; put a harmless word such as \"quiet\" before it"
            ),
        );
    }
    if comes == Some(true) {
        return look.row(Standing::Lost, ANOTHER_ENTRY);
    }
    if let Some(source) = configured {
        let why = format!(
            "{} has it, but the boot loader did not use it: it reads another file or entry, or its own was not \
             regenerated",
            place_of(source)
        );
        return look.row(Standing::Ineffective, why);
    }
    look.row(Standing::Lost, why_lost(scene))
}

/// Another value on the line, in addition to the planned one or instead of it.
fn of_other_value(
    scene: &Scene<'_>,
    token: &BootToken,
    other: &str,
    is_beside: bool,
    look: UnjudgedTarget<'_>,
) -> Row {
    let claims = culprit::parameter(scene.evidence, &token.name);
    let by = culprit_of(&claims, other).or_else(|| {
        source_of(scene, token, |value| same_meaning(value, other)).map(|s| blame(s, token, other))
    });
    let is_from_before = token.before.as_deref().is_some_and(|before| {
        CommandLine::parse(before)
            .all(&token.name)
            .any(|value| same_meaning(value.unwrap_or_default(), other))
    });
    if by.is_none() && is_from_before && !is_beside {
        return look.row(Standing::Lost, why_lost(scene));
    }
    let note = match (is_beside, &by) {
        (true, _) => format!("it occurs more than once; {}", Repeat::of(&token.name).rule()),
        (false, None) => look.change.target.kind().facts().how_to_find,
        _ => String::new(),
    };
    let by = by.unwrap_or_else(super::judge::unknown);
    Row { by: Some(by), ..look.row(Standing::Overridden, note) }
}

fn blame(source: &BootSource, token: &BootToken, value: &str) -> Culprit {
    let place = match source.variable.as_str() {
        "" => String::new(),
        variable => format!(" in {variable}"),
    };
    let does = format!("has {}{place}", spell(&token.name, value));
    culprit::at_line(CulpritKind::BootSource, &source.path, source.line, does)
}

/// The last source file of boot entries in which the parameter has such a value.
fn source_of<'a>(
    scene: &Scene<'a>,
    token: &BootToken,
    is_meant: impl Fn(&str) -> bool,
) -> Option<&'a BootSource> {
    let has = |source: &&BootSource| {
        let line = CommandLine::parse(&source.parameters);
        line.all(&token.name).any(|value| is_meant(value.unwrap_or_default()))
    };
    scene.evidence.boot.iter().rfind(has)
}

fn place_of(source: &BootSource) -> String {
    format!("{}:{}", source.path, source.line)
}

/// True if the first added parameter is missing and a later one is present.
fn is_eaten_first(tokens: &[BootToken], token: &BootToken, line: &CommandLine) -> bool {
    let mut added = tokens.iter().filter(|other| other.before.is_none() && other.value.is_some());
    added.next() == Some(token) && added.any(|other| stands(line, other))
}

fn why_lost(scene: &Scene<'_>) -> String {
    let (planned, now) = (&scene.plan.host.kernel_release, &scene.host.kernel.release);
    if planned.is_known() && now.is_known() && planned != now {
        return format!(
            "the kernel was updated from {planned} to {now}, whose boot entry lacks the parameter; `lowlat tune \
             apply` writes it again"
        );
    }
    "this boot used an entry without the parameter: another entry was chosen, or the entry was rewritten; `lowlat \
     tune apply` writes it again"
        .to_owned()
}
