//! Replacement answers at a path of a capture, for tests of reports about data that was not read.

use super::{
    Backend, Root,
    tree::{Node, Tree},
};
use std::collections::BTreeSet;

/// Nodes by path, taken out of a tree.
type Subtree = Vec<(String, Node)>;

/// Answer at a path instead of the captured one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Replacement {
    /// Nothing exists there, or below.
    Absent,
    /// Permission denied; what is below a directory stays.
    Denied,
    /// A file with these bytes.
    Content(Vec<u8>),
}

/// Part of the capture that a replacement took out, for [`Root::restore`].
#[derive(Debug)]
pub struct Replaced {
    path: String,
    taken: Subtree,
}

impl Root {
    /// Replaces the answer at a real path of a capture. Nothing happens on other roots.
    pub fn replace(&mut self, path: &str, with: Replacement) -> Replaced {
        // Earlier reads must not use up the limit of the next ones.
        *self.read_bytes.get_mut() = 0;
        let Backend::Capture(tree) = &mut self.backend else {
            return Replaced { path: path.to_owned(), taken: Subtree::new() };
        };
        let taken = tree.take(path, with != Replacement::Denied);
        let node = match with {
            Replacement::Absent => None,
            Replacement::Denied => Some(Node::Denied),
            Replacement::Content(bytes) => Some(Node::File(bytes)),
        };
        tree.put(path, node);
        Replaced { path: path.to_owned(), taken }
    }

    /// Reverts a replacement. Several are reverted in the reverse order.
    pub fn restore(&mut self, replaced: Replaced) {
        if let Backend::Capture(tree) = &mut self.backend {
            tree.put(&replaced.path, None);
            tree.give(replaced.taken);
        }
    }

    /// Returns what `read` returns, the real paths of the files and directories that it reads, and which of these are
    /// directories.
    pub fn paths_read<T>(&self, read: impl FnOnce(&Self) -> T) -> (T, BTreeSet<String>, BTreeSet<String>) {
        self.start_recording();
        let value = read(self);
        let seen = self.take_recording();
        let folders: BTreeSet<String> = seen.lists.into_keys().collect();
        (value, seen.reads.into_keys().chain(folders.iter().cloned()).collect(), folders)
    }
}

impl Tree {
    /// Takes the node at a path out of the tree, and those below it on request.
    fn take(&mut self, path: &str, with_those_below: bool) -> Subtree {
        let mut taken: Subtree = self.nodes.remove_entry(path).into_iter().collect();
        if with_those_below {
            let prefix = format!("{path}/");
            let below = self.nodes.range(prefix.clone()..).map(|(path, _)| path);
            let below: Vec<String> = below.take_while(|path| path.starts_with(&prefix)).cloned().collect();
            taken.extend(below.iter().filter_map(|path| self.nodes.remove_entry(path)));
        }
        taken
    }

    /// Adds or removes one node, without those above it.
    fn put(&mut self, path: &str, node: Option<Node>) {
        match node {
            Some(node) => self.nodes.insert(path.to_owned(), node),
            None => self.nodes.remove(path),
        };
    }

    /// Adds nodes that were taken.
    fn give(&mut self, taken: Subtree) {
        self.nodes.extend(taken);
    }
}
