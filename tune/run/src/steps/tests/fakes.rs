//! Targets that read and write a captured tree as the real ones do a host, so that reading the tree again shows the
//! changes.

use lowlat_settings::change::nic::KINDS;
use lowlat_undo::{HostError, State, Target, TargetSpec, Writer};
use serde_json::Value;
use std::{
    fs,
    path::{Path, PathBuf},
};

/// Original texts of documents, so that they are restored to the byte.
#[derive(Debug, Clone)]
struct Originals(PathBuf);

impl Originals {
    /// Changes a JSON document of the tree.
    fn change(&self, writer: &Writer, path: &str, change: impl FnOnce(&mut Value)) -> Result<(), HostError> {
        let kept = self.0.join(path.replace('/', "_"));
        let text = read(writer, path)?;
        if !kept.exists() {
            fs::create_dir_all(&self.0).unwrap();
            fs::write(&kept, &text).unwrap();
        }
        let mut document: Value = serde_json::from_str(&text).unwrap();
        change(&mut document);
        let original = fs::read_to_string(&kept).unwrap();
        let is_original = serde_json::from_str::<Value>(&original).unwrap() == document;
        writer.write_value(path, &if is_original { original } else { document.to_string() })
    }
}

fn read(writer: &Writer, path: &str) -> Result<String, HostError> {
    match writer.read_value(path)? {
        State::Value(text) => Ok(text),
        other => Err(HostError::Refused { path: path.to_owned(), what: format!("it is {other}") }),
    }
}

fn value_of(to: &State) -> &str {
    match to {
        State::Value(text) => text.trim(),
        other => panic!("{other} is no value"),
    }
}

pub(super) fn all(originals: &Path) -> Vec<Box<dyn Target>> {
    let originals = Originals(originals.to_owned());
    let ethtool = |kind| -> Box<dyn Target> { Box::new(Ethtool { kind, originals: originals.clone() }) };
    let groups = KINDS.iter().filter_map(|kind| kind.ethtool());
    let mut all: Vec<Box<dyn Target>> = vec![
        Box::new(Thread { kind: "kthread-affinity" }),
        Box::new(Thread { kind: "kthread-scheduling" }),
        Box::new(Units { originals: originals.clone() }),
        Box::new(Tuned),
    ];
    all.extend(groups.map(|group| ethtool(group.undo_kind)));
    all
}

/// Threads, in /proc/PID/status and stat. Named "78 kswapd0".
#[derive(Debug)]
struct Thread {
    kind: &'static str,
}

/// Positions of the priority and the policy among the words after the name in /proc/PID/stat (fields 40 and 41).
const PRIORITY: usize = 37;
const POLICY: usize = 38;

impl Thread {
    fn path(&self, spec: &TargetSpec) -> String {
        let pid = spec.name.split(' ').next().unwrap();
        let file = if self.kind == "kthread-affinity" { "status" } else { "stat" };
        format!("/proc/{pid}/{file}")
    }

    fn is_there(&self, writer: &Writer, spec: &TargetSpec) -> bool {
        let comm = spec.name.split_once(' ').unwrap().1;
        let is =
            |text: String| text.contains(&format!("Name:\t{comm}\n")) || text.contains(&format!("({comm})"));
        read(writer, &self.path(spec)).is_ok_and(is)
    }
}

impl Target for Thread {
    fn kind(&self) -> &'static str {
        self.kind
    }

    fn outlives_boot(&self, _: &TargetSpec) -> bool {
        false
    }

    fn read(&self, writer: &Writer, spec: &TargetSpec) -> Result<State, HostError> {
        if !self.is_there(writer, spec) {
            return Ok(State::Absent);
        }
        let text = read(writer, &self.path(spec))?;
        if self.kind == "kthread-affinity" {
            let list = text.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:\t"));
            return Ok(State::Value(list.unwrap().to_owned()));
        }
        let words: Vec<&str> = text.rsplit_once(") ").unwrap().1.split(' ').collect();
        Ok(State::Value(match (words[POLICY], words[PRIORITY]) {
            ("0", _) => "SCHED_OTHER".to_owned(),
            ("1", priority) => format!("SCHED_FIFO {priority}"),
            other => panic!("{other:?}"),
        }))
    }

    fn write(&self, writer: &Writer, spec: &TargetSpec, to: &State) -> Result<(), HostError> {
        let (path, to) = (self.path(spec), value_of(to));
        let text = read(writer, &path)?;
        if self.kind == "kthread-affinity" {
            let line = text.lines().find(|line| line.starts_with("Cpus_allowed_list:")).unwrap();
            return writer.write_value(&path, &text.replace(line, &format!("Cpus_allowed_list:\t{to}")));
        }
        let (policy, priority) = match to.split_once(' ') {
            Some(("SCHED_FIFO", priority)) => ("1", priority),
            None if to == "SCHED_OTHER" => ("0", "0"),
            _ => panic!("{to}"),
        };
        let (head, rest) = text.rsplit_once(") ").unwrap();
        let mut words: Vec<&str> = rest.split(' ').collect();
        (words[POLICY], words[PRIORITY]) = (policy, priority);
        writer.write_value(&path, &format!("{head}) {}", words.join(" ")))
    }
}

