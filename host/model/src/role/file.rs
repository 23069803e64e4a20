//! Role files: TOML, checked against the host and the catalogue, with errors that point to the location.
//!
//! ```toml
//! profile = "trading"
//! housekeeping = "0,8"
//! isolated = "1-7,9-15"
//! nics = ["eth0"]
//! accept-risk = ["boot.selinux"]
//! leave-out = ["sysctl.vm.swappiness"]
//! busy-poll = true
//! onload = true
//! isolate-by = "cpuset"
//! ```

use super::{IsolateBy, Role, RoleSource};
use crate::spelling;
use crate::{CpuSet, HostSnapshot, Profile};
use serde::Deserialize;
use std::{fmt, ops::Range};
use toml::Spanned;

/// A well-formed role file that has not yet been checked against a host.
#[derive(Debug)]
pub struct RoleFile {
    path: String,
    text: String,
    fields: Fields,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Fields {
    profile: Option<Spanned<String>>,
    housekeeping: Option<Spanned<String>>,
    isolated: Option<Spanned<String>>,
    #[serde(default)]
    nics: Vec<Spanned<String>>,
    #[serde(default)]
    accept_risk: Vec<Spanned<String>>,
    #[serde(default)]
    leave_out: Vec<Spanned<String>>,
    #[serde(default)]
    busy_poll: bool,
    #[serde(default)]
    onload: bool,
    #[serde(default)]
    isolate_by: IsolateBy,
}

/// An error in a role file, with its location.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoleError {
    path: String,
    line: usize,
    column: usize,
    source_line: String,
    width: usize,
    message: String,
    help: String,
}

impl std::error::Error for RoleError {}

impl fmt::Display for RoleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.line.to_string();
        let gutter = " ".repeat(number.len());
        writeln!(f, "{}:{}:{}: {}", self.path, self.line, self.column, self.message)?;
        writeln!(f, "{gutter} |")?;
        writeln!(f, "{number} | {}", self.source_line)?;
        write!(f, "{gutter} | {}{}", " ".repeat(self.column - 1), "^".repeat(self.width))?;
        if self.help.is_empty() { Ok(()) } else { write!(f, "\n{gutter} = {}", self.help) }
    }
}

impl RoleFile {
    /// Parses a role file; `path` is for messages.
    ///
    /// # Errors
    /// [`RoleError`] if it is not TOML, or has an unknown key or a value of the wrong type.
    pub fn parse(path: &str, text: &str) -> Result<Self, RoleError> {
        match toml::from_str(text) {
            Ok(fields) => Ok(Self { path: path.into(), text: text.into(), fields }),
            Err(error) => {
                let span = error.span().unwrap_or(0..0);
                Err(RoleError::at(path, text, span, error.message().trim().to_owned(), String::new()))
            }
        }
    }

    /// Checks the file against a host and the IDs of all settings.
    ///
    /// # Errors
    /// [`RoleError`] for an invalid CPU list, CPUs that the host does not have, CPUs in both sets, an
    /// interface that does not exist, an unknown profile, or an unknown setting ID.
    pub fn resolve(&self, host: &HostSnapshot, setting_ids: &[&str]) -> Result<Role, RoleError> {
        let role = Role {
            profile: self.profile()?,
            housekeeping: self.cpus(self.fields.housekeeping.as_ref(), host)?,
            isolated: self.cpus(self.fields.isolated.as_ref(), host)?,
            nics: self.nics(host)?,
            accepted_risks: self.settings(&self.fields.accept_risk, setting_ids)?,
            left_out: self.settings(&self.fields.leave_out, setting_ids)?,
            is_busy_polling: self.fields.busy_poll,
            is_using_onload: self.fields.onload,
            is_partitioning_cache: false,
            isolate_by: self.fields.isolate_by,
            source: RoleSource::Named,
        };
        self.check_overlap(&role)?;
        Ok(role)
    }

