//! Profiles of TuneD: INI files whose sections are plug-ins.

use super::{Wishes, number_of};
use lowlat_host::{HostSnapshot, snapshot::glob_matches};
use lowlat_settings::change::Target;
use std::collections::BTreeMap;

/// Members of `[vm]` that are sysctls below `vm.`.
const VM: [&str; 4] = ["dirty_bytes", "dirty_ratio", "dirty_background_bytes", "dirty_background_ratio"];

/// Members of `[cpu]` that are files.
const CPU_FILES: [(&str, &str); 3] = [
    ("no_turbo", "/sys/devices/system/cpu/intel_pstate/no_turbo"),
    ("min_perf_pct", "/sys/devices/system/cpu/intel_pstate/min_perf_pct"),
    ("max_perf_pct", "/sys/devices/system/cpu/intel_pstate/max_perf_pct"),
];

/// Longest part of a line that an error shows.
const SHOWN_CHARS_MAX: usize = 60;

/// One line of a profile.
#[derive(Debug, Clone)]
struct Entry {
    section: String,
    key: String,
    value: String,
}

/// Names of the profiles that a profile includes.
pub fn includes(text: &str) -> Vec<String> {
    let main = included(text, "main");
    main.iter()
        .flat_map(|names| names.split([',', ' ']))
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Paths of the files with the variables of a profile.
pub fn variable_files(text: &str) -> Vec<String> {
    included(text, "variables")
}

fn included(text: &str, section: &str) -> Vec<String> {
    let entries = parse(text).into_iter();
    entries
        .filter(|entry| entry.section == section && entry.key == "include")
        .map(|entry| entry.value)
        .collect()
}

/// Reads profiles in their order; a later one replaces entries of the earlier ones. Errors: a line of a form that TuneD
/// rejects.
pub fn read(texts: &[String], host: &HostSnapshot) -> Result<Wishes, String> {
    for (at, text) in texts.iter().enumerate() {
        let is_included = at + 1 < texts.len();
        check(text)
            .map_err(|why| if is_included { format!("in a file that it includes, {why}") } else { why })?;
    }
    let mut entries: Vec<Entry> = Vec::new();
    for entry in texts.iter().flat_map(|text| parse(text)) {
        // Parts of the command line add up under their own names.
        entries.retain(|old| (&old.section, &old.key) != (&entry.section, &entry.key));
        entries.push(entry);
    }
    let variables: BTreeMap<String, String> = entries
        .iter()
        .filter(|entry| entry.section == "variables")
        .map(|entry| (entry.key.clone(), entry.value.clone()))
        .collect();
    let mut wishes = Wishes::default();
    for entry in entries.iter().filter(|entry| !["main", "variables"].contains(&entry.section.as_str())) {
        let place = format!("[{}] {}", entry.section, entry.key);
        match substitute(&entry.value, &variables) {
            Ok(value) => one(&place, entry, &value, host, &mut wishes),
            Err(why) => wishes.leave(place, why),
        }
    }
    Ok(wishes)
}

/// Finds a line that is no header, no `NAME=VALUE` below one, and no indented continuation: TuneD's parser rejects it.
fn check(text: &str) -> Result<(), String> {
    let mut is_in_section = false;
    for (at, line) in text.lines().enumerate() {
        let is_continued = is_in_section && line.starts_with([' ', '\t']);
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) || is_continued {
            continue;
        }
        let wrong = if header(line).is_some() {
            is_in_section = true;
            continue;
        } else if line.starts_with('[') && !line.contains('=') {
            "is not a section header"
        } else if !is_in_section {
            "is not in a section"
        } else if line.contains('=') {
            continue;
        } else {
            "is not NAME=VALUE"
        };
        let shown: String = line.chars().take(SHOWN_CHARS_MAX).collect();
        return Err(format!("line {} {wrong}: \"{shown}\"", at + 1));
    }
    Ok(())
}

/// The name in a section's header, which a comment may follow.
fn header(line: &str) -> Option<&str> {
    let (name, rest) = line.strip_prefix('[')?.split_once(']')?;
    let rest = rest.trim();
    (rest.is_empty() || rest.starts_with(['#', ';'])).then_some(name.trim())
}

fn parse(text: &str) -> Vec<Entry> {
    let mut section = String::new();
    let mut entries: Vec<Entry> = Vec::new();
    for line in text.lines() {
        let is_continued = line.starts_with([' ', '\t']);
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(name) = header(line).filter(|_| !is_continued) {
            name.clone_into(&mut section);
        } else if let Some((key, value)) = line.split_once('=').filter(|_| !is_continued) {
            let (key, value) = (key.trim().to_owned(), unquoted(value.trim()).to_owned());
            entries.push(Entry { section: section.clone(), key, value });
        } else if let Some(last) = entries.last_mut() {
            last.value.push(' ');
            last.value.push_str(line);
        }
    }
    entries
}

fn unquoted(value: &str) -> &str {
    value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(value)
}

