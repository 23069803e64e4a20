//! The two files of a run: a page for people, a document for programs.

use anyhow::Context;
use lowlat_model::result::ResultDocument;
use std::path::{Path, PathBuf};

/// Where the files go. Made before the long run, so that a directory that cannot be written fails at once.
pub struct ResultFiles {
    report: PathBuf,
    result: PathBuf,
}

impl ResultFiles {
    /// Checks that both files can be written.
    pub fn prepare(report: &Path, result: &Path) -> anyhow::Result<Self> {
        for path in [report, result] {
            let trial = temporary(path);
            std::fs::write(&trial, b"").and_then(|()| std::fs::remove_file(&trial)).with_context(|| {
                format!("cannot write {}; name another place with --report and --result", path.display())
            })?;
        }
        Ok(Self { report: report.into(), result: result.into() })
    }

    /// Writes both, each whole or not at all.
    pub fn write(&self, page: &str, document: &ResultDocument) -> anyhow::Result<()> {
        let json = serde_json::to_vec_pretty(document).context("cannot write the result as JSON")?;
        write_whole(&self.result, &json)?;
        write_whole(&self.report, page.as_bytes())
    }
}

fn temporary(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    path.with_file_name(name)
}

fn write_whole(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let unfinished = temporary(path);
    let written = std::fs::write(&unfinished, bytes).and_then(|()| std::fs::rename(&unfinished, path));
    if written.is_err() {
        let _ = std::fs::remove_file(&unfinished);
    }
    written.with_context(|| format!("cannot write {}", path.display()))
}
