//! Differences between two snapshots.
//!
//! The snapshots are compared as JSON values, so new fields need no code here. Items of lists are matched by
//! their name, number or CPUs if these are unique, otherwise by position.

use crate::HostSnapshot;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// A fact that differs between two hosts, or between two times on one host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Difference {
    /// Path of the fact: `kernel.release`, `nics[eth0].mtu_bytes`.
    pub path: String,
    /// Value in the first snapshot; `None` if missing.
    pub a: Option<String>,
    /// Value in the second snapshot; `None` if missing.
    pub b: Option<String>,
}

/// The facts that are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DiffScope {
    /// Stable facts: no counts, load, uptime, process IDs, free memory or temporary kernel workers.
    #[default]
    Lasting,
    All,
}

/// Names of fields that change from second to second.
const MOVING_FIELDS: &[&str] = &[
    "count_by_cpu",
    "load_average",
    "boot_id",
    "uptime_s",
    "available_bytes",
    "free",
    "used_bytes",
    "steal_ticks",
    "pid",
    "napi_id",
    "drops",
    "driver_drops",
    "allowed_cpus",
    "label",
];
/// Kept files whose text changes from second to second.
const MOVING_FILES: &[&str] =
    &["/proc/loadavg", "/proc/uptime", "/proc/stat", "/proc/vmstat", "/proc/meminfo", "/proc/schedstat"];
/// Fields that can identify an item of a list, in order of preference.
const KEYS: &[&str] = &["name", "number", "locator", "group", "comm", "queue", "path", "cpus", "id"];
/// Maximum number of characters kept of a value.
const VALUE_CHARS_MAX: usize = 2_000;

/// Every difference between `a` and `b`, by path.
pub fn diff(a: &HostSnapshot, b: &HostSnapshot, scope: DiffScope) -> Vec<Difference> {
    // By way of the text, for which there is code already.
    let value_of = |host: &HostSnapshot| {
        serde_json::to_string(host).and_then(|text| serde_json::from_str(&text)).unwrap_or(Value::Null)
    };
    let mut walk = Walk { scope, found: Vec::new() };
    walk.compare("", Some(&value_of(a)), Some(&value_of(b)));
    walk.found
}

struct Walk {
    scope: DiffScope,
    found: Vec<Difference>,
}

impl Walk {
    fn compare(&mut self, path: &str, a: Option<&Value>, b: Option<&Value>) {
        let (a, b) = (a.map(known), b.map(known));
        match (a, b) {
            (Some(a), Some(b)) if a == b => {}
            (Some(Value::Object(a)), Some(Value::Object(b))) => self.objects(path, a, b),
            (Some(Value::Array(a)), Some(Value::Array(b))) => self.arrays(path, a, b),
            (a, b) => {
                let difference = Difference { path: path.to_owned(), a: a.map(text), b: b.map(text) };
                self.found.push(difference);
            }
        }
    }

    fn objects(&mut self, path: &str, a: &Map<String, Value>, b: &Map<String, Value>) {
        let mut names: Vec<&String> = a.keys().chain(b.keys()).collect();
        names.sort_unstable();
        names.dedup();
        for name in names {
            if !self.moves(name) {
                self.compare(&join(path, name), a.get(name), b.get(name));
            }
        }
    }

    fn arrays(&mut self, path: &str, a: &[Value], b: &[Value]) {
        let (a, b) = (self.lasting(a), self.lasting(b));
        if let Some((a, b)) = KEYS.iter().find_map(|key| Some((keyed(&a, key)?, keyed(&b, key)?))) {
            let mut names: Vec<&String> = a.keys().chain(b.keys()).collect();
            names.sort_unstable_by_key(|name| (name.len(), name.as_str()));
            names.dedup();
            for name in names {
                let place = format!("{path}[{name}]");
                self.compare(&place, a.get(name).copied(), b.get(name).copied());
            }
        } else if a.iter().chain(&b).all(|item| item.is_object()) {
            for at in 0..a.len().max(b.len()) {
                self.compare(&format!("{path}[{at}]"), a.get(at).copied(), b.get(at).copied());
            }
        } else {
            let texts = |items: &[&Value]| items.iter().map(|item| text(item)).collect::<Vec<_>>().join(", ");
            let (a, b) = (texts(&a), texts(&b));
            self.found.push(Difference { path: path.to_owned(), a: Some(a), b: Some(b) });
        }
    }

    fn moves(&self, name: &str) -> bool {
        self.scope == DiffScope::Lasting && (MOVING_FIELDS.contains(&name) || MOVING_FILES.contains(&name))
    }

