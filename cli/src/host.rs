//! Arguments that name a host and a role, and the host read from them.

use crate::role::{self, KeptRole};
use crate::{commands::completions, output};
use clap::Args;
use lowlat_catalogue::CATALOGUE;
use lowlat_host::{Allocation, CpuSet, HostSnapshot, Profile, Role};
use lowlat_host_run::{Root, snapshot};
use lowlat_tune_run::StateDir;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Host to read, and the role and profile to judge it by.
#[derive(Debug, Args)]
pub struct HostArgs {
    /// Read this host: a directory with proc/ and sys/, or a capture file
    #[arg(long, value_name = "DIR|FILE", default_value = "/")]
    pub root: PathBuf,
    #[command(flatten)]
    pub judge: RoleArgs,
}

/// Role and profile to judge a host by.
#[derive(Debug, Args)]
pub struct RoleArgs {
    /// Read this role file (TOML): housekeeping, isolated, nics, accept-risk, profile; or a built-in role: trading,
    /// guide-57037 [default: that of the plan in force, /etc/lowlat/role.toml, or the host's isolation]
    #[arg(long, value_name = "FILE|NAME", add = completions::roles())]
    pub role: Option<PathBuf>,
    /// Judge by this profile: trading or guide-57037 [default: the role's, else trading]
    #[arg(long, value_name = "NAME", add = completions::profiles())]
    pub profile: Option<Profile>,
}

/// Host as read, with its resolved role and chosen CPUs.
#[derive(Debug)]
pub struct Host {
    pub root: Root,
    pub snapshot: HostSnapshot,
    pub role: Role,
    pub allocation: Allocation,
    /// Warnings about the role, one sentence each.
    pub role_warnings: Vec<String>,
}

impl HostArgs {
    /// Reads the host and the role, and prints on stderr which role it is, unless the user named it.
    pub fn read(&self) -> anyhow::Result<Host> {
        let host = self.read_silently()?;
        host.print_role_notes();
        Ok(host)
    }

    /// The same for a command that shows the role itself.
    pub fn read_silently(&self) -> anyhow::Result<Host> {
        let root = Root::open(&self.root)?;
        let state = (!root.is_capture()).then(|| StateDir::below(&self.root));
        self.judge.read_with(root, state.as_ref())
    }
}

impl RoleArgs {
    /// Reads the running host and the role, and prints on stderr which role it is, unless the user named it.
    pub fn read(&self) -> anyhow::Result<Host> {
        let host = self.read_with(Root::open(Path::new("/"))?, Some(&StateDir::below(Path::new("/"))))?;
        host.print_role_notes();
        Ok(host)
    }

    /// Reads a host whose state is kept in a place of its own.
    pub fn read_with(&self, root: Root, state: Option<&StateDir>) -> anyhow::Result<Host> {
        let named = self.role.as_deref().map(|path| anyhow::Ok((path, role::read(path)?))).transpose()?;
        let snapshot = snapshot::read(&root, CATALOGUE);
        let (mut role, role_warnings) = if let Some((path, file)) = named {
            (role::resolve(&file, &path.display().to_string(), &snapshot)?, Vec::new())
        } else {
            let kept = KeptRole::read(&root, state, &snapshot)?;
            (kept.or_isolation(&snapshot), kept.warnings)
        };
        role.profile = self.profile.unwrap_or(role.profile);
        let mut allocation = Allocation::choose(&snapshot, &role);
        allocation.warnings.extend(role_warnings.iter().cloned());
        Ok(Host { root, snapshot, role, allocation, role_warnings })
    }
}

/// A result with the role that it was judged by.
#[derive(Serialize)]
struct Judged<'a, T> {
    #[serde(flatten)]
    result: &'a T,
    role: JudgedBy,
}

#[derive(Serialize)]
struct JudgedBy {
    #[serde(flatten)]
    role: Role,
    warnings: Vec<String>,
}

impl Host {
    /// Adds the default boot entry to the snapshot. Only the inventory shows it, so that other commands do not read the
    /// boot loader's files.
    pub fn with_boot_entry(mut self) -> Self {
        self.snapshot.kernel.default_boot_line = lowlat_tune_run::boot_loader::default_line(&self.root);
        self
    }

    /// Returns the isolated CPUs of a role that names its CPUs.
    pub fn cpus_of_role(&self) -> Option<&CpuSet> {
        role::named_cpus(&self.role, &self.allocation.isolated)
    }

    /// Prints on stderr which role the host is judged by, unless the user named it, and the warnings about it.
    pub fn print_role_notes(&self) {
        for note in lowlat_host_report::role_notes(&self.role, &self.allocation, &self.role_warnings) {
            output::talk(&note);
        }
    }

    /// Returns which role the host is judged by, unless the user named it.
    pub fn role_line(&self) -> Option<String> {
        lowlat_host_report::role_notes(&self.role, &self.allocation, &[]).pop()
    }

    /// Prints judgements as JSON, or as the text that lowlat-report makes of them for the terminal's width.
    pub fn print_as(
        &self,
        is_json: bool,
        result: &impl Serialize,
        text: impl FnOnce(usize) -> String,
    ) -> anyhow::Result<()> {
        if is_json { self.print_json(result) } else { self.print(&text(output::width())) }
    }

    /// Prints a text of judgements, and the role that they are made by.
    pub fn print(&self, text: &str) -> anyhow::Result<()> {
        let of =
            lowlat_host_report::role_text(&self.role, &self.allocation, &self.role_warnings, output::width());
        let gap = if text.ends_with('\n') { "" } else { "\n" };
        output::print_paged(&format!("{text}{gap}{of}"))
    }

    /// Prints judgements as JSON, with the role that they are made by in the field `role`.
    pub fn print_json(&self, result: &impl Serialize) -> anyhow::Result<()> {
        let Allocation { housekeeping, isolated, .. } = self.allocation.clone();
        let role = Role { housekeeping: Some(housekeeping), isolated: Some(isolated), ..self.role.clone() };
        output::print_json(&Judged { result, role: JudgedBy { role, warnings: self.role_warnings.clone() } })
    }

    /// Returns the context that judges read.
    pub fn context(&self) -> lowlat_settings::Context<'_> {
        lowlat_settings::Context {
            host: &self.snapshot,
            role: &self.role,
            allocation: &self.allocation,
            profile: self.role.profile,
            catalogue: CATALOGUE,
        }
    }
}
