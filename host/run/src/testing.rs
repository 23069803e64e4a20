//! Small host trees for tests of readers.

use crate::Root;
use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};
use tempfile::TempDir;

/// A host's tree in a temporary directory, removed on drop.
pub(crate) struct TestTree {
    dir: TempDir,
}

impl TestTree {
    /// A tree with an empty `/proc` and `/sys`.
    pub(crate) fn new() -> Self {
        let tree = Self { dir: tempfile::tempdir().unwrap() };
        tree.dir("/proc").dir("/sys")
    }

    /// A tree with these files.
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        files.iter().fold(Self::new(), |tree, (path, text)| tree.file(path, text))
    }

    /// Path of the host's `path`; the directories above it are created.
    pub(crate) fn place(&self, path: &str) -> PathBuf {
        let place = self.dir.path().join(path.trim_start_matches('/'));
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        place
    }

    /// Adds a file and the directories above it.
    pub(crate) fn file(self, path: &str, contents: impl AsRef<[u8]>) -> Self {
        fs::write(self.place(path), contents).unwrap();
        self
    }

    pub(crate) fn link(self, path: &str, target: &str) -> Self {
        symlink(Path::new(target), self.place(path)).unwrap();
        self
    }

    pub(crate) fn dir(self, path: &str) -> Self {
        fs::create_dir_all(self.place(path)).unwrap();
        self
    }

    /// The root of the tree.
    pub(crate) fn root(&self) -> Root {
        Root::open(self.dir.path()).unwrap()
    }
}
