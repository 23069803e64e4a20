//! CPUs of roles, from the command line or a file, and a check that those roles run.

use anyhow::{Context, anyhow, ensure};
use lowlat_host::CpuSet;
use lowlat_pipeline::{Pins, ProcessRole, size::Placement};
use std::path::{Path, PathBuf};

/// Parses pins such as "md=0,td=1,strategies=2-5,7".
pub fn parse(text: &str) -> Result<Pins, String> {
    let mut lists: Vec<(&str, String)> = Vec::new();
    for part in text.split(',') {
        match (part.split_once('='), lists.last_mut()) {
            (Some((role, list)), _) => lists.push((role.trim(), list.to_owned())),
            (None, Some((_, list))) => *list = format!("{list},{part}"),
            (None, None) => {
                return Err(format!("expected ROLE=CPU, such as md=0,td=1; found \"{part}\""));
            }
        }
    }
    let mut pins = Pins::new();
    for (role, list) in lists {
        let role = ProcessRole::PINNED
            .into_iter()
            .find(|known| known.name() == role)
            .ok_or_else(|| unknown(role))?;
        let cpus = CpuSet::parse_list(&list).map_err(|error| format!("{role}: {error}"))?;
        if pins.insert(role, cpus.iter().collect()).is_some() {
            return Err(format!("{role} is pinned twice"));
        }
    }
    possible(&pins)?;
    Ok(pins)
}

/// Pins as users give them.
#[derive(Debug, Clone)]
pub enum PinSource {
    Typed(Pins),
    File(PathBuf),
}

impl PinSource {
    /// Pins with `=`, or the name of a file.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.contains('=') || CpuSet::parse_list(text).is_ok() {
            return parse(text).map(Self::Typed);
        }
        Ok(Self::File(text.into()))
    }

    /// The file to read, if it is one.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Typed(_) => None,
            Self::File(path) => Some(path),
        }
    }

    /// Returns the pins of the roles that run. Rejects a typed pin of another role.
    pub fn pins(&self, asked: RequestedRoles) -> anyhow::Result<Pins> {
        match self {
            Self::Typed(pins) => asked.check(pins).map(|()| pins.clone()),
            Self::File(path) => Ok(asked.keep(read(path)?)),
        }
    }
}

fn unknown(role: &str) -> String {
    let known = ProcessRole::PINNED.map(ProcessRole::name).join(", ");
    format!("unknown role \"{role}\"; roles that can be pinned: {known}")
}

/// Checks pins from any source: roles that can be pinned, CPUs for each, and no pin that conflicts with
/// `platform`.
fn possible(pins: &Pins) -> Result<(), String> {
    for (role, cpus) in pins {
        if !ProcessRole::PINNED.contains(role) {
            return Err(unknown(role.name()));
        }
        if cpus.is_empty() {
            return Err(format!("{role}: missing CPU; expected one, such as {role}=0"));
        }
        if *role != ProcessRole::Strategies && cpus.len() > 1 {
            let list: CpuSet = cpus.iter().copied().collect();
            return Err(format!("{role}: a single process takes one CPU, but {list} is {} CPUs", cpus.len()));
        }
    }
    if let Some(role) = [ProcessRole::Md, ProcessRole::Td].into_iter().find(|role| pins.contains_key(role))
        && pins.contains_key(&ProcessRole::Platform)
    {
        return Err(format!(
            "platform runs md and td in one process, so {role} cannot be pinned as well; remove one of the pins"
        ));
    }
    Ok(())
}

/// Reads the pins of a placement file, as written by `lowlat pipeline size --write-pins`, or of a
/// sizing document.
pub fn read(path: &Path) -> anyhow::Result<Pins> {
    #[derive(serde::Deserialize)]
    struct SizedPlacement {
        placement: Placement,
    }
    let shown = path.display();
    let bytes = crate::documents::named(path, "name a file written by lowlat pipeline size --write-pins")?;
    let placement = serde_json::from_slice::<SizedPlacement>(&bytes)
        .map(|sized| sized.placement)
        .or_else(|_| serde_json::from_slice::<Placement>(&bytes))
        .with_context(|| {
            format!(
                "cannot parse {shown} as a placement: expected JSON with \"pins\", a list of CPUs by role"
            )
        })?;
    possible(&placement.pins).map_err(|why| anyhow!("{shown}: {why}"))?;
    Ok(placement.pins)
}

/// The roles that run only on request.
#[derive(Debug, Clone, Copy)]
pub struct RequestedRoles {
    pub cached: bool,
    /// `--record`.
    pub recorder: bool,
    /// `--host-core`, without strategies of the user: all strategies run in one process.
    pub host: bool,
}