    fn error(&self, spanned: &Spanned<String>, message: String, help: String) -> RoleError {
        RoleError::at(&self.path, &self.text, spanned.span(), message, help)
    }

    fn profile(&self) -> Result<Profile, RoleError> {
        let Some(name) = &self.fields.profile else { return Ok(Profile::default()) };
        name.get_ref().parse().map_err(|message| self.error(name, message, String::new()))
    }

    fn cpus(
        &self,
        field: Option<&Spanned<String>>,
        host: &HostSnapshot,
    ) -> Result<Option<CpuSet>, RoleError> {
        let Some(list) = field else { return Ok(None) };
        let topology = &host.topology;
        let set =
            CpuSet::parse_list(list.get_ref()).map_err(|e| self.error(list, e.to_string(), String::new()))?;
        let exists = topology.online.union(&topology.offline);
        let missing = set.difference(&exists);
        if !missing.is_empty() {
            return Err(self.error(
                list,
                format!("this host has no CPU {missing}"),
                format!("it has {exists:#}"),
            ));
        }
        if set.is_empty() {
            let help = "omit the key to let lowlat choose".into();
            return Err(self.error(list, "an empty CPU list".into(), help));
        }
        let offline = set.intersection(&topology.offline);
        if !offline.is_empty() {
            let help = "bring it online, or remove it from the role".into();
            return Err(self.error(list, format!("CPU {offline} is offline"), help));
        }
        Ok(Some(set))
    }

    fn check_overlap(&self, role: &Role) -> Result<(), RoleError> {
        let (Some(housekeeping), Some(isolated)) = (&role.housekeeping, &role.isolated) else {
            return Ok(());
        };
        let both = housekeeping.intersection(isolated);
        match &self.fields.isolated {
            Some(list) if !both.is_empty() => Err(self.error(
                list,
                format!("CPU {both} is in both housekeeping and isolated"),
                "a CPU belongs to one side only".into(),
            )),
            _ => Ok(()),
        }
    }

    fn nics(&self, host: &HostSnapshot) -> Result<Vec<String>, RoleError> {
        let known: Vec<&str> = host.nics.iter().map(|nic| nic.name.as_str()).collect();
        let check = |name: &Spanned<String>| {
            if known.contains(&name.get_ref().as_str()) {
                return Ok(name.get_ref().clone());
            }
            let help =
                if known.is_empty() { "it has none".into() } else { format!("it has {}", known.join(", ")) };
            Err(self.error(name, format!("this host has no interface \"{}\"", name.get_ref()), help))
        };
        self.fields.nics.iter().map(check).collect()
    }

    fn settings(&self, ids: &[Spanned<String>], setting_ids: &[&str]) -> Result<Vec<String>, RoleError> {
        let check = |id: &Spanned<String>| {
            if setting_ids.contains(&id.get_ref().as_str()) {
                return Ok(id.get_ref().clone());
            }
            let help = match spelling::nearest(id.get_ref(), setting_ids.iter().copied()) {
                Some(near) => format!("did you mean \"{near}\"? `lowlat audit --list` shows every id"),
                None => "`lowlat audit --list` shows every id".into(),
            };
            Err(self.error(id, format!("no setting has the id \"{}\"", id.get_ref()), help))
        };
        ids.iter().map(check).collect()
    }
}

impl RoleError {
    fn at(path: &str, text: &str, span: Range<usize>, message: String, help: String) -> Self {
        let start = floor_char(text, span.start);
        let end = floor_char(text, span.end).max(start);
        let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
        let source_line = text[line_start..].lines().next().unwrap_or_default().to_owned();
        let column = text[line_start..start].chars().count() + 1;
        let width_max = source_line.chars().count().saturating_sub(column - 1).max(1);
        Self {
            path: path.into(),
            line: text[..start].matches('\n').count() + 1,
            column,
            width: text[start..end].chars().count().clamp(1, width_max),
            source_line,
            message,
            help,
        }
    }
}

