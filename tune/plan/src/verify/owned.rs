//! Files that lowlat owns, and lines of other files.

use super::judge::{Scene, UnjudgedTarget};
use super::{Culprit, CulpritKind, Row, Standing};
use lowlat_host::Reading;
use lowlat_settings::{change::Change, same_meaning};

/// One `key = value` line of a file.
pub(super) fn key_row(scene: &Scene<'_>, at: usize, change: &Change, path: &str, key: &str) -> Row {
    let text = match scene.evidence.files.get(path) {
        Some(reading) => reading.clone(),
        None if path == "/etc/tuned/tuned-main.conf" && key == "rollback" => {
            let rollback = scene.host.services.tuned.rollback.clone();
            rollback.map(|value| format!("rollback={value}"))
        }
        None => scene.host.file(path),
    };
    let what = format!("{path} {key}");
    let look = |observed| UnjudgedTarget::of(at, change, what, observed);
    let text = match text {
        Reading::Known(text) => text,
        Reading::Absent => {
            return look(Reading::Absent)
                .row(Standing::Unreadable, format!("absent: {path}, or its line {key}=, is missing"));
        }
        other => return look(other).judge(scene),
    };
    match last_value(&text, key) {
        Some(value) => {
            let is_planned = same_meaning(value, &change.after);
            UnjudgedTarget { is_planned, ..look(Reading::Known(value.to_owned())) }.judge(scene)
        }
        None => look(Reading::Absent).row(
            Standing::Lost,
            format!("{path} no longer has a line {key}=; a package may have replaced it"),
        ),
    }
}

/// The value of the last `key = value` outside comments, without quotes.
fn last_value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let assignments = meaning(text).filter_map(|(_, line)| line.split_once('='));
    assignments.filter(|(name, _)| name.trim() == key).last().map(|(_, value)| value.trim().trim_matches('"'))
}

/// The file, and each of its keys that another file overrides.
pub(super) fn file_rows(scene: &Scene<'_>, at: usize, change: &Change, path: &str) -> Vec<Row> {
    let look = |observed| UnjudgedTarget::of(at, change, path.to_owned(), observed);
    if scene.evidence.masked.iter().any(|masked| masked == path) {
        let row = look(Reading::Known("a link to /dev/null".to_owned()))
            .row(Standing::Overridden, "the file is masked; remove the link, then run `lowlat tune apply`");
        let does = "links to /dev/null, so it sets nothing".to_owned();
        let by = Culprit { kind: CulpritKind::Mask, name: path.to_owned(), line: None, does };
        return vec![short(Row { by: Some(by), ..row })];
    }
    let reading = scene.evidence.files.get(path).cloned().unwrap_or_default();
    let own = match &reading {
        Reading::Known(text) => of_content(look(reading.clone()), text, path),
        Reading::Absent => look(Reading::Absent)
            .row(Standing::Lost, "the file is missing; `lowlat tune apply` writes it again"),
        _ => look(reading.clone()).judge(scene),
    };
    let mut rows = vec![short(own)];
    if reading.is_known() {
        rows.extend(winners(scene, change, path).into_iter().map(|(what, planned, observed, by)| {
            let look = UnjudgedTarget::of(at, change, what, Reading::Known(observed));
            Row { planned, by: Some(by), ..look.row(Standing::Overridden, "") }
        }));
        rows.extend(not_taken(scene, change, path).into_iter().map(|(unit, key, planned, observed)| {
            let look = UnjudgedTarget::of(at, change, format!("{key} of {unit}"), observed);
            let note =
                format!("{unit} was started before the file was written; run `systemctl restart {unit}`");
            Row { planned, ..look.row(Standing::Ineffective, note) }
        }));
    }
    rows
}

/// Lines other than comments and white space.
fn meaning(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines()
        .enumerate()
        .map(|(at, line)| (at + 1, line.trim()))
        .filter(|(_, line)| !line.is_empty() && !line.starts_with(['#', ';']))
}

