//! Arguments that name a host and a role, and the host read from them.

use anyhow::Context as _;
use clap::Args;
use lowlat_catalogue::CATALOGUE;
use lowlat_host::{Allocation, HostSnapshot, Profile, Role, RoleFile};
use lowlat_sys::{Root, snapshot};
use std::path::{Path, PathBuf};

/// Host to read, and the role and profile to judge it by.
#[derive(Debug, Args)]
pub struct HostArgs {
    /// Read this host: a directory with proc/ and sys/, or a capture file
    #[arg(long, value_name = "DIR|FILE", default_value = "/")]
    pub root: PathBuf,
    /// Read this role file (TOML): housekeeping, isolated, nics, accept-risk, profile
    #[arg(long, value_name = "FILE")]
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
        let role_file = self.role.as_deref().map(read_role).transpose()?;
        let snapshot = snapshot::read(&root, CATALOGUE);
        let mut role = match role_file {
            Some(file) => file
                .resolve(&snapshot, &CATALOGUE.ids().collect::<Vec<_>>())
                .map_err(|error| anyhow::anyhow!("the role does not fit this host\n{error}"))?,
            None => Role::default(),
        };
        role.profile = self.profile.unwrap_or(role.profile);
        let allocation = Allocation::choose(&snapshot, &role);
        Ok(Host { root, snapshot, role, allocation })
    }
}

impl Host {
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

fn read_role(path: &Path) -> anyhow::Result<RoleFile> {
    let text =
        std::fs::read_to_string(path).with_context(|| format!("cannot read role file {}", path.display()))?;
    RoleFile::parse(&path.display().to_string(), &text)
        .map_err(|error| anyhow::anyhow!("the role file is invalid\n{error}"))
}
