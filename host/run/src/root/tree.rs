//! A host's tree in memory, as unpacked from a capture file.

use super::{ArchiveError, Entry, limits::check_tree};
use std::{collections::BTreeMap, io, ops::Bound};

/// Files, links and directories by absolute path without a trailing slash; the root is "".
#[derive(Debug, Default)]
pub(super) struct Tree {
    pub(super) nodes: BTreeMap<String, Node>,
    names_bytes: usize,
    content_bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Node {
    Directory,
    File(Vec<u8>),
    Link(String),
    /// It existed when the capture was made, but could not be read.
    Denied,
    /// It existed but had no value.
    Valueless,
    /// It existed, but reading failed with this text.
    Failed(String),
    /// It existed, but its content is not part of the capture.
    NotKept,
}

/// Error text for content that the capture lacks.
const NOT_KEPT: &str = "not part of this capture; capture the host again with this version";

impl Tree {
    /// Adds a node and the directories above it. A later node at the same path replaces the earlier one,
    /// except that a directory never replaces an existing node.
    pub(super) fn insert(&mut self, path: &str, node: Node) -> Result<(), ArchiveError> {
        // Every node has its parent directories, so the first existing one ends the loop.
        let mut above = path;
        while let Some((parent, _)) = above.rsplit_once('/').filter(|(parent, _)| !parent.is_empty()) {
            if self.nodes.contains_key(parent) {
                break;
            }
            self.add(parent, Node::Directory)?;
            above = parent;
        }
        if node == Node::Directory && self.nodes.contains_key(path) {
            return Ok(());
        }
        self.add(path, node)
    }

    fn add(&mut self, path: &str, node: Node) -> Result<(), ArchiveError> {
        if let Node::File(bytes) = &node {
            self.content_bytes += u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        }
        if self.nodes.insert(path.to_owned(), node).is_none() {
            self.names_bytes += path.len();
        }
        check_tree(self.nodes.len(), self.names_bytes)
    }

    /// Adds what is known about a path without content. Content at or below the path takes precedence, except
    /// over a denial.
    pub(super) fn insert_note(&mut self, path: &str, node: Node) -> Result<(), ArchiveError> {
        let has_content = self.nodes.contains_key(path);
        if !path.is_empty() && (!has_content || node == Node::Denied) {
            self.insert(path, node)
        } else {
            Ok(())
        }
    }

    /// Returns the size of all files, in bytes.
    pub(super) fn content_bytes(&self) -> u64 {
        self.content_bytes
    }

    fn node(&self, path: &str) -> io::Result<&Node> {
        match path.trim_end_matches('/') {
            "" => Ok(&Node::Directory),
            path => self.nodes.get(path).ok_or_else(|| io::ErrorKind::NotFound.into()),
        }
    }

    pub(super) fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        match self.node(path)? {
            Node::File(bytes) => Ok(bytes.clone()),
            Node::Directory | Node::Link(_) => Err(io::Error::other("not a regular file")),
            other => Err(other.error()),
        }
    }

    pub(super) fn list(&self, path: &str) -> io::Result<Vec<String>> {
        match self.node(path)? {
            Node::Directory => {}
            other => return Err(other.error()),
        }
        let prefix = format!("{}/", path.trim_end_matches('/'));
        let mut names = Vec::new();
        let mut from = prefix.clone();
        // Skips everything below a child: the character after "/" is "0".
        while let Some((found, _)) =
            self.nodes.range::<str, _>((Bound::Included(from.as_str()), Bound::Unbounded)).next()
        {
            let Some(name) = found.strip_prefix(&prefix) else { break };
            if let Some((child, _)) = name.split_once('/') {
                from = format!("{prefix}{child}0");
            } else {
                names.push(name.to_owned());
                from = format!("{found}\0");
            }
        }
        Ok(names)
    }

    pub(super) fn entry(&self, path: &str) -> io::Result<Entry> {
        Ok(match self.node(path)? {
            Node::Directory => Entry::Directory,
            Node::Link(target) => Entry::Link(target.clone()),
            _ => Entry::File,
        })
    }
}

impl Node {
    /// Bytes of a link's target.
    pub(super) fn target_bytes(&self) -> usize {
        match self {
            Self::Link(target) => target.len(),
            _ => 0,
        }
    }

    /// The error of reading or listing this.
    fn error(&self) -> io::Error {
        match self {
            Self::Denied => io::ErrorKind::PermissionDenied.into(),
            Self::Valueless => io::ErrorKind::NotFound.into(),
            Self::Failed(words) => io::Error::other(words.clone()),
            Self::NotKept => io::Error::other(NOT_KEPT),
            Self::Directory | Self::File(_) | Self::Link(_) => io::ErrorKind::NotADirectory.into(),
        }
    }
}
