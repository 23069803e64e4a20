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
}

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

    fn node(&self, path: &str) -> io::Result<&Node> {
        match path.trim_end_matches('/') {
            "" => Ok(&Node::Directory),
            path => self.nodes.get(path).ok_or_else(|| io::ErrorKind::NotFound.into()),
        }
    }

    pub(super) fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        match self.node(path)? {
            Node::File(bytes) => Ok(bytes.clone()),
            Node::Denied => Err(io::ErrorKind::PermissionDenied.into()),
            Node::Directory | Node::Link(_) => Err(io::Error::other("not a regular file")),
        }
    }

    pub(super) fn list(&self, path: &str) -> io::Result<Vec<String>> {
        match self.node(path)? {
            Node::Directory => {}
            Node::Denied => return Err(io::ErrorKind::PermissionDenied.into()),
            Node::File(_) | Node::Link(_) => return Err(io::ErrorKind::NotADirectory.into()),
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
            Node::File(_) | Node::Denied => Entry::File,
            Node::Link(target) => Entry::Link(target.clone()),
        })
    }
}
