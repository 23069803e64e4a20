//! Arguments that name a host and a role, and the host read from them.

use anyhow::Context as _;
use clap::Args;
use lowlat_catalogue::CATALOGUE;
use lowlat_host::{Allocation, HostSnapshot, Profile, Role, RoleError, RoleFile};
use lowlat_sys::{Root, snapshot};
use std::path::{Path, PathBuf};

/// Host to read, and the role and profile to judge it by.
#[derive(Debug, Args)]
pub struct HostArgs {
    /// Read this host: a directory with proc/ and sys/, or a capture file
    #[arg(long, value_name = "DIR|FILE", default_value = "/")]
    pub root: PathBuf,
    /// Read this role file (TOML): housekeeping, isolated, nics, accept-risk, profile; or the built-in role
    /// guide-57037
    #[arg(long, value_name = "FILE|NAME")]
    pub role: Option<PathBuf>,
    /// Judge by this profile: trading or guide-57037 [default: the role's, else trading]
    #[arg(long, value_name = "NAME")]
    pub profile: Option<Profile>,
}

/// Host as read, with its resolved role and chosen CPUs.
#[derive(Debug)]
pub struct Host {
    pub root: Root,
    pub snapshot: HostSnapshot,
    pub role: Role,
    pub allocation: Allocation,
}

impl HostArgs {
    /// Reads the host and the role.
    pub fn read(&self) -> anyhow::Result<Host> {
        let root = Root::open(&self.root)?;
        let role_file = self.role.as_deref().map(|path| anyhow::Ok((path, read_role(path)?))).transpose()?;
        let snapshot = snapshot::read(&root, CATALOGUE);
        let mut role = match role_file {
            Some((path, file)) => file
                .resolve(&snapshot, &CATALOGUE.ids().collect::<Vec<_>>())
                .map_err(|error| refused(path, "it does not fit this host", &error))?,
            None => Role::default(),
        };
        role.profile = self.profile.unwrap_or(role.profile);
        let allocation = Allocation::choose(&snapshot, &role);
        Ok(Host { root, snapshot, role, allocation })
    }
}

impl HostArgs {
    /// Reads the running host; `what` is what can only be measured there: "round trips".
    pub fn read_live(&self, what: &str) -> anyhow::Result<Host> {
        let host = self.read()?;
        anyhow::ensure!(
            host.root.is_live(),
            "cannot measure {}: {what} can only be measured on the running host\nhint: leave out --root",
            host.root.label()
        );
        Ok(host)
    }
}

impl Host {
    /// Adds the default boot entry to the snapshot. Only the inventory shows it, so that other commands do not read the
    /// boot loader's files.
    pub fn with_boot_entry(mut self) -> Self {
        self.snapshot.kernel.default_boot_line = lowlat_tune::boot_loader::default_line(&self.root);
        self
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

/// Roles that are part of the binary, by name.
const ROLES: [(&str, &str); 1] = [("guide-57037", include_str!("../../../roles/guide-57037.toml"))];

/// Reads a role file. A file of the name of a built-in role has precedence.
fn read_role(path: &Path) -> anyhow::Result<RoleFile> {
    let built_in = ROLES.iter().find(|(name, _)| path.as_os_str() == *name && !path.exists());
    let text = match built_in {
        Some((_, text)) => (*text).to_owned(),
        None => std::fs::read_to_string(path).with_context(|| {
            format!(
                "cannot read role file {}\nhint: name a TOML file, or the built-in role guide-57037",
                path.display()
            )
        })?,
    };
    RoleFile::parse(&path.display().to_string(), &text)
        .map_err(|error| refused(path, "it is invalid", &error))
}

/// Longest line of a role file in an error, in characters.
const QUOTE_CHARS_MAX: usize = 76;

/// Returns the error of a role file, without the end of a long line that it quotes.
fn refused(path: &Path, why: &str, error: &RoleError) -> anyhow::Error {
    let is_gutter = |c: char| c == ' ' || c.is_ascii_digit();
    let quoted = |line: &str| match line.char_indices().nth(QUOTE_CHARS_MAX) {
        Some((end, _)) if line.trim_start_matches(is_gutter).starts_with('|') => {
            format!("{}...", &line[..end])
        }
        _ => line.to_owned(),
    };
    let lines: Vec<String> = error.to_string().lines().map(quoted).collect();
    anyhow::anyhow!(
        "cannot use role file {}: {why}\n{}\nhint: correct this line; `lowlat audit --help` lists the keys at --role",
        path.display(),
        lines.join("\n")
    )
}
