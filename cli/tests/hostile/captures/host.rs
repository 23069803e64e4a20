//! A captured host whose files a test can change before it is packed again.

use std::{
    io::Read,
    path::{Path, PathBuf},
};

/// A file, or the target of a symbolic link.
#[derive(Debug, Clone)]
pub enum Node {
    File(Vec<u8>),
    Link(String),
}

/// The files and links of a capture, in their order. Paths have no leading slash.
#[derive(Debug, Clone)]
pub struct Host {
    pub nodes: Vec<(String, Node)>,
}

impl Host {
    /// A host of the project's fixtures.
    pub fn fixture(name: &str) -> Self {
        let file = std::fs::File::open(crate::common::capture(name)).expect("the fixture opens");
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(file));
        let mut nodes = Vec::new();
        for entry in archive.entries().expect("an archive") {
            let mut entry = entry.expect("a whole entry");
            let path = entry.path().expect("a path").to_string_lossy().into_owned();
            if let Some(target) = entry.link_name().expect("a target") {
                nodes.push((path, Node::Link(target.to_string_lossy().into_owned())));
            } else if entry.header().entry_type().is_file() {
                let mut bytes = Vec::new();
                entry.read_to_end(&mut bytes).expect("the bytes of a file");
                nodes.push((path, Node::File(bytes)));
            }
        }
        Self { nodes }
    }

    /// Replaces or adds a file.
    pub fn write(&mut self, path: &str, bytes: impl Into<Vec<u8>>) {
        self.nodes.retain(|(found, _)| found != path);
        self.nodes.push((path.to_owned(), Node::File(bytes.into())));
    }

    /// Replaces every occurrence of a text in paths, contents and link targets.
    pub fn rename(&mut self, old: &str, new: &str) {
        for (path, node) in &mut self.nodes {
            *path = path.replace(old, new);
            match node {
                Node::Link(target) => *target = target.replace(old, new),
                Node::File(bytes) => {
                    if let Ok(text) = std::str::from_utf8(bytes) {
                        *bytes = text.replace(old, new).into_bytes();
                    }
                }
            }
        }
    }

    /// Packs the host as an uncompressed tar.
    pub fn tar(&self) -> Vec<u8> {
        let mut tar = tar::Builder::new(Vec::new());
        for (path, node) in &self.nodes {
            let mut header = tar::Header::new_gnu();
            header.set_mode(0o644);
            match node {
                Node::File(bytes) => {
                    header.set_entry_type(tar::EntryType::Regular);
                    header.set_size(bytes.len() as u64);
                    tar.append_data(&mut header, path, bytes.as_slice()).expect("room for a file");
                }
                Node::Link(target) => {
                    header.set_entry_type(tar::EntryType::Symlink);
                    header.set_size(0);
                    tar.append_link(&mut header, path, target).expect("room for a link");
                }
            }
        }
        tar.into_inner().expect("the end of the archive")
    }

    /// Writes the packed host into a directory.
    pub fn pack(&self, directory: &Path) -> PathBuf {
        let path = directory.join("host.tar");
        std::fs::write(&path, self.tar()).expect("a file in the test's directory");
        path
    }
}
