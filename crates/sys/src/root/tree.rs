//! A host's tree held in memory: what a capture file unpacks to.

use super::Entry;
use std::{collections::BTreeMap, io};

/// Files, links and directories by absolute path without a trailing slash; the root is "".
#[derive(Debug, Default)]
pub(super) struct Tree {
    nodes: BTreeMap<String, Node>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Node {
    Directory,
    File(Vec<u8>),
    Link(String),
    /// It was there when the capture was made, but could not be read then.
    Denied,
    /// It was there, but had no value.
    Valueless,
    /// It was there, but reading failed with these words.
    Failed(String),
    /// It was there, but its content is no part of the capture.
    NotKept,
}

/// What a reader is told of content that the capture lacks.
const NOT_KEPT: &str = "not kept in this capture; capture the host again with this version";

impl Tree {
    /// Adds a node and the directories above it. A later node at the same path replaces the former, except that a
    /// directory never replaces what is already there.
    pub(super) fn insert(&mut self, path: &str, node: Node) {
        for (at, _) in path.match_indices('/').skip(1) {
            self.nodes.entry(path[..at].to_owned()).or_insert(Node::Directory);
        }
        if node == Node::Directory {
            self.nodes.entry(path.to_owned()).or_insert(node);
        } else {
            self.nodes.insert(path.to_owned(), node);
        }
    }

    /// Adds what is known of a path that has no content of its own. Content at or below the path counts for more,
    /// except against a denial.
    pub(super) fn insert_note(&mut self, path: &str, node: Node) {
        let has_content = self.nodes.contains_key(path);
        if !has_content || node == Node::Denied {
            self.insert(path, node);
        }
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
        let below = self.nodes.range(prefix.clone()..).take_while(|(path, _)| path.starts_with(&prefix));
        let names = below.filter_map(|(path, _)| {
            let name = &path[prefix.len()..];
            (!name.is_empty() && !name.contains('/')).then(|| name.to_owned())
        });
        Ok(names.collect())
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
    /// What keeps this from being read or listed.
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
