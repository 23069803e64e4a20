//! What the commands that change a host share: which host, and the question before.

use crate::output;
use anyhow::bail;
use clap::Args;
use lowlat_catalogue::CATALOGUE;
use lowlat_tune::{StateDir, flow::Site};
use std::{
    io::{self, BufRead, IsTerminal},
    path::PathBuf,
};

/// Which host is changed.
#[derive(Debug, Args)]
pub struct SiteArgs {
    /// The host: / for the running one, or a directory that holds a host's tree
    #[arg(long, value_name = "DIR", default_value = "/")]
    pub root: PathBuf,
    /// Keep lowlat's own files here
    #[arg(long, value_name = "DIR", hide = true)]
    pub state_dir: Option<PathBuf>,
}

impl SiteArgs {
    /// The host that was named.
    pub fn open(&self) -> anyhow::Result<Site> {
        open(&self.root, self.state_dir.as_ref())
    }
}

/// The host at `root`, with lowlat's own files elsewhere when a directory is given.
pub fn open(root: &std::path::Path, state_dir: Option<&PathBuf>) -> anyhow::Result<Site> {
    let mut site = Site::open(root, CATALOGUE)?;
    if let Some(dir) = state_dir {
        site.state = StateDir::at(dir);
    }
    Ok(site)
}

/// Asks, unless the answer was given with the command. Where nobody can be asked, that is an error.
pub fn ask(question: &str, is_answered: bool) -> anyhow::Result<bool> {
    if is_answered {
        return Ok(true);
    }
    if !io::stdin().is_terminal() {
        bail!("this changes the host, and nobody can be asked here (stdin is no terminal): pass --yes");
    }
    output::talk(&format!("{question} [y/N]"));
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
