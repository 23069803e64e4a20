//! Role that a host is judged by: the one that the user names, else that of the plan in force, else
//! /etc/lowlat/role.toml, else the isolation that the host already has, else lowlat's own choice.

use crate::{documents, output};
use anyhow::{Context as _, bail};
use lowlat_catalogue::CATALOGUE;
use lowlat_host::{Allocation, CpuSet, HostSnapshot, Reading, Role, RoleError, RoleFile, RoleSource};
use lowlat_host_run::{Root, capture::ROLE};
use lowlat_plan::{HostMark, Plan};
use lowlat_tune_run::{ROLE_FILE, StateDir, StateError};
use serde::{Deserialize, Serialize};
use std::{io::ErrorKind, path::Path};

/// Roles that are part of the binary, by name.
pub const ROLES: [(&str, &str); 2] = [
    ("guide-57037", include_str!("../../roles/guide-57037.toml")),
    ("trading", include_str!("../../roles/trading.toml")),
];

/// The role that a host itself names; a capture contains it as [`ROLE`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct KeptRole {
    /// The role; none if nothing names one.
    pub role: Option<Role>,
    /// Warnings about it, one sentence each.
    pub warnings: Vec<String>,
}

impl KeptRole {
    /// Reads the role of the plan in force, else the installed one.
    ///
    /// # Errors
    /// Fails if the installed file is invalid or does not fit the host. A plan that does not fit is a warning.
    pub fn read(root: &Root, state: Option<&StateDir>, host: &HostSnapshot) -> anyhow::Result<Self> {
        let mut kept = Self::default();
        match state.map(StateDir::in_force) {
            Some(Ok(Some((_, plan)))) => kept.take(&plan, host),
            Some(Err(error)) => {
                let why = match &error {
                    StateError::Io { source, .. } if source.kind() == ErrorKind::PermissionDenied => {
                        "permission denied".to_owned()
                    }
                    other => other.to_string().lines().next().unwrap_or_default().to_owned(),
                };
                kept.warnings.push(format!("The role in force is not known ({why})."));
            }
            Some(Ok(None)) | None => {}
        }
        if kept.role.is_some() {
            return Ok(kept);
        }
        if let Reading::Known(text) = root.interface(ROLE, || Reading::Absent) {
            // A capture has no state and no role file that can be read.
            return serde_json::from_slice(&text).with_context(|| {
                format!("cannot read the role in {}\nhint: name one with --role", root.label())
            });
        }
        match root.read(ROLE_FILE) {
            Reading::Known(text) if !root.is_capture() => {
                let role = resolve(&parse(ROLE_FILE, &text)?, ROLE_FILE, host)?;
                kept.role = Some(Role { source: RoleSource::Installed, ..role });
            }
            Reading::Known(_) | Reading::Absent => {}
            unread @ Reading::Unparsable(_) => {
                bail!("cannot use role file {ROLE_FILE}: {unread}\nhint: correct or remove it")
            }
            unread @ Reading::Denied => kept.warnings.push(format!("{ROLE_FILE} is not known ({unread}).")),
        }
        Ok(kept)
    }

    /// Takes the role of the plan in force, as far as it fits the host.
    fn take(&mut self, plan: &Plan, host: &HostSnapshot) {
        let now = HostMark::of(host);
        if plan.host.is_other_machine(&now) {
            self.warnings.push("The plan in force was made on another host, so its role is not used.".into());
            return;
        }
        let role = plan.role_in_force();
        let topology = &host.topology;
        if !plan.isolated.is_empty() && plan.isolated.is_disjoint(&topology.online) {
            self.warnings.push(format!(
                "The role in force isolates {:#}, none of which is online, so it is not used.",
                plan.isolated
            ));
            return;
        }
        let missing = plan.housekeeping.union(&plan.isolated).difference(&topology.online);
        let offline = missing.intersection(&topology.offline);
        let gone = missing.difference(&offline);
        for (cpus, what) in [(offline, "offline"), (gone, "missing on this host")] {
            if !cpus.is_empty() {
                self.warnings.push(format!("Named by the role in force, but {what}: {cpus:#}."));
            }
        }
        let is_missing = |name: &&String| !host.nics.iter().any(|nic| nic.name == **name);
        for name in role.nics.iter().filter(is_missing) {
            self.warnings
                .push(format!("Named by the role in force, but missing on this host: interface {name}."));
        }
        self.role = Some(role);
    }

