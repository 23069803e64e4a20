//! The files of a run, each written whole or not at all.

use crate::output::{json_line, json_lines};
use lowlat_sys::output::{self, Access, OutputError};
use std::path::Path;

/// A file that is written when the run has ended. It is checked before, so that a directory that cannot be written
/// fails at once and not after hours.
#[derive(Debug)]
pub struct OutputFile {
    file: output::OutputFile,
    hint: String,
}

impl OutputFile {
    /// Checks that the file can be written; `option` is how the user names another one.
    pub fn prepare(path: &Path, option: &str) -> anyhow::Result<Self> {
        let hint = format!("name another file with {option}");
        let file = output::OutputFile::new(path, Access::Shared).map_err(|error| in_words(&error, &hint))?;
        file.check().map_err(|error| in_words(&error, &hint))?;
        Ok(Self { file, hint })
    }

    /// Where it goes.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Writes it, in place of an earlier file.
    pub fn write(&self, bytes: &[u8]) -> anyhow::Result<()> {
        self.file.write(bytes).map_err(|error| in_words(&error, &self.hint))
    }

    /// Writes a value as JSON that people read and edit, over several lines.
    pub fn write_json_lines(&self, value: &impl serde::Serialize) -> anyhow::Result<()> {
        self.write((json_lines(value)? + "\n").as_bytes())
    }

    /// Writes a value as JSON, on one line: documents of large hosts are long, and programs read them.
    pub fn write_json(&self, value: &impl serde::Serialize) -> anyhow::Result<()> {
        self.write(json_line(value)?.as_bytes())
    }
}

/// The error with a hint; `otherwise` is the hint where the cause itself suggests none.
pub fn in_words(error: &OutputError, otherwise: &str) -> anyhow::Error {
    let hint = error.hint();
    anyhow::anyhow!("{error}\nhint: {}", hint.as_deref().unwrap_or(otherwise))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_tried_before_and_a_refusal_has_a_hint() {
        let folder = tempfile::tempdir().unwrap();
        let (plain, link) = (folder.path().join("plain"), folder.path().join("link"));
        std::fs::write(&plain, "older and longer").unwrap();
        std::os::unix::fs::symlink(&plain, &link).unwrap();
        OutputFile::prepare(&plain, "--result").unwrap().write(b"newer").unwrap();
        assert_eq!(std::fs::read(&plain).unwrap(), b"newer");
        let refused = |path: &Path| OutputFile::prepare(path, "--result").unwrap_err().to_string();
        assert!(
            refused(&link).ends_with(&format!("\nhint: name {} itself, or remove the link", plain.display()))
        );
        assert!(refused(folder.path()).ends_with("\nhint: name another file with --result"));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "nothing is left over");
    }
}