    /// The items without the kernel's workers, which it starts and ends at any time.
    fn lasting<'v>(&self, items: &'v [Value]) -> Vec<&'v Value> {
        let is_worker = |item: &Value| {
            item.get("comm").and_then(Value::as_str).is_some_and(|comm| comm.starts_with("kworker/"))
        };
        items.iter().filter(|item| self.scope == DiffScope::All || !is_worker(item)).collect()
    }
}

/// The value inside a known reading; other values as they are.
fn known(value: &Value) -> &Value {
    match value {
        Value::Object(fields) if fields.len() == 1 => fields.get("known").unwrap_or(value),
        other => other,
    }
}

/// The items by their value of `key`, if all have one and they are unique.
fn keyed<'v>(items: &[&'v Value], key: &str) -> Option<BTreeMap<String, &'v Value>> {
    let mut by_name = BTreeMap::new();
    for item in items {
        let name = text(known(item.get(key)?));
        if by_name.insert(name, *item).is_some() {
            return None;
        }
    }
    Some(by_name)
}

/// A path one step longer. Names that are paths themselves are quoted.
fn join(path: &str, name: &str) -> String {
    let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    match (path.is_empty(), is_plain) {
        (true, true) => name.to_owned(),
        (false, true) => format!("{path}.{name}"),
        _ => format!("{path}[{name}]"),
    }
}

/// A value for display: text without quotes, everything else as JSON, truncated if long.
fn text(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    match text.char_indices().nth(VALUE_CHARS_MAX) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CpuSet, Reading};
    use crate::{snapshot::Irq, snapshot::KernelThread, snapshot::Nic, snapshot::SchedPolicy};

    fn host() -> HostSnapshot {
        let mut host = HostSnapshot::default();
        host.kernel.release = Reading::Known("6.1.0".into());
        host.kernel.uptime_s = Reading::Known(5.0);
        let mtu_bytes = Reading::Known(1500);
        host.nics = vec![Nic { name: "eth0".into(), mtu_bytes, ..Nic::default() }];
        host.interrupts.irqs =
            vec![Irq { number: 9, ..Irq::default() }, Irq { number: 47, ..Irq::default() }];
        host.files.insert("/proc/sys/vm/swappiness".into(), Reading::Known("60".into()));
        host
    }

    fn thread(comm: &str, pid: u32) -> KernelThread {
        KernelThread {
            pid,
            comm: comm.into(),
            cpus_allowed: Reading::Absent,
            policy: SchedPolicy::Other,
            rt_priority: 0,
            is_bound: false,
        }
    }

    fn lines(a: &HostSnapshot, b: &HostSnapshot, scope: DiffScope) -> Vec<String> {
        let or = |text: Option<String>| text.unwrap_or_else(|| "(nothing)".into());
        diff(a, b, scope).into_iter().map(|d| format!("{}: {} -> {}", d.path, or(d.a), or(d.b))).collect()
    }

    #[test]
    fn a_host_does_not_differ_from_itself() {
        assert!(diff(&host(), &host(), DiffScope::All).is_empty());
    }

    #[test]
    fn paths_name_items_and_readings_show_as_values() {
        let (a, mut b) = (host(), host());
        b.kernel.release = Reading::Denied;
        b.nics[0].mtu_bytes = Reading::Known(9000);
        b.interrupts.irqs[1].affinity = Reading::Known(CpuSet::parse_list("0,8").unwrap());
        b.interrupts.irqs.remove(0);
        b.files.insert("/proc/sys/vm/swappiness".into(), Reading::Known("0".into()));
        let found = lines(&a, &b, DiffScope::Lasting);
        assert!(found[1].starts_with("interrupts.irqs[9]: {"), "{found:#?}");
        assert!(found[1].ends_with("-> (nothing)"));
        let others: Vec<&str> = [0, 2, 3, 4].iter().map(|at| found[*at].as_str()).collect();
        assert_eq!(
            others,
            [
                "files[/proc/sys/vm/swappiness]: 60 -> 0",
                "interrupts.irqs[47].affinity: absent -> 0,8",
                "kernel.release: 6.1.0 -> denied",
                "nics[eth0].mtu_bytes: 1500 -> 9000",
            ]
        );
    }

    #[test]
    fn what_always_moves_is_left_out_unless_asked_for() {
        let (mut a, mut b) = (host(), host());
        b.kernel.uptime_s = Reading::Known(6.0);
        b.interrupts.irqs[0].count_by_cpu.insert(0, 7);
        a.tasks.kernel_threads = vec![thread("kthreadd", 2), thread("kworker/0:1", 30)];
        b.tasks.kernel_threads = vec![thread("kthreadd", 3)];
        assert_eq!(lines(&a, &b, DiffScope::Lasting), Vec::<String>::new());
        assert_eq!(diff(&a, &b, DiffScope::All).len(), 4);
    }
}