impl RequestedRoles {
    /// The first pinned role that does not run as a process, and what to do about its pin.
    fn idle(self) -> impl Iterator<Item = (ProcessRole, &'static str)> {
        [
            (!self.cached, ProcessRole::Cached, "cached does not run; add --cached FILE, or remove its pin"),
            (
                !self.recorder,
                ProcessRole::Recorder,
                "nothing is recorded; add --record DIR, or remove the recorder's pin",
            ),
            (
                self.host,
                ProcessRole::Strategies,
                "--host-core runs all strategies in one process on its CPU; remove their pin or --host-core",
            ),
        ]
        .into_iter()
        .filter_map(|(is_idle, role, words)| is_idle.then_some((role, words)))
    }

    /// Rejects a typed pin of a role that does not run.
    pub fn check(self, pins: &Pins) -> anyhow::Result<()> {
        for (role, words) in self.idle() {
            ensure!(!pins.contains_key(&role), "--pins {role}=CPU: {words}");
        }
        Ok(())
    }

    /// Drops pins of roles that do not run: a placement file names every role.
    pub fn keep(self, mut pins: Pins) -> Pins {
        for (role, _) in self.idle() {
            pins.remove(&role);
        }
        pins
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pins_are_parsed_by_role() {
        let pins = parse("md=0,strategies=2-4,7,td=1").unwrap();
        assert_eq!(
            (pins[&ProcessRole::Md].as_slice(), pins[&ProcessRole::Td].as_slice()),
            ([0].as_slice(), [1].as_slice())
        );
        assert_eq!(pins[&ProcessRole::Strategies], [2, 3, 4, 7]);
        assert_eq!(parse("platform=1").unwrap()[&ProcessRole::Platform], [1]);
        for (text, said) in [
            ("0", "expected ROLE=CPU"),
            ("mdx=0", "unknown role"),
            ("md=", "missing CPU"),
            ("md=0-1", "takes one CPU"),
            ("md=0,md=1", "pinned twice"),
            ("md=a", "md: "),
            ("platform=0,td=1", "td cannot be pinned as well"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }

    #[test]
    fn a_typed_pin_of_a_role_that_does_not_run_is_an_error() {
        let none = RequestedRoles { cached: false, recorder: false, host: false };
        let all = RequestedRoles { cached: true, recorder: true, host: false };
        let pins = parse("md=0,cached=1,recorder=2,strategies=3").unwrap();
        assert!(none.check(&pins).unwrap_err().to_string().contains("--cached FILE"));
        let pins_of = |text| parse(text).unwrap();
        assert!(none.check(&pins_of("recorder=1")).unwrap_err().to_string().contains("--record DIR"));
        let host = RequestedRoles { host: true, ..all };
        assert!(host.check(&pins_of("strategies=1")).unwrap_err().to_string().contains("--host-core"));
        assert!(all.check(&pins).is_ok() && none.check(&pins_of("md=0")).is_ok());
        let kept: Vec<ProcessRole> = host.keep(pins.clone()).into_keys().collect();
        assert_eq!(
            kept,
            [ProcessRole::Cached, ProcessRole::Md, ProcessRole::Recorder],
            "a file's other pins are ignored"
        );
        assert_eq!(all.keep(pins.clone()), pins);
    }

    #[test]
    fn reads_a_placement_and_a_sizing_document() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            read(&path)
        };
        assert_eq!(file("a", r#"{"pins": {"md": [1]}}"#).unwrap()[&ProcessRole::Md], [1]);
        assert_eq!(
            file("b", r#"{"placement": {"pins": {"td": [2]}}, "goal": 1}"#).unwrap()[&ProcessRole::Td],
            [2]
        );
        assert!(
            format!("{:#}", file("c", r#"{"pins": {"mdx": [1]}}"#).unwrap_err()).contains("variant `mdx`")
        );
        for (text, said) in [
            (r#"{"pins": {"host": [0]}}"#, "unknown role \"host\""),
            (r#"{"pins": {"md": []}}"#, "md: missing CPU"),
            (r#"{"pins": {"td": [0, 1]}}"#, "td: a single process takes one CPU, but 0-1 is 2 CPUs"),
            (r#"{"pins": {"td": [0], "platform": [1]}}"#, "td cannot be pinned as well"),
        ] {
            let error = file("e", text).unwrap_err().to_string();
            assert!(error.contains(said) && error.contains("/e: "), "{error}");
        }
        assert!(format!("{:#}", file("d", "[]").unwrap_err()).contains("as a placement"));
        assert!(read(&folder.path().join("none")).unwrap_err().to_string().contains("cannot read"));
    }
}
