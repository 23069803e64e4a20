//! rt-conf's configuration: `kernel_cmdline`, `irq_tuning`, `cpu_governance`
//! (documentation.ubuntu.com/real-time, "RT Conf YAML configuration schema").

use super::{
    Tree, Wishes,
    yaml::{cpus, either, entries, members, scalar},
};
use lowlat_host::{CpuSet, HostSnapshot, snapshot::Irq};
use regex_lite::Regex;
use serde_json::Value;

/// The parts of the file.
const PARTS: [&str; 3] = ["kernel_cmdline", "irq_tuning", "cpu_governance"];

pub fn read(value: &Value, tree: &dyn Tree, host: &HostSnapshot) -> Wishes {
    let mut wishes = Wishes::default();
    if let Some(line) = either(value, PARTS[0]) {
        read_line(line, &mut wishes);
    }
    for (at, rule) in either(value, PARTS[1]).map(members).unwrap_or_default() {
        read_interrupts(&format!("{}{at}", PARTS[1]), rule, tree, host, &mut wishes);
    }
    for (at, rule) in either(value, PARTS[2]).map(members).unwrap_or_default() {
        read_governor(&format!("{}{at}", PARTS[2]), rule, host, &mut wishes);
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

fn read_interrupts(place: &str, rule: &Value, tree: &dyn Tree, host: &HostSnapshot, wishes: &mut Wishes) {
    let Some(list) = rule.get("cpus").and_then(cpus) else {
        return wishes.leave(place, "has no cpus");
    };
    let filter = rule.get("filter").unwrap_or(&Value::Null);
    let mut patterns = Vec::new();
    for (name, pattern) in entries(filter) {
        // An empty pattern matches everything.
        let Some(pattern) = scalar(pattern).filter(|pattern| !pattern.is_empty()) else { continue };
        let field = name.replace('-', "_");
        if !FIELDS.contains(&field.as_str()) {
            return wishes.leave(place, format!("the filter \"{name}\" is unknown to lowlat"));
        }
        match Regex::new(&pattern) {
            Ok(pattern) => patterns.push((field, pattern)),
            Err(error) => return wishes.refuse(place, format!("the filter \"{name}\" is invalid: {error}")),
        }
    }
    // Interrupts without a handler are left alone.
    let active = || host.interrupts.irqs.iter().filter(|irq| !irq.actions.is_empty());
    let unread = |(field, _): &&(String, Regex)| active().any(|irq| text_of(irq, field, tree).is_none());
    if let Some((field, _)) = patterns.iter().find(unread) {
        return wishes.leave(place, format!("/sys/kernel/irq/*/{field} was not read"));
    }
    wishes.interrupts(place, &list, host, |irq| {
        let is_match = |field: &str, pattern: &Regex| {
            text_of(irq, field, tree).is_some_and(|text| pattern.is_match(&text))
        };
        !irq.actions.is_empty() && patterns.iter().all(|(field, pattern)| is_match(field, pattern))
    });
}

/// Fields that filters compare with a pattern: files in /sys/kernel/irq/N.
const FIELDS: [&str; 4] = ["actions", "chip_name", "name", "type"];

/// A field of an interrupt. Without the file, /proc/interrupts shows the chip, and after a dash the name: `1-edge`.
fn text_of(irq: &Irq, field: &str, tree: &dyn Tree) -> Option<String> {
    let file = || tree.read(&format!("/sys/kernel/irq/{}/{field}", irq.number)).into_known();
    let last = irq.chip.split_whitespace().last().unwrap_or_default();
    let name = last.split_once('-').filter(|(number, _)| number.parse::<u64>().is_ok());
    match field {
        "actions" => Some(irq.actions.join(",")),
        "chip_name" => file().or_else(|| Some(irq.chip.clone())),
        "name" => file().or_else(|| Some(name?.1.to_owned())),
        _ => file(),
    }
}

fn read_governor(place: &str, rule: &Value, host: &HostSnapshot, wishes: &mut Wishes) {
    let list = rule.get("cpus").and_then(cpus);
    let governor = either(rule, "scaling_governor").and_then(scalar);
    match (list, governor) {
        (Some(list), Some(governor)) => match CpuSet::parse_list_within(&list, host.topology.cpu_count()) {
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
