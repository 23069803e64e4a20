//! Merges a profile and the ones it includes as TuneD does.

use super::{
    Tree,
    expand::{Scope, Stop, is_word, replace},
    functions::search,
    ini::{Entry, Section, parse, parse_variables, set},
};
use crate::import::Unread;
use lowlat_host::{HostSnapshot, Reading, snapshot::OriginKind};
use regex_lite::Regex;
use std::collections::BTreeMap;

/// Folders of profiles, highest precedence first. TuneD 2.23 moved them one level down.
const FOLDERS: [&str; 4] = ["/etc/tuned/profiles", "/etc/tuned", "/usr/lib/tuned/profiles", "/usr/lib/tuned"];
/// Maximum number of files of a profile.
const FILES_MAX: usize = 32;

/// A profile merged with the ones it includes.
pub struct MergedProfile<'a> {
    /// Its sections, those of included profiles first.
    pub units: Vec<Unit>,
    /// Names of included profiles that are not installed, each with the file that includes it.
    pub missing: Vec<(String, String)>,
    /// Parts whose values cannot be known.
    pub unread: Vec<Unread>,
    /// Reason why TuneD rejects the profile on this host.
    pub refused: Option<String>,
    scope: Scope<'a>,
}

/// A section of a profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unit {
    pub name: String,
    pub plugin: String,
    pub is_enabled: bool,
    /// The devices it applies to, as written: `sd* !sda`.
    pub devices: String,
    /// Pattern for /proc/cpuinfo; the section applies where it matches.
    pub cpuinfo: Option<String>,
    /// Pattern for the output of `uname`; the section applies where it matches.
    pub uname: Option<String>,
    /// Its place in the order: low numbers first.
    pub priority: Option<i64>,
    pub entries: Vec<Entry>,
    replaces: bool,
    prepends: bool,
    drops: Vec<String>,
}

impl Unit {
    fn new(section: Section) -> Self {
        let mut entries = section.entries;
        let mut take = |key: &str| {
            let at = entries.iter().position(|entry| entry.key == key)?;
            Some(entries.remove(at).value)
        };
        for ignored in ["devices_udev_regex", "script_pre", "script_post"] {
            take(ignored);
        }
        let is_true = |text: String| matches!(text.as_str(), "True" | "true" | "1");
        Self {
            plugin: take("type").unwrap_or_else(|| section.name.clone()),
            is_enabled: take("enabled").is_none_or(is_true),
            devices: take("devices").unwrap_or_else(|| "*".to_owned()),
            cpuinfo: take("cpuinfo_regex"),
            uname: take("uname_regex"),
            priority: take("priority").and_then(|text| text.parse().ok()),
            replaces: take("replace").is_some_and(is_true),
            prepends: take("prepend").is_some_and(is_true),
            drops: take("drop").map(|list| split(r"\b\s*[,;]\s*", &list)).unwrap_or_default(),
            name: section.name,
            entries,
        }
    }

    /// Adds a later section of the same name.
    fn merge(&mut self, later: Self) {
        self.entries.retain(|entry| !later.drops.contains(&entry.key));
        for entry in later.entries {
            set(&mut self.entries, entry);
        }
        (self.plugin, self.is_enabled, self.devices) = (later.plugin, later.is_enabled, later.devices);
        self.cpuinfo = later.cpuinfo.or(self.cpuinfo.take());
        self.uname = later.uname.or(self.uname.take());
        self.priority = later.priority.or(self.priority);
    }
}

fn split(separator: &str, list: &str) -> Vec<String> {
    Regex::new(separator).iter().flat_map(|regex| regex.split(list)).map(str::to_owned).collect()
}

struct Loader<'a> {
    profile: MergedProfile<'a>,
    folders: Vec<String>,
    /// The paths of files read so far, and in `files` their sections, those of included profiles first.
    seen: Vec<String>,
    files: Vec<Vec<Section>>,
}

impl<'a> MergedProfile<'a> {
    /// Loads profiles by name, or one by the path of its file. Errors: TuneD rejects a file, or it cannot be read.
    pub fn load(names: &[&str], tree: &'a dyn Tree, host: &'a HostSnapshot) -> Result<Self, String> {
        let scope = Scope { host, tree, variables: BTreeMap::new(), gap: None };
        let (units, missing, unread) = (Vec::new(), Vec::new(), Vec::new());
        let profile = Self { units, missing, unread, refused: None, scope };
        let folders = FOLDERS.map(str::to_owned).to_vec();
        let mut loader = Loader { profile, folders, seen: Vec::new(), files: Vec::new() };
        for name in names {
            if name.starts_with('/') {
                // Profiles that are not installed are in neighbouring directories.
                let beside = name.rsplitn(3, '/').last().unwrap_or_default().to_owned();
                if !loader.folders.contains(&beside) {
                    loader.folders.insert(0, beside);
                }
                loader.add(name)?;
            } else {
                loader.find(name, "")?;
            }
        }
        Ok(loader.finish())
    }

    /// A value with its variables and functions replaced. Errors: the reason why it is unknown.
    pub fn expand(&self, value: &str) -> Result<String, String> {
        self.scope.expand(value).map_err(|stop| stop.why().to_owned())
    }

