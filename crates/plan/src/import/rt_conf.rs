//! rt-conf's configuration: `kernel_cmdline`, `irq_tuning`, `cpu_governance`
//! (documentation.ubuntu.com/real-time, "RT Conf YAML configuration schema").

use super::{
    Wishes,
    yaml::{cpus, either, entries, members, scalar},
};
use lowlat_host::{CpuSet, HostSnapshot, snapshot::Irq};
use regex_lite::Regex;
use serde_json::Value;

/// The parts of the file.
const PARTS: [&str; 3] = ["kernel_cmdline", "irq_tuning", "cpu_governance"];

pub fn read(value: &Value, host: &HostSnapshot) -> Wishes {
    let mut wishes = Wishes::default();
    if let Some(line) = either(value, PARTS[0]) {
        read_line(line, &mut wishes);
    }
    for (at, rule) in either(value, PARTS[1]).map(members).unwrap_or_default() {
        read_interrupts(&format!("{}{at}", PARTS[1]), rule, host, &mut wishes);
    }
    for (at, rule) in either(value, PARTS[2]).map(members).unwrap_or_default() {
        read_governor(&format!("{}{at}", PARTS[2]), rule, &mut wishes);
    }
    for (key, _) in entries(value).filter(|(key, _)| !PARTS.contains(&key.replace('-', "_").as_str())) {
        wishes.leave(key, "unknown to lowlat");
    }
    wishes
}

fn read_line(line: &Value, wishes: &mut Wishes) {
    // Newer versions list parameters as words, older ones map names to values.
    for (_, word) in line.get("parameters").map(members).unwrap_or_default() {
        let Some(word) = scalar(word) else { continue };
        let (name, value) = word.split_once('=').unwrap_or((&word, ""));
        wishes.boot(format!("{}.parameters {name}", PARTS[0]), name, Some(value));
    }
    for (name, value) in entries(line).filter(|(name, _)| *name != "parameters") {
        let place = format!("{}.{name}", PARTS[0]);
        match scalar(value) {
            Some(value) => wishes.boot(place, name, Some(&value)),
            None => wishes.leave(place, "has no value"),
        }
    }
}

fn read_interrupts(place: &str, rule: &Value, host: &HostSnapshot, wishes: &mut Wishes) {
    let Some(list) = rule.get("cpus").and_then(cpus) else {
        return wishes.leave(place, "has no cpus");
    };
    let filter = rule.get("filter").unwrap_or(&Value::Null);
    let mut patterns = Vec::new();
    for (name, pattern) in entries(filter) {
        let Some(pattern) = scalar(pattern) else { continue };
        let Some(field) = FIELDS.iter().find(|(field, _)| *field == name.replace('-', "_")) else {
            return wishes.leave(place, format!("the filter \"{name}\" is unknown to lowlat"));
        };
        match Regex::new(&pattern) {
            Ok(pattern) => patterns.push((field.1, pattern)),
            Err(error) => return wishes.refuse(place, format!("the filter \"{name}\" is invalid: {error}")),
        }
    }
    if patterns.is_empty() {
        return wishes.leave(place, "has no filter");
    }
    wishes.interrupts(place, &list, host, |irq| {
        patterns.iter().all(|(field, pattern)| field(irq).iter().any(|text| pattern.is_match(text)))
    });
}

/// What a filter compares with a pattern.
type Field = fn(&Irq) -> Vec<String>;

const FIELDS: [(&str, Field); 2] =
    [("actions", |irq| irq.actions.clone()), ("chip_name", |irq| vec![irq.chip.clone()])];

fn read_governor(place: &str, rule: &Value, wishes: &mut Wishes) {
    let list = rule.get("cpus").and_then(cpus);
    let governor = either(rule, "scaling_governor").and_then(scalar);
    match (list, governor) {
        (Some(list), Some(governor)) => match CpuSet::parse_list(&list) {
            Ok(cpus) => wishes.governor(place, &governor, &cpus),
            Err(error) => wishes.refuse(place, error.to_string()),
        },
        _ => wishes.leave(place, "has no list of cpus or no scaling_governor"),
    }
    for limit in ["min_freq", "max_freq"] {
        if either(rule, limit).is_some() {
            wishes.leave(format!("{place}.{limit}"), "lowlat sets no limits of the frequency");
        }
    }
}