fn of_content(look: UnjudgedTarget<'_>, text: &str, path: &str) -> Row {
    let planned: Vec<&str> = meaning(&look.change.after).map(|(_, line)| line).collect();
    let found: Vec<(usize, &str)> = meaning(text).collect();
    let is_same = |(at, line): (usize, &str)| planned.get(at).is_some_and(|wanted| same_line(wanted, line));
    let first_other = found.iter().enumerate().find(|(at, (_, line))| !is_same((*at, line)));
    let (line, does) = match first_other {
        None if found.len() == planned.len() => return look.row(Standing::Held, ""),
        None => (found.last().map_or(1, |(line, _)| line + 1), "lines are missing".to_owned()),
        Some((_, (line, text))) => (*line, format!("lowlat did not write \"{text}\"")),
    };
    let row = look.row(
        Standing::Overridden,
        "the file was edited since; `lowlat tune rollback` shows the three versions and does not overwrite the edit",
    );
    let line = u32::try_from(line).ok();
    let by = Culprit { kind: CulpritKind::Unknown, name: path.to_owned(), line, does };
    Row { by: Some(by), ..row }
}

/// `a = 1` and `a=1` are one line.
fn same_line(a: &str, b: &str) -> bool {
    match (a.split_once('='), b.split_once('=')) {
        (Some((key_a, a)), Some((key_b, b))) => key_a.trim() == key_b.trim() && same_meaning(a, b),
        _ => a == b,
    }
}

/// A short text instead of the whole file.
fn short(mut row: Row) -> Row {
    let lines = |text: &str| format!("{} lines", meaning(text).count());
    row.planned = lines(&row.planned);
    row.observed = row.observed.map(|text| if row.standing == Standing::Held { lines(&text) } else { text });
    if let Reading::Known(text) = &row.observed
        && text.lines().count() > 1
    {
        row.observed = Reading::Known(lines(text));
    }
    row
}

/// Variables of a drop-in that the running process of its unit lacks: unit, key, planned and present value.
fn not_taken(
    scene: &Scene<'_>,
    change: &Change,
    path: &str,
) -> Vec<(String, String, String, Reading<String>)> {
    let mut not_taken = Vec::new();
    for (_, line) in meaning(&change.after) {
        let Some((key, planned)) =
            line.strip_prefix("Environment=").and_then(|line| line.trim_matches('"').split_once('='))
        else {
            continue;
        };
        let is_meant = |running: &&super::RunningVariable| {
            running.key == key && path.contains(&format!("/{}.d/", running.unit))
        };
        let running = scene.evidence.running.iter().find(is_meant);
        // An unreadable environment proves nothing.
        let differs = |value: &Reading<String>| match value {
            Reading::Known(value) => !same_meaning(value, planned),
            Reading::Absent => true,
            _ => false,
        };
        if let Some(running) = running.filter(|running| differs(&running.value)) {
            not_taken.push((running.unit.clone(), key.to_owned(), planned.to_owned(), running.value.clone()));
        }
    }
    not_taken
}

/// Keys of the file that a later file sets to another value: key, planned value, winning value, and its
/// source.
fn winners(scene: &Scene<'_>, change: &Change, path: &str) -> Vec<(String, String, String, Culprit)> {
    let mut winners = Vec::new();
    for (_, line) in meaning(&change.after) {
        let environment = line.strip_prefix("Environment=").map(|line| line.trim_matches('"'));
        let Some((key, planned)) = environment.unwrap_or(line).split_once('=') else { continue };
        let (key, planned) = (key.trim(), planned.trim());
        let last = if environment.is_some() {
            let mut lines = scene.evidence.environment.iter();
            lines.rfind(|line| line.key == key).cloned().map(|line| (CulpritKind::DropIn, line))
        } else if path.contains("/sysctl.d/") {
            let mut lines = scene.host.kernel.sysctl_files.iter();
            lines.rfind(|line| line.key == key).cloned().map(|line| (CulpritKind::SysctlFile, line))
        } else {
            None
        };
        let Some((kind, line)) = last.filter(|(_, line)| line.path != path) else { continue };
        if !same_meaning(&line.value, planned) {
            let does =
                format!("sets {key} = {} and is read after {path}, so it wins at the next boot", line.value);
            let by = Culprit { kind, name: line.path, line: Some(line.line), does };
            winners.push((format!("{key} at boot"), planned.to_owned(), line.value, by));
        }
    }
    winners
}
