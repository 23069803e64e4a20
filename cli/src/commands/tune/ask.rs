//! Shared parts of the commands that change a host: the host, and the confirmation prompt.

use crate::output;
use anyhow::{bail, ensure};
use clap::Args;
use lowlat_catalogue::CATALOGUE;
use lowlat_host_run::Root;
use lowlat_tune_run::{StateDir, flow::Site};
use std::{
    io::{self, BufRead, IsTerminal},
    path::PathBuf,
};

/// Host to change.
#[derive(Debug, Args)]
pub struct SiteArgs {
    /// Act on this host: / for the running one, or a directory with a host's tree
    #[arg(long, value_name = "DIR", default_value = "/")]
    pub root: PathBuf,
    /// Keep lowlat's own files here
    #[arg(long, value_name = "DIR", hide = true)]
    pub state_dir: Option<PathBuf>,
}

impl SiteArgs {
    pub fn open(&self) -> anyhow::Result<Site> {
        open(&self.root, self.state_dir.as_ref())
    }
}

/// Opens the host at `root`; `state_dir` moves lowlat's own files.
pub fn open(root: &std::path::Path, state_dir: Option<&PathBuf>) -> anyhow::Result<Site> {
    let host = Root::open(root)?;
    ensure!(
        !host.is_capture(),
        "cannot act on {}: it is a capture, which is read-only\nhint: unpack it, and name its directory with --root",
        host.label()
    );
    let mut site = Site::open(root, CATALOGUE)?;
    if let Some(dir) = state_dir {
        site.state = StateDir::at(dir);
    }
    Ok(site)
}

/// Arguments of a command that answers with one sentence.
#[derive(Debug, Args)]
pub struct AnswerArgs {
    #[command(flatten)]
    pub site: SiteArgs,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

impl AnswerArgs {
    /// Prints the answer: a sentence, or a document with its word in this field.
    pub fn print(
        &self,
        document: &'static str,
        field: &str,
        word: &str,
        sentence: &str,
    ) -> anyhow::Result<()> {
        if !self.json {
            return output::print(sentence);
        }
        let answer = output::Document::of(document, serde_json::json!({ field: word }));
        output::print_plain(&output::json_line(&answer)?)
    }
}

/// Asks for confirmation, unless --yes was given. Fails if stdin is not a terminal.
pub fn ask(question: &str, is_answered: bool) -> anyhow::Result<bool> {
    if is_answered {
        return Ok(true);
    }
    if !io::stdin().is_terminal() {
        bail!("cannot ask for confirmation: stdin is not a terminal\nhint: pass --yes");
    }
    output::talk(&format!("{question} [y/N]"));
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