/// Units, in the capture's copy of systemd's answers.
#[derive(Debug)]
struct Units {
    originals: Originals,
}

pub(super) const UNITS: &str = "/.lowlat/interface/systemd-units";

fn is_file_of(file: &Value, unit: &str) -> bool {
    file["path"].as_str().unwrap().ends_with(&format!("/{unit}"))
}

impl Target for Units {
    fn kind(&self) -> &'static str {
        "service"
    }

    fn read(&self, writer: &Writer, spec: &TargetSpec) -> Result<State, HostError> {
        let listing: Value = serde_json::from_str(&read(writer, UNITS)?).unwrap();
        let loaded = listing["loaded"].as_array().unwrap().iter();
        let unit = loaded.clone().find(|unit| unit["name"] == spec.name.as_str());
        let Some(unit) = unit else { return Ok(State::Absent) };
        let file = listing["files"].as_array().unwrap().iter().find(|file| is_file_of(file, &spec.name));
        let active = unit["active"].as_str().unwrap();
        Ok(State::Value(match file {
            Some(file) => format!("{active}, {}", file["state"].as_str().unwrap()),
            None => active.to_owned(),
        }))
    }

    fn write(&self, writer: &Writer, spec: &TargetSpec, to: &State) -> Result<(), HostError> {
        let to = value_of(to).to_owned();
        let (active, enablement) = to.split_once(", ").map_or((to.as_str(), None), |(a, e)| (a, Some(e)));
        self.originals.change(writer, UNITS, |listing| {
            for unit in listing["loaded"].as_array_mut().unwrap() {
                if unit["name"] == spec.name.as_str() {
                    unit["active"] = active.into();
                }
            }
            for file in listing["files"].as_array_mut().unwrap() {
                if let Some(enablement) = enablement.filter(|_| is_file_of(file, &spec.name)) {
                    file["state"] = enablement.into();
                }
            }
        })
    }
}

/// TuneD's profile and mode, in its two files.
#[derive(Debug)]
struct Tuned;

impl Target for Tuned {
    fn kind(&self) -> &'static str {
        "tuned-profile"
    }

    fn read(&self, writer: &Writer, _: &TargetSpec) -> Result<State, HostError> {
        let part =
            |name: &str| read(writer, &format!("/etc/tuned/{name}")).map(|text| text.trim().to_owned());
        Ok(State::Value(format!("{} {}", part("active_profile")?, part("profile_mode")?)))
    }

    fn write(&self, writer: &Writer, _: &TargetSpec, to: &State) -> Result<(), HostError> {
        let (profile, mode) = value_of(to).split_once(' ').unwrap();
        writer.write_value("/etc/tuned/active_profile", &format!("{profile}\n"))?;
        writer.write_value("/etc/tuned/profile_mode", &format!("{mode}\n"))
    }
}

/// Interfaces, in the capture's copy of ethtool's answers. Named "enp1s0 combined".
#[derive(Debug)]
struct Ethtool {
    kind: &'static str,
    originals: Originals,
}

impl Ethtool {
    /// The document, and the place in it.
    fn place(&self, spec: &TargetSpec) -> (String, String) {
        let (nic, field) = spec.name.split_once(' ').unwrap();
        let place = match self.kind {
            "nic-feature" => format!("/offloads/known/{field}"),
            kind => format!("/{}/known/{}", kind.trim_start_matches("nic-"), field.replace('-', "_")),
        };
        (format!("/.lowlat/interface/ethtool/{nic}"), place)
    }
}

impl Target for Ethtool {
    fn kind(&self) -> &'static str {
        self.kind
    }

    fn outlives_boot(&self, _: &TargetSpec) -> bool {
        false
    }

    fn read(&self, writer: &Writer, spec: &TargetSpec) -> Result<State, HostError> {
        let (path, place) = self.place(spec);
        let document: Value = serde_json::from_str(&read(writer, &path)?).unwrap();
        Ok(match document.pointer(&place) {
            Some(Value::Bool(is_on)) => State::Value(if *is_on { "on" } else { "off" }.to_owned()),
            Some(Value::Number(number)) => State::Value(number.to_string()),
            _ => State::Absent,
        })
    }

    fn write(&self, writer: &Writer, spec: &TargetSpec, to: &State) -> Result<(), HostError> {
        let (path, place) = self.place(spec);
        let new = match value_of(to) {
            "on" => Value::Bool(true),
            "off" => Value::Bool(false),
            number => number.parse::<u64>().unwrap().into(),
        };
        self.originals.change(writer, &path, |document| *document.pointer_mut(&place).unwrap() = new)
    }
}