fn floor_char(text: &str, at: usize) -> usize {
    let at = at.min(text.len());
    (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{snapshot::Nic, topology::Topology};
    use proptest::prelude::*;

    fn host() -> HostSnapshot {
        HostSnapshot {
            topology: Topology { online: CpuSet::first(15), offline: CpuSet::of(15), ..Topology::default() },
            nics: vec![Nic { name: "eth0".into(), ..Nic::default() }],
            ..HostSnapshot::default()
        }
    }

    const IDS: &[&str] = &["boot.nohz_full", "sysctl.kernel.numa_balancing"];

    fn error(text: &str) -> String {
        RoleFile::parse("role.toml", text)
            .and_then(|file| file.resolve(&host(), IDS))
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn a_whole_role_resolves() {
        let text = "profile = \"guide-57037\"\nhousekeeping = \"0,8\"\nisolated = \"1-7\"\nnics = [\"eth0\"]\n\
                    accept-risk = [\"sysctl.kernel.numa_balancing\"]\nleave-out = [\"boot.nohz_full\"]\n";
        let role = RoleFile::parse("role.toml", text).unwrap().resolve(&host(), IDS).unwrap();
        assert_eq!(role.profile, Profile::Guide57037);
        assert_eq!(role.housekeeping.as_ref().map(CpuSet::to_list).as_deref(), Some("0,8"));
        assert!(role.accepts("sysctl.kernel.numa_balancing") && !role.accepts("boot.selinux"));
        assert!(role.leaves_out("boot.nohz_full") && !role.leaves_out("sysctl.kernel.numa_balancing"));
        let named = Role { source: RoleSource::Named, ..Role::default() };
        assert_eq!(RoleFile::parse("r", "").unwrap().resolve(&host(), IDS).unwrap(), named);
    }

    #[test]
    fn errors_point_at_the_place() {
        insta::assert_snapshot!(error("isolated = \"1-7,99\"\n"), @r#"
        role.toml:1:12: this host has no CPU 99
          |
        1 | isolated = "1-7,99"
          |            ^^^^^^^^
          = it has CPUs 0-15
        "#);
        insta::assert_snapshot!(error("# my desk\nhousekeeping = \"0-\"\n"), @r#"
        role.toml:2:16: "0-" in CPU list "0-" is not a CPU number, a range such as 0-3, or a strided range such as 0-15:2/4
          |
        2 | housekeeping = "0-"
          |                ^^^^
        "#);
        insta::assert_snapshot!(error("accept-risk = [\"sysctl.kernel.numa_balance\"]"), @r#"
        role.toml:1:16: no setting has the id "sysctl.kernel.numa_balance"
          |
        1 | accept-risk = ["sysctl.kernel.numa_balance"]
          |                ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
          = did you mean "sysctl.kernel.numa_balancing"? `lowlat audit --list` shows every id
        "#);
    }

    #[test]
    fn every_mistake_is_named() {
        for (text, part) in [
            ("housekeeping = \"0-3\"\nisolated = \"3-5\"", "CPU 3 is in both housekeeping and isolated"),
            ("isolated = \"15\"", "CPU 15 is offline"),
            ("isolated = \"\"", "an empty CPU list"),
            ("nics = [\"eth9\"]", "no interface \"eth9\""),
            ("profile = \"fast\"", "unknown profile \"fast\"; available: trading, guide-57037"),
            ("leave-out = [\"boot.nohz_ful\"]", "did you mean \"boot.nohz_full\"?"),
            ("housekeepings = \"0\"", "unknown field"),
            ("housekeeping = 0", "invalid type"),
            ("housekeeping = \"0", "role.toml:1:"),
        ] {
            assert!(error(text).contains(part), "{text}: {}", error(text));
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC{0,120}", list in "[0-9,\\-:é\"]{0,20}") {
            for text in [text, format!("isolated = \"{list}\"\né = 1")] {
                if let Err(error) = RoleFile::parse("r", &text).and_then(|file| file.resolve(&host(), IDS)) {
                    let _ = error.to_string();
                }
            }
        }
    }
}
