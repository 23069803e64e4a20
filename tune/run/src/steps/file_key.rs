//! Single lines in files of other packages that support no drop-ins.

use super::Gathering;
use lowlat_plan::Plan;
use lowlat_settings::change::{Change, Target};
use lowlat_undo::{FileState, State, TargetSpec, UndoError};

/// The comment above a line that lowlat sets.
const COMMENT: &[u8] = b"# Set by lowlat; `lowlat tune rollback` restores the previous line.";

/// Prepares all lines of one file as one step, at the first of them: the log has one step per file.
pub(super) fn prepare(gathering: &mut Gathering<'_>, change: usize, path: &str) -> Result<(), UndoError> {
    if !gathering.is_first_of("file", path) {
        return Ok(());
    }
    let lines = lines_of(gathering.plan, path);
    if let Some((first, second)) = contradiction(&lines) {
        let name = |line: &Line<'_>| format!("change {} ({} = {})", line.change, line.key, line.value);
        let what = "line and different values";
        return Err(UndoError::twice(&name(first), &name(second), what));
    }
    let spec = TargetSpec::file(path);
    let Some(old) = gathering.present(change, &spec)? else {
        // Reported for the first; the same applies to the others.
        for line in lines.iter().filter(|line| line.change != change) {
            gathering.present(line.change, &spec)?;
        }
        return Ok(());
    };
    let State::File(file) = &old else {
        let reason = match &old {
            State::Absent => format!("{path} is missing, and lowlat does not create it"),
            other => format!("{path} is {other}, expected a file; set {} there manually", keys(&lines)),
        };
        for line in &lines {
            gathering.leave(line.change, reason.clone());
        }
        return Ok(());
    };
    let mut bytes = file.bytes.clone();
    let mut set = Vec::new();
    for line in &lines {
        match with_line(&bytes, line.key, line.value) {
            Ok(new) => {
                bytes = new;
                set.push(line.change);
            }
            Err(why) => gathering.leave(line.change, format!("{path}: {why}")),
        }
    }
    let new = State::File(FileState { bytes, mtime: None, ..file.clone() });
    gathering.step_of(&set, spec, old, new)
}

struct Line<'a> {
    change: usize,
    key: &'a str,
    value: &'a str,
}

fn lines_of<'a>(plan: &'a Plan, wanted: &str) -> Vec<Line<'a>> {
    let of = |(change, planned): (usize, &'a Change)| match &planned.target {
        Target::FileKey { path, key } if path == wanted => Some(Line { change, key, value: &planned.after }),
        _ => None,
    };
    plan.changes.iter().enumerate().filter_map(of).collect()
}

fn keys(lines: &[Line<'_>]) -> String {
    lines.iter().map(|line| format!("{}={}", line.key, line.value)).collect::<Vec<_>>().join(" and ")
}

fn contradiction<'a, 'b>(lines: &'b [Line<'a>]) -> Option<(&'b Line<'a>, &'b Line<'a>)> {
    lines.iter().enumerate().find_map(|(at, line)| {
        let other = lines.iter().take(at).find(|other| other.key == line.key && other.value != line.value)?;
        Some((other, line))
    })
}

/// The file with one line changed or added, and a comment above it; everything else is unchanged, as is the
/// whole file if the line already has the value.
fn with_line(bytes: &[u8], key: &str, value: &str) -> Result<Vec<u8>, String> {
    if [key, value].iter().any(|text| text.contains(['\n', '\r', '\0'])) || key.trim().is_empty() {
        return Err(format!(
            "{key:?} = {value:?} does not fit in one line; this plan is wrong, make a new one"
        ));
    }
    let all: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    // Keys below a heading belong to that section.
    let end = all.iter().position(|line| line.trim_ascii_start().starts_with(b"[")).unwrap_or(all.len());
    let here = all.get(..end).unwrap_or_default();
    let found: Vec<(usize, &[u8])> =
        here.iter().enumerate().filter_map(|(at, line)| Some((at, value_of(line, key)?))).collect();
    match found.as_slice() {
        [] => Ok(added(&all, end, key, value)),
        [(_, present)] if present.trim_ascii() == value.as_bytes() => Ok(bytes.to_vec()),
        [(at, present)] => Ok(changed(&all, *at, present, value)),
        several => {
            let count = several.len();
            Err(format!("{key} is set {count} times; remove all but one"))
        }
    }
}

/// The text after `key =`, with the line end; none if the line sets another key.
fn value_of<'a>(line: &'a [u8], key: &str) -> Option<&'a [u8]> {
    let at = line.iter().position(|byte| *byte == b'=')?;
    let (name, rest) = line.split_at(at);
    (name.trim_ascii() == key.as_bytes()).then(|| rest.get(1..).unwrap_or_default())
}

fn line_end(line: &[u8]) -> &'static [u8] {
    if line.ends_with(b"\r\n") { b"\r\n" } else { b"\n" }
}

fn changed(all: &[&[u8]], at: usize, present: &[u8], value: &str) -> Vec<u8> {
    let mut new = Vec::new();
    for (number, line) in all.iter().enumerate() {
        if number != at {
            new.extend_from_slice(line);
            continue;
        }
        let is_commented = at > 0 && all.get(at - 1).is_some_and(|above| above.trim_ascii() == COMMENT);
        if !is_commented {
            new.extend_from_slice(COMMENT);
            new.extend_from_slice(line_end(line));
        }
        // Keeps the text up to the equals sign, the space after it, and the line end.
        let spaces = present.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        let kept = line.len() - present.len() + spaces;
        new.extend_from_slice(line.get(..kept).unwrap_or_default());
        new.extend_from_slice(value.as_bytes());
        if line.ends_with(b"\n") {
            new.extend_from_slice(line_end(line));
        }
    }
    new
}

fn added(all: &[&[u8]], end: usize, key: &str, value: &str) -> Vec<u8> {
    let (before, after) = all.split_at(end.min(all.len()));
    let eol = before.last().or(after.first()).map_or(&b"\n"[..], |line| line_end(line));
    let mut new = before.concat();
    if before.last().is_some_and(|line| !line.ends_with(b"\n")) {
        new.extend_from_slice(eol);
    }
    let holds_equals = |line: &[u8]| line.windows(3).any(|part| part == b" = ");
    let is_spaced =
        before.iter().any(|line| !line.trim_ascii_start().starts_with(b"#") && holds_equals(line));
    let equals = if is_spaced { " = " } else { "=" };
    new.extend_from_slice(COMMENT);
    new.extend_from_slice(eol);
    new.extend_from_slice(format!("{key}{equals}{value}").as_bytes());
    new.extend_from_slice(eol);
    new.extend(after.concat());
    new
}
