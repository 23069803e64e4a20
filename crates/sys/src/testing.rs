//! Small host trees for tests.

use crate::Root;
use std::{fs, os::unix::fs::symlink, path::PathBuf};
use tempfile::TempDir;

/// A host's tree below a temporary directory, which goes when this goes.
pub(crate) struct Tree {
    dir: TempDir,
}

impl Tree {
    /// A tree with an empty /proc and /sys.
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        for name in ["proc", "sys"] {
            fs::create_dir(dir.path().join(name)).expect("a fresh directory");
        }
        Self { dir }
    }

    /// Where `path` of the host stands.
    pub(crate) fn place(&self, path: &str) -> PathBuf {
        self.dir.path().join(path.trim_start_matches('/'))
    }

    fn make_parent(&self, path: &str) -> PathBuf {
        let place = self.place(path);
        if let Some(parent) = place.parent() {
            fs::create_dir_all(parent).expect("directories in a temporary directory");
        }
        place
    }

    /// Adds a file, with its directories.
    pub(crate) fn file(self, path: &str, bytes: impl AsRef<[u8]>) -> Self {
        fs::write(self.make_parent(path), bytes).expect("a file in a temporary directory");
        self
    }

    /// Adds a directory.
    pub(crate) fn folder(self, path: &str) -> Self {
        fs::create_dir_all(self.place(path)).expect("directories in a temporary directory");
        self
    }

    /// Adds a symbolic link.
    pub(crate) fn link(self, path: &str, target: &str) -> Self {
        symlink(target, self.make_parent(path)).expect("a link in a temporary directory");
        self
    }

    /// The tree as a root.
    pub(crate) fn root(&self) -> Root {
        Root::open(self.dir.path()).expect("the tree holds /proc and /sys")
    }
}
