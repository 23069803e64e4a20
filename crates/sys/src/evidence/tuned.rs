//! The active profile of TuneD with its parents, as tuned.conf(5) specifies: parents first; an option of a
//! child replaces the same option of the same section.

use super::{lines, text};
use crate::Root;
use lowlat_plan::verify::TunedOption;
use std::collections::BTreeMap;

/// Directories of profiles, highest precedence first. TuneD 2.23 moved them one level down.
const DIRECTORIES: [&str; 4] =
    ["/etc/tuned/profiles", "/etc/tuned", "/usr/lib/tuned/profiles", "/usr/lib/tuned"];
/// Maximum number of profiles in a chain. More indicate a loop or hostile input.
const PROFILES_MAX: usize = 32;
/// Maximum number of options in all profiles.
const OPTIONS_MAX: usize = 10_000;
/// Maximum number of rounds of variable expansion, and the longest expanded value.
const ROUNDS_MAX: usize = 8;
const VALUE_BYTES_MAX: usize = 64 << 10;

/// A section of a profile, with its parents' options.
#[derive(Debug, Default)]
struct Section {
    options: Vec<(String, Placed)>,
}

/// Location and value of an option.
#[derive(Debug, Clone)]
struct Placed {
    path: String,
    line: u32,
    value: String,
}

/// Sections in order of first appearance.
#[derive(Debug, Default)]
struct Merged {
    sections: Vec<(String, Section)>,
    variables: BTreeMap<String, String>,
    seen: Vec<String>,
    options: usize,
}

/// Every option that the active profile sets.
pub(super) fn options(root: &Root) -> Vec<TunedOption> {
    let active = root.read("/etc/tuned/active_profile");
    let mut merged = Merged::default();
    for profile in active.text().split_whitespace().take(PROFILES_MAX) {
        merged.add(root, profile);
    }
    merged.finish()
}

fn place(root: &Root, profile: &str) -> Option<String> {
    if profile.contains('/') || profile.starts_with('.') {
        return None;
    }
    DIRECTORIES
        .iter()
        .map(|directory| format!("{directory}/{profile}/tuned.conf"))
        .find(|path| root.exists(path))
}

impl Merged {
    fn add(&mut self, root: &Root, profile: &str) {
        if self.seen.len() >= PROFILES_MAX || self.seen.iter().any(|seen| seen == profile) {
            return;
        }
        self.seen.push(profile.to_owned());
        let Some(path) = place(root, profile) else { return };
        let Some(text) = text(root, &path) else { return };
        let own = sections(&text);
        let of_main = own.iter().filter(|(section, ..)| section == "main");
        for (_, _, key, value) in of_main {
            if key == "include" {
                let parents = self.expand(value);
                for parent in parents.split([',', ';', ' ']).map(|name| name.trim_start_matches('?')) {
                    self.add(root, parent);
                }
            }
        }
        for (section, line, key, value) in own {
            match section.as_str() {
                "main" => {}
                "variables" => self.variable(root, &key, &value),
                _ => self.option(section, key, Placed { path: path.clone(), line, value }),
            }
        }
    }

    fn variable(&mut self, root: &Root, key: &str, value: &str) {
        if key != "include" {
            self.variables.insert(key.to_owned(), value.to_owned());
            return;
        }
        let path = self.expand(value);
        if !path.starts_with("/etc/tuned/") || path.contains("..") {
            return;
        }
        for (_, line) in text(root, &path).iter().flat_map(|text| lines(text)) {
            if let Some((key, value)) = line.split_once('=').filter(|_| self.variables.len() < OPTIONS_MAX) {
                self.variables.insert(key.trim().to_owned(), value.trim().to_owned());
            }
        }
    }

    fn option(&mut self, section: String, key: String, option: Placed) {
        if self.options >= OPTIONS_MAX {
            return;
        }
        self.options += 1;
        let at = self.sections.iter().position(|(name, _)| *name == section);
        let at = at.unwrap_or_else(|| {
            self.sections.push((section, Section::default()));
            self.sections.len() - 1
        });
        let Some((_, merged)) = self.sections.get_mut(at) else { return };
        if key == "replace" && is_true(&option.value) {
            // The child's section replaces its parents': options from other files are removed.
            merged.options.retain(|(_, other)| other.path == option.path);
        }
        merged.options.retain(|(other, _)| *other != key);
        merged.options.push((key, option));
    }

    /// Expands variables; unknown ones and TuneD's functions stay as written.
    fn expand(&self, value: &str) -> String {
        let mut value = value.to_owned();
        for _ in 0..ROUNDS_MAX {
            let mut changed = false;
            for (name, with) in &self.variables {
                let mark = format!("${{{name}}}");
                if value.contains(&mark) && value.len() < VALUE_BYTES_MAX {
                    value = value.replace(&mark, with);
                    changed = true;
                }
            }
            if !changed {
                break;
            }
        }
        value
    }

    fn finish(&self) -> Vec<TunedOption> {
        let mut options = Vec::new();
        for (name, section) in &self.sections {
            let of = |key: &str| {
                section.options.iter().find(|(other, _)| other == key).map(|(_, option)| &option.value)
            };
            if of("enabled").is_some_and(|value| matches!(value.as_str(), "0" | "false" | "no" | "n")) {
                continue;
            }
            let plugin = of("type").map_or_else(|| name.clone(), Clone::clone);
            let devices = of("devices").map(|devices| self.expand(devices)).unwrap_or_default();
            let is_own = |key: &str| matches!(key, "type" | "devices" | "enabled" | "replace");
            options.extend(section.options.iter().filter(|(key, _)| !is_own(key)).map(|(key, option)| {
                TunedOption {
                    path: option.path.clone(),
                    line: option.line,
                    plugin: plugin.clone(),
                    devices: devices.clone(),
                    key: self.expand(key),
                    value: self.expand(&option.value),
                }
            }));
        }
        options
    }
}

fn is_true(value: &str) -> bool {
    matches!(value.trim(), "1" | "true" | "yes" | "y" | "on")
}

/// Section, line, key and value of every option of a file.
fn sections(text: &str) -> Vec<(String, u32, String, String)> {
    let mut section = String::new();
    let mut all = Vec::new();
    for (number, line) in lines(text) {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            name.trim().clone_into(&mut section);
        } else if let Some((key, value)) = line.split_once('=') {
            let value = value.trim().trim_matches('"');
            all.push((section.clone(), number, key.trim().to_owned(), value.to_owned()));
        }
    }
    all
}
