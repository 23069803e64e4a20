//! Small host trees for tests of readers.

#![allow(
    clippy::must_use_candidate,
    clippy::return_self_not_must_use,
    clippy::new_without_default,
    reason = "for tests only"
)]

use crate::Root;
use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};
use tempfile::TempDir;

/// A host's tree in a temporary directory, removed on drop.
pub struct TestTree {
    dir: TempDir,
}

impl TestTree {
    /// A tree with an empty `/proc` and `/sys`.
    pub fn new() -> Self {
        let tree = Self { dir: tempfile::tempdir().unwrap() };
        tree.dir("/proc").dir("/sys")
    }

    /// A tree with these files.
    pub fn of(files: &[(&str, &str)]) -> Self {
        files.iter().fold(Self::new(), |tree, (path, text)| tree.file(path, text))
    }

    /// Path of the host's `path`; the directories above it are created.
    pub fn place(&self, path: &str) -> PathBuf {
        let place = self.dir.path().join(path.trim_start_matches('/'));
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        place
    }

    /// Adds a file and the directories above it.
    pub fn file(self, path: &str, contents: impl AsRef<[u8]>) -> Self {
        fs::write(self.place(path), contents).unwrap();
        self
    }

    pub fn link(self, path: &str, target: &str) -> Self {
        symlink(Path::new(target), self.place(path)).unwrap();
        self
    }

    pub fn dir(self, path: &str) -> Self {
        fs::create_dir_all(self.place(path)).unwrap();
        self
    }

    /// The root of the tree.
    pub fn root(&self) -> Root {
        Root::open(self.dir.path()).unwrap()
    }
}