/// Replaces `${name}`. Errors: the variable is not in the profile, or only TuneD can compute it.
fn substitute(value: &str, variables: &BTreeMap<String, String>) -> Result<String, String> {
    let mut text = value.to_owned();
    // A variable may name others; a profile that names itself ends here.
    for _ in 0..10 {
        let Some((before, rest)) = text.split_once("${") else { return Ok(text) };
        let Some((name, after)) = rest.split_once('}') else { break };
        if name.starts_with("f:") || name.starts_with("i:") {
            return Err(format!("only TuneD computes ${{{name}}}"));
        }
        let Some(known) = variables.get(name) else {
            return Err(format!("the profile does not define ${{{name}}}"));
        };
        text = format!("{before}{known}{after}");
    }
    Err("its variables have no end".to_owned())
}

fn one(place: &str, entry: &Entry, value: &str, host: &HostSnapshot, wishes: &mut Wishes) {
    match (entry.section.as_str(), entry.key.as_str()) {
        ("sysctl", key) => wishes.sysctl(place, key, at_least(key, value, host)),
        ("sysfs", path) => sysfs(place, path, value, host, wishes),
        ("bootloader", key) if key.starts_with("cmdline") => command_line(place, value, wishes),
        ("vm", "transparent_hugepages" | "transparent_hugepage") => {
            wishes.file(place, "/sys/kernel/mm/transparent_hugepage/enabled", value);
        }
        ("vm", key) if VM.contains(&key) => wishes.sysctl(place, &format!("vm.{key}"), value),
        ("cpu", "governor") => {
            // TuneD takes the first of several that the driver has.
            let first = value.split('|').next().unwrap_or_default();
            wishes.governor(place, first, &host.topology.online);
        }
        ("cpu", "force_latency") => {
            wishes.leave(place, "TuneD holds /dev/cpu_dma_latency while it runs; nothing is set that stays");
        }
        ("cpu", key) => match CPU_FILES.iter().find(|(name, _)| *name == key) {
            Some((_, path)) => wishes.file(place, path, number_of(value)),
            None => wishes.leave(place, "lowlat has no counterpart"),
        },
        ("service", key) => service(place, key, value, wishes),
        _ => wishes.leave(place, "lowlat has no counterpart"),
    }
}

/// The value after TuneD's operators: `>` and `<` raise or lower the present one.
fn at_least(key: &str, value: &str, host: &HostSnapshot) -> String {
    let present: Option<i64> = host.sysctl(key).known().and_then(|text| text.trim().parse().ok());
    let operand = |operator| value.strip_prefix(operator).and_then(|text| text.trim().parse::<i64>().ok());
    match (operand('>'), operand('<')) {
        (Some(least), _) => present.map_or(least, |now| now.max(least)).to_string(),
        (_, Some(most)) => present.map_or(most, |now| now.min(most)).to_string(),
        _ => value.trim_start_matches(['>', '<', '=']).trim().to_owned(),
    }
}

fn sysfs(place: &str, path: &str, value: &str, host: &HostSnapshot, wishes: &mut Wishes) {
    if !path.contains(['*', '?', '[']) {
        return wishes.file(place, path, value);
    }
    let paths: Vec<Target> = host
        .files
        .keys()
        .filter(|file| glob_matches(path, file))
        .map(|file| Target::File { path: file.clone() })
        .collect();
    if paths.is_empty() {
        return wishes.leave(place, "no file that lowlat reads on this host matches");
    }
    wishes.requests.push(super::Request { place: place.to_owned(), targets: paths, value: value.to_owned() });
}

fn command_line(place: &str, value: &str, wishes: &mut Wishes) {
    // The sign says how the words join those of included profiles.
    let (value, is_removed) = match value.strip_prefix('-') {
        Some(rest) if !rest.starts_with('-') => (rest, true),
        _ => (value.strip_prefix('+').unwrap_or(value), false),
    };
    for word in value.split_whitespace() {
        let (name, word) = word.split_once('=').unwrap_or((word, ""));
        wishes.boot(format!("{place}: {name}"), name, (!is_removed).then_some(word));
    }
}

/// `service.NAME=stop,disable`.
fn service(place: &str, key: &str, value: &str, wishes: &mut Wishes) {
    let name = key.strip_prefix("service.").unwrap_or(key);
    let unit = if name.contains('.') { name.to_owned() } else { format!("{name}.service") };
    let words: Vec<&str> = value.split(',').map(str::trim).collect();
    let has = |word: &str| words.contains(&word);
    let state = match (has("start"), has("stop"), has("enable"), has("disable")) {
        (true, false, true, false) => "active, enabled",
        (false, true, false, true) => "inactive, disabled",
        (true, false, false, false) => "active",
        (false, true, false, false) => "inactive",
        _ => return wishes.leave(place, "lowlat starts and enables, or stops and disables, a service"),
    };
    wishes.ask(place, Target::Service { unit }, state);
}