    /// Returns the role to judge by.
    pub fn or_isolation(&self, host: &HostSnapshot) -> Role {
        let owner = || {
            Some(Role {
                isolated: Some(host.cpus_isolated_by_owner()?),
                source: RoleSource::Isolation,
                ..Role::default()
            })
        };
        self.role.clone().or_else(owner).unwrap_or_default()
    }
}

/// Returns the CPUs that a role isolates which the user or a plan named; `None` if lowlat or the kernel's own
/// isolation chose them.
pub fn named_cpus<'a>(role: &Role, isolated: &'a CpuSet) -> Option<&'a CpuSet> {
    let is_named = role.housekeeping.is_some() || role.isolated.is_some();
    Some(isolated).filter(|_| is_named && role.source != RoleSource::Isolation)
}

/// Returns the isolated CPUs of the running host's role, and prints which role it is; `None` if none names CPUs.
pub fn cpus_of_host(root: &Root, host: &HostSnapshot, is_quiet: bool) -> anyhow::Result<Option<CpuSet>> {
    let kept = KeptRole::read(root, Some(&StateDir::below(Path::new("/"))), host)?;
    let role = kept.or_isolation(host);
    let allocation = Allocation::choose(host, &role);
    let cpus = named_cpus(&role, &allocation.isolated).cloned();
    if !is_quiet {
        let notes = lowlat_host_report::role_notes(&role, &allocation, &kept.warnings);
        for note in &notes {
            output::talk(note);
        }
    }
    Ok(cpus)
}

/// Reads a role file. A file of the name of a built-in role has precedence.
pub fn read(path: &Path) -> anyhow::Result<RoleFile> {
    parse(&path.display().to_string(), &text(path)?)
}

/// Returns the text of a role file.
pub fn text(path: &Path) -> anyhow::Result<String> {
    let built_in = ROLES.iter().find(|(name, _)| path.as_os_str() == *name && !path.exists());
    match built_in {
        Some((_, text)) => Ok((*text).to_owned()),
        None => documents::text_of(path).with_context(|| {
            format!(
                "cannot read role file {}\nhint: name a TOML file, or a built-in role: guide-57037, trading",
                path.display()
            )
        }),
    }
}

/// Checks a role against a host.
pub fn resolve(file: &RoleFile, path: &str, host: &HostSnapshot) -> anyhow::Result<Role> {
    file.resolve(host, &CATALOGUE.ids().collect::<Vec<_>>())
        .map_err(|error| refused(path, "it does not fit this host", &error))
}

fn parse(path: &str, text: &str) -> anyhow::Result<RoleFile> {
    RoleFile::parse(path, text).map_err(|error| refused(path, "it is invalid", &error))
}

/// Longest line of a role file in an error, in characters.
const QUOTE_CHARS_MAX: usize = 76;

/// Returns the error of a role file, without the end of a long line that it quotes.
fn refused(path: &str, why: &str, error: &RoleError) -> anyhow::Error {
    let is_gutter = |c: char| c == ' ' || c.is_ascii_digit();
    let quoted = |line: &str| match line.char_indices().nth(QUOTE_CHARS_MAX) {
        Some((end, _)) if line.trim_start_matches(is_gutter).starts_with('|') => {
            format!("{}...", &line[..end])
        }
        _ => line.to_owned(),
    };
    let lines: Vec<String> = error.to_string().lines().map(quoted).collect();
    anyhow::anyhow!(
        "cannot use role file {path}: {why}\n{}\nhint: correct this line; `lowlat audit --help` lists the keys at --role",
        lines.join("\n")
    )
}
