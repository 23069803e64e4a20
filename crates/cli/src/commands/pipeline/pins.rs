//! Which CPUs roles get: from the command line, or from a file; and whether those roles run at all.

use anyhow::{Context, anyhow, ensure};
use lowlat_model::{
    CpuSet,
    pipeline::{PipelineParameters, size::Placement},
};
use lowlat_trade::run::plan::RECORDER;
use std::{collections::BTreeMap, path::Path};

/// Roles that can be pinned.
const ROLES: [&str; 7] = ["master", "cached", RECORDER, "md", "td", PLATFORM, "strategies"];
const PLATFORM: &str = PipelineParameters::PLATFORM;

/// CPUs by role.
pub type Pins = BTreeMap<String, Vec<u32>>;

/// Parses "md=0,td=1,strategies=2-5,7".
pub fn parse(text: &str) -> Result<Pins, String> {
    let mut lists: Vec<(&str, String)> = Vec::new();
    for part in text.split(',') {
        match (part.split_once('='), lists.last_mut()) {
            (Some((role, list)), _) => lists.push((role.trim(), list.to_owned())),
            (None, Some((_, list))) => *list = format!("{list},{part}"),
            (None, None) => {
                return Err(format!("\"{part}\" names no role; write one with its CPUs, such as md=0,td=1"));
            }
        }
    }
    let mut pins = Pins::new();
    for (role, list) in lists {
        if !ROLES.contains(&role) {
            return Err(format!("\"{role}\" is no role; those that can be pinned are {}", ROLES.join(", ")));
        }
        let cpus = CpuSet::parse_list(&list).map_err(|error| format!("{role}: {error}"))?;
        if pins.insert(role.to_owned(), cpus.iter().collect()).is_some() {
            return Err(format!("{role} is pinned twice"));
        }
    }
    possible(&pins)?;
    Ok(pins)
}

/// Whether these pins can be, wherever they are from.
fn possible(pins: &Pins) -> Result<(), String> {
    for (role, cpus) in pins {
        if !ROLES.contains(&role.as_str()) {
            return Err(format!("\"{role}\" is no role; those that can be pinned are {}", ROLES.join(", ")));
        }
        if cpus.is_empty() {
            return Err(format!("{role}: no CPU is named; write one, such as {role}=0"));
        }
        if role != "strategies" && cpus.len() > 1 {
            let list: CpuSet = cpus.iter().copied().collect();
            return Err(format!("{role}: one process takes one CPU, and {list} are {}", cpus.len()));
        }
    }
    if let Some(role) = ["md", "td"].into_iter().find(|role| pins.contains_key(*role))
        && pins.contains_key(PLATFORM)
    {
        return Err(format!(
            "{PLATFORM} is md and td in one process, so {role} has no CPU of its own; leave one out"
        ));
    }
    Ok(())
}

/// Reads the pins of a placement: what `lowlat pipeline size --placement` wrote, or the whole document of it.
pub fn read(path: &Path) -> anyhow::Result<Pins> {
    #[derive(serde::Deserialize)]
    struct Sized {
        placement: Placement,
    }
    let shown = path.display();
    let bytes = std::fs::read(path).with_context(|| {
        format!("cannot read {shown}; name a file that lowlat pipeline size --placement wrote")
    })?;
    let placement = serde_json::from_slice::<Sized>(&bytes)
        .map(|sized| sized.placement)
        .or_else(|_| serde_json::from_slice::<Placement>(&bytes))
        .with_context(|| {
            format!("{shown} is no placement: expected JSON with \"pins\", a list of CPUs by role")
        })?;
    possible(&placement.pins).map_err(|why| anyhow!("{shown}: {why}"))?;
    Ok(placement.pins)
}

/// Which of the roles that run only when they are asked for do.
#[derive(Debug, Clone, Copy)]
pub struct Asked {
    /// `--cached`.
    pub cached: bool,
    /// `--record`.
    pub recorder: bool,
    /// `--host-core`: strategies have no processes of their own.
    pub host: bool,
}