    /// The variables, each with its value or the reason why it is unknown.
    pub fn variables(&self) -> impl Iterator<Item = (&str, Result<&str, &str>)> {
        self.scope
            .variables
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_ref().map(String::as_str).map_err(Stop::why)))
    }

    /// True if a section applies to this host. Errors: the reason why that is unknown.
    pub fn applies(&self, unit: &Unit) -> Result<bool, String> {
        let matches = |pattern: &Option<String>, text: &dyn Fn() -> Result<String, Stop>| match pattern {
            Some(pattern) => search(&format!("(?m){}", self.scope.expand(pattern)?), &text()?),
            None => Ok(true),
        };
        let uname = matches(&unit.uname, &|| self.scope.uname());
        let cpuinfo = matches(&unit.cpuinfo, &|| self.scope.file("/proc/cpuinfo"));
        match (uname, cpuinfo) {
            _ if !unit.is_enabled => Ok(false),
            (Ok(false), _) | (_, Ok(false)) => Ok(false),
            (Err(stop), _) | (_, Err(stop)) => Err(stop.why().to_owned()),
            (Ok(true), Ok(true)) => Ok(true),
        }
    }
}

impl<'a> Loader<'a> {
    /// Adds a profile by its name, unless it is loaded already. A later folder may have another profile of that name.
    fn find(&mut self, name: &str, includer: &str) -> Result<(), String> {
        let (name, is_optional) = name.strip_prefix('-').map_or((name, false), |name| (name, true));
        let folder = name.rsplit('/').next().unwrap_or_default();
        let (mut is_seen, mut found) = (false, None);
        for place in self.folders.iter().filter(|_| !matches!(folder, "" | "." | "..")) {
            let path = format!("{place}/{folder}/tuned.conf");
            if self.seen.contains(&path) {
                is_seen = true;
            } else if !self.profile.scope.tree.read(&path).is_absent() {
                found = Some(path);
                break;
            }
        }
        match found {
            Some(path) => self.add(&path)?,
            None if is_seen || is_optional => {}
            None => self.profile.missing.push((name.to_owned(), includer.to_owned())),
        }
        Ok(())
    }

    /// Adds a file after those that it includes.
    fn add(&mut self, path: &str) -> Result<(), String> {
        if self.seen.len() >= FILES_MAX {
            return Err(format!("more than {FILES_MAX} profiles include each other"));
        }
        let text = match self.profile.scope.tree.read(path) {
            Reading::Known(text) => text,
            other => return Err(format!("{path} is {other}")),
        };
        self.seen.push(path.to_owned());
        let is_first = self.seen.len() == 1;
        let mut sections =
            parse(&text, path).map_err(|why| if is_first { why } else { format!("in {path}, {why}") })?;
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        for entry in sections.iter_mut().flat_map(|section| &mut section.entries) {
            let value =
                replace(&entry.value, |name| (name == "i:PROFILE_DIR").then(|| Ok(folder.to_owned())));
            entry.value = value.map_err(|stop| stop.why().to_owned())?;
        }
        let main = sections.iter().find(|section| section.name == "main");
        let include = main.and_then(|main| main.entries.iter().find(|entry| entry.key == "include"));
        match include.map(|include| self.profile.scope.expand(&include.value)) {
            Some(Ok(names)) => {
                for name in split(r"\s*[,;]\s*", &names) {
                    self.find(&name, path)?;
                }
            }
            Some(Err(stop)) => self.leave("[main] include", stop.why()),
            None => {}
        }
        self.files.push(sections);
        Ok(())
    }

    fn leave(&mut self, place: &str, why: &str) {
        self.profile.unread.push(Unread { place: place.to_owned(), why: why.to_owned(), is_invalid: false });
    }

    fn finish(mut self) -> MergedProfile<'a> {
        let mut variables: Vec<Entry> = Vec::new();
        let sections = std::mem::take(&mut self.files).into_iter().flatten();
        for unit in sections.filter(|section| section.name != "main").map(Unit::new) {
            if unit.plugin == "variables" {
                if unit.replaces {
                    variables.clear();
                }
                let is_new = |entry: &&Entry| !variables.iter().any(|old| old.key == entry.key);
                let first: Vec<Entry> =
                    unit.entries.iter().filter(|_| unit.prepends).filter(is_new).cloned().collect();
                variables.splice(0..0, first);
                for entry in unit.entries {
                    set(&mut variables, entry);
                }
                continue;
            }
            let units = &mut self.profile.units;
            match units.iter_mut().find(|old| old.name == unit.name) {
                Some(old) if unit.replaces => *old = unit,
                Some(old) => old.merge(unit),
                None => units.push(unit),
            }
        }
        for entry in variables {
            if entry.key == "include" { self.include(&entry) } else { self.define(entry) }
        }
        self.profile
    }

    fn define(&mut self, entry: Entry) {
        if is_word(&entry.key) {
            let value = self.profile.scope.expand(&entry.value);
            if let Err(stop) = &value {
                if let Stop::Refused(why) = stop {
                    self.profile.refused.get_or_insert_with(|| why.clone());
                }
                // Variables that refer to this one have the same reason.
                if !self.profile.unread.iter().any(|part| part.why == stop.why()) {
                    self.leave(&format!("[variables] {}", entry.key), stop.why());
                }
            }
            self.profile.scope.variables.insert(entry.key, value);
        }
    }

    /// Defines the variables of a file.
    fn include(&mut self, include: &Entry) {
        let path = &include.value;
        let name = path.rsplit('/').next().unwrap_or_default();
        let folder = include.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let tree = self.profile.scope.tree;
        // A profile that is not installed has its variables file in its own directory.
        let text = match tree.read(path) {
            Reading::Absent => tree.read(&format!("{folder}/{name}")),
            found => found,
        };
        let why = match text {
            Reading::Known(text) => match parse_variables(&text, path) {
                Ok(entries) => return entries.into_iter().for_each(|entry| self.define(entry)),
                Err(why) => format!("{path} cannot be parsed: {why}"),
            },
            Reading::Absent if self.profile.scope.host.origin.kind != OriginKind::Capture => {
                return self.leave("[variables] include", &format!("{path} does not exist on this host"));
            }
            _ => format!("{path} was not read"),
        };
        self.leave("[variables] include", &why);
        self.profile.scope.gap = Some(why);
    }
}
