//! The files of a run, each written whole or not at all.

use anyhow::Context;
use std::path::{Path, PathBuf};

/// A file that will be written when the run is over. Tried before, so that a directory that cannot be written fails
/// at once and not after hours.
#[derive(Debug)]
pub struct OutputFile {
    path: PathBuf,
}

impl OutputFile {
    /// Checks that the file can be written; `option` is how the user names another place.
    pub fn prepare(path: &Path, option: &str) -> anyhow::Result<Self> {
        let trial = temporary(path);
        std::fs::write(&trial, b"")
            .and_then(|()| std::fs::remove_file(&trial))
            .with_context(|| format!("cannot write {}; name another place with {option}", path.display()))?;
        Ok(Self { path: path.into() })
    }

    /// Where it goes.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes it.
    pub fn write(&self, bytes: &[u8]) -> anyhow::Result<()> {
        let unfinished = temporary(&self.path);
        let written =
            std::fs::write(&unfinished, bytes).and_then(|()| std::fs::rename(&unfinished, &self.path));
        if written.is_err() {
            let _ = std::fs::remove_file(&unfinished);
        }
        written.with_context(|| format!("cannot write {}", self.path.display()))
    }

    /// Writes a value as JSON that people read and edit, over several lines.
    pub fn write_json_lines(&self, value: &impl serde::Serialize) -> anyhow::Result<()> {
        let mut bytes = serde_json::to_vec_pretty(value).context("cannot write the result as JSON")?;
        bytes.push(b'\n');
        self.write(&bytes)
    }

    /// Writes a value as JSON, on one line: documents of large hosts are long, and programs read them.
    pub fn write_json(&self, value: &impl serde::Serialize) -> anyhow::Result<()> {
        self.write(&serde_json::to_vec(value).context("cannot write the result as JSON")?)
    }
}

fn temporary(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    path.with_file_name(name)
}
