//! The processes of a trial: this program again, with a hidden subcommand.

use super::{Role, Scene, Subject};
use crate::ipc::handover;
use anyhow::{Context, bail};
use std::{
    path::Path,
    process::{Child, Stdio},
    thread,
    time::{Duration, Instant},
};

const LOOK: Duration = Duration::from_millis(5);

/// Processes that this one started. The remaining ones are killed when it is dropped.
#[derive(Debug)]
pub struct Crew {
    children: Vec<(Role, Child)>,
    subject: Subject,
}

impl Crew {
    pub fn new(subject: Subject) -> Self {
        Self { children: Vec::new(), subject }
    }

    /// Starts process `member` of the scene.
    pub fn start(&mut self, scene: &Scene, member: usize, folder: &Path) -> anyhow::Result<()> {
        let role = scene.roles.get(member).copied().context("no such process")?;
        let folder = folder.to_str().context("the temporary folder's name is no text")?;
        let arguments = [
            "ipc",
            "role",
            "--subject",
            self.subject.name(),
            "--member",
            &member.to_string(),
            "--folder",
            folder,
            "--parameters",
            &serde_json::to_string(&scene.parameters)?,
        ]
        .map(str::to_owned);
        let child = handover::start(&arguments, &[scene.memory.writer_fd()], Stdio::inherit())
            .with_context(|| format!("{} (process {member} of the trial)", role.name()))?;
        self.children.push((role, child));
        Ok(())
    }

    /// Returns an error if a process has already ended.
    pub fn check(&mut self) -> anyhow::Result<()> {
        for (role, child) in &mut self.children {
            if let Some(status) = child.try_wait().context("cannot ask for a child")? {
                bail!("{} of {} ended before its time: {status}", role.name(), self.subject.name());
            }
        }
        Ok(())
    }

    /// Waits until all have ended, kills those that have not by then, and returns their number.
    pub fn end(&mut self, patience: Duration) -> usize {
        let start = Instant::now();
        loop {
            self.children.retain_mut(|(_, child)| !matches!(child.try_wait(), Ok(Some(_))));
            if self.children.is_empty() || start.elapsed() > patience {
                return self.kill();
            }
            thread::sleep(LOOK);
        }
    }

    fn kill(&mut self) -> usize {
        let mut killed = 0;
        for (_, mut child) in self.children.drain(..) {
            // A child that has just ended is no error.
            killed += usize::from(child.kill().is_ok());
            let _ = child.wait();
        }
        killed
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.kill();
    }
}
