//! The files of a run, each written whole or not at all.

use anyhow::Context;
use std::{
    os::unix::fs::FileTypeExt,
    path::{Path, PathBuf},
};

/// A file that will be written when the run is over. Tried before, so that a directory that cannot be written fails
/// at once and not after hours.
#[derive(Debug)]
pub struct OutputFile {
    path: PathBuf,
}

impl OutputFile {
    /// Checks that the file can be written; `option` is how the user names another place.
    pub fn prepare(path: &Path, option: &str) -> anyhow::Result<Self> {
        if !is_replaceable(path) {
            // A named pipe would take its reader's end for the end of what is written.
            let is_pipe = std::fs::metadata(path).is_ok_and(|there| there.file_type().is_fifo());
            if is_pipe {
                return Ok(Self { path: path.into() });
            }
            // Opened as it will be, with nothing written.
            std::fs::OpenOptions::new().create(true).append(true).open(path).with_context(|| {
                format!("cannot write {}; name another place with {option}", path.display())
            })?;
            return Ok(Self { path: path.into() });
        }
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
        if !is_replaceable(&self.path) {
            return std::fs::write(&self.path, bytes)
                .with_context(|| format!("cannot write {}", self.path.display()));
        }
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

/// Whether a finished file may take the place of what is there: of a plain file, or of nothing. A device, a pipe or a link
/// (/dev/null, /dev/stdout) is written into, and stays what it is.
fn is_replaceable(path: &Path) -> bool {
    std::fs::symlink_metadata(path).map_or(true, |there| there.is_file())
}

fn temporary(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_stays_one_and_a_plain_file_is_replaced_whole() {
        let folder = tempfile::tempdir().unwrap();
        let (plain, link) = (folder.path().join("plain"), folder.path().join("link"));
        std::fs::write(&plain, "older and longer").unwrap();
        std::os::unix::fs::symlink(&plain, &link).unwrap();
        OutputFile::prepare(&link, "--result").unwrap().write(b"new").unwrap();
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink(), "nothing took its place");
        assert_eq!(std::fs::read(&plain).unwrap(), b"new");
        OutputFile::prepare(&plain, "--result").unwrap().write(b"newer").unwrap();
        assert_eq!(std::fs::read(&plain).unwrap(), b"newer");
        assert!(OutputFile::prepare(folder.path(), "--result").is_err(), "a folder is no file");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "nothing is left over");
    }

    #[test]
    fn a_device_is_written_into() {
        let null = Path::new("/dev/null");
        // Through a link, so that a fault here cannot take the device's place.
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("null");
        std::os::unix::fs::symlink(null, &link).unwrap();
        OutputFile::prepare(&link, "--result").unwrap().write(b"gone").unwrap();
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
        assert!(!is_replaceable(null) && is_replaceable(&folder.path().join("none")));
    }
}