impl Asked {
    /// The role without a process, and what to do about a pin of it.
    fn idle(self) -> impl Iterator<Item = (&'static str, &'static str)> {
        [
            (!self.cached, "cached", "cached does not run; add --cached FILE, or leave its pin out"),
            (!self.recorder, RECORDER, "nothing is recorded; add --record DIR, or leave the recorder's pin out"),
            (
                self.host,
                "strategies",
                "--host-core has all strategies in one process on its CPU; leave their pin or --host-core out",
            ),
        ]
        .into_iter()
        .filter_map(|(is_idle, role, words)| is_idle.then_some((role, words)))
    }

    /// Pins that were typed: one for a role that does not run is a mistake.
    pub fn check(self, pins: &Pins) -> anyhow::Result<()> {
        for (role, words) in self.idle() {
            ensure!(!pins.contains_key(role), "--pin {role}=CPU: {words}");
        }
        Ok(())
    }

    /// Pins of a file, which names every role: only those that run.
    pub fn keep(self, mut pins: Pins) -> Pins {
        for (role, _) in self.idle() {
            pins.remove(role);
        }
        pins
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_and_lists_are_told_apart() {
        let pins = parse("md=0,strategies=2-4,7,td=1").unwrap();
        assert_eq!((pins["md"].as_slice(), pins["td"].as_slice()), ([0].as_slice(), [1].as_slice()));
        assert_eq!(pins["strategies"], [2, 3, 4, 7]);
        assert_eq!(parse("platform=1").unwrap()["platform"], [1]);
        for (text, said) in [
            ("0", "names no role"),
            ("mdx=0", "is no role"),
            ("md=", "no CPU"),
            ("md=0-1", "takes one CPU"),
            ("md=0,md=1", "pinned twice"),
            ("md=a", "md: "),
            ("platform=0,td=1", "td has no CPU of its own"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }

    #[test]
    fn a_pin_of_a_role_that_does_not_run_is_told() {
        let none = Asked { cached: false, recorder: false, host: false };
        let all = Asked { cached: true, recorder: true, host: false };
        let pins = parse("md=0,cached=1,recorder=2,strategies=3").unwrap();
        assert!(none.check(&pins).unwrap_err().to_string().contains("--cached FILE"));
        let pins_of = |text| parse(text).unwrap();
        assert!(none.check(&pins_of("recorder=1")).unwrap_err().to_string().contains("--record DIR"));
        let host = Asked { host: true, ..all };
        assert!(host.check(&pins_of("strategies=1")).unwrap_err().to_string().contains("--host-core"));
        assert!(all.check(&pins).is_ok() && none.check(&pins_of("md=0")).is_ok());
        let kept: Vec<String> = host.keep(pins.clone()).into_keys().collect();
        assert_eq!(kept, ["cached", "md", "recorder"], "a file's other pins are of no matter");
        assert_eq!(all.keep(pins.clone()), pins);
    }

    #[test]
    fn a_placement_and_the_document_around_it_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            read(&path)
        };
        assert_eq!(file("a", r#"{"pins": {"md": [1]}}"#).unwrap()["md"], [1]);
        assert_eq!(file("b", r#"{"placement": {"pins": {"td": [2]}}, "goal": 1}"#).unwrap()["td"], [2]);
        assert!(file("c", r#"{"pins": {"mdx": [1]}}"#).unwrap_err().to_string().contains("is no role"));
        for (text, said) in [
            (r#"{"pins": {"md": []}}"#, "md: no CPU is named"),
            (r#"{"pins": {"td": [0, 1]}}"#, "td: one process takes one CPU, and 0-1 are 2"),
            (r#"{"pins": {"td": [0], "platform": [1]}}"#, "td has no CPU of its own"),
        ] {
            let error = file("e", text).unwrap_err().to_string();
            assert!(error.contains(said) && error.contains("/e: "), "{error}");
        }
        assert!(format!("{:#}", file("d", "[]").unwrap_err()).contains("no placement"));
        assert!(read(&folder.path().join("none")).unwrap_err().to_string().contains("cannot read"));
    }
}
