//! Capture files: a tar of a host's tree, plain or compressed with gzip or bzip2.

use super::{
    FILE_BYTES_MAX,
    tree::{Node, Tree},
};
use std::{
    io::{self, Read},
    path::{Component, Path},
};
use thiserror::Error;

/// Bytes that a capture may unpack to, a bound against compression bombs.
const TREE_BYTES_MAX: u64 = 512 << 20;
/// Entries that a capture may hold.
const ENTRIES_MAX: usize = 2_000_000;
/// Where lowlat's captures list what could not be read: one path a line.
pub(crate) const DENIED_LIST: &str = "/.lowlat/denied";

/// Where captures list what has no value though it is there (an attribute of a link that is down): one path a line.
pub(crate) const VALUELESS_LIST: &str = "/.lowlat/valueless";
/// Where captures list what failed otherwise: path, tabulator, the system's words.
pub(crate) const FAILED_LIST: &str = "/.lowlat/failed";
/// Where captures list what was there, but whose content was not kept: one path a line.
pub(crate) const NAMES_LIST: &str = "/.lowlat/names";

/// Why a file is no capture.
#[derive(Debug, Error)]
pub enum ArchiveError {
    /// The file cannot be read, or ends too early.
    #[error("{0}; the file is cut short or damaged, capture the host again")]
    Damaged(io::Error),
    /// Neither a tar nor a compressed tar.
    #[error("it begins with bytes {0:02x?}, expected a tar archive, plain or compressed with gzip or bzip2")]
    NotAnArchive(Vec<u8>),
    /// More than a host's tree can hold.
    #[error(
        "it unpacks to more than {TREE_BYTES_MAX} bytes or {ENTRIES_MAX} entries; that is no host's tree"
    )]
    TooLarge,
}

/// Loads a capture into memory. Archives whose entries share one top folder (as captures of other tools do) are
/// taken from below it.
pub(super) fn load(mut archive: impl Read) -> Result<Tree, ArchiveError> {
    let mut magic = Vec::new();
    (&mut archive).take(262).read_to_end(&mut magic).map_err(ArchiveError::Damaged)?;
    let whole = io::Cursor::new(magic.clone()).chain(archive);
    let reader: Box<dyn Read + '_> = match magic.as_slice() {
        [0x1f, 0x8b, ..] => Box::new(flate2::read::MultiGzDecoder::new(whole)),
        [b'B', b'Z', b'h', ..] => Box::new(bzip2::read::MultiBzDecoder::new(whole)),
        bytes if bytes.get(257..262) == Some(b"ustar") => Box::new(whole),
        bytes => return Err(ArchiveError::NotAnArchive(bytes.iter().take(4).copied().collect())),
    };
    let entries = unpack(reader.take(TREE_BYTES_MAX + 1))?;
    Ok(plant(entries))
}

fn unpack(reader: impl Read) -> Result<Vec<(String, Node)>, ArchiveError> {
    let mut nodes = Vec::new();
    let mut bytes_seen = 0u64;
    let mut archive = tar::Archive::new(reader);
    for entry in archive.entries().map_err(ArchiveError::Damaged)? {
        let mut entry = entry.map_err(ArchiveError::Damaged)?;
        let path = entry.path().map_err(ArchiveError::Damaged)?.into_owned();
        let node = match entry.header().entry_type() {
            tar::EntryType::Directory => Node::Directory,
            tar::EntryType::Symlink | tar::EntryType::Link => {
                let target = entry.link_name().map_err(ArchiveError::Damaged)?.unwrap_or_default();
                Node::Link(target.to_string_lossy().into_owned())
            }
            tar::EntryType::Regular | tar::EntryType::Continuous | tar::EntryType::GNUSparse => {
                let mut bytes = Vec::new();
                (&mut entry).take(FILE_BYTES_MAX).read_to_end(&mut bytes).map_err(ArchiveError::Damaged)?;
                bytes_seen += entry.size();
                Node::File(bytes)
            }
            _ => continue,
        };
        nodes.push((clean(&path), node));
        if bytes_seen > TREE_BYTES_MAX || nodes.len() > ENTRIES_MAX {
            return Err(ArchiveError::TooLarge);
        }
    }
    Ok(nodes)
}

/// The path as the host names it; what climbs above the root is cut off.
fn clean(path: &Path) -> String {
    let mut clean = String::new();
    for component in path.components() {
        if let Component::Normal(name) = component {
            clean.push('/');
            clean.push_str(&name.to_string_lossy());
        }
    }
    clean
}

/// A tree of files alone.
pub(super) fn plant_files(files: impl IntoIterator<Item = (String, Vec<u8>)>) -> Tree {
    plant(files.into_iter().map(|(path, bytes)| (clean(Path::new(&path)), Node::File(bytes))).collect())
}

fn plant(entries: Vec<(String, Node)>) -> Tree {
    let top = top_folder(&entries);
    let mut tree = Tree::default();
    let mut lists = Vec::new();
    for (path, node) in entries {
        let Some(path) = path.strip_prefix(top.as_str()) else { continue };
        match (&node, list_kind(path)) {
            (Node::File(bytes), Some(kind)) => {
                lists.push((kind, String::from_utf8_lossy(bytes).into_owned()));
            }
            _ if path.is_empty() => {}
            _ => tree.insert(path, node),
        }
    }
    for (kind, text) in lists {
        for (path, words) in text.lines().map(|line| line.split_once('\t').unwrap_or((line, ""))) {
            if path.starts_with('/') {
                tree.insert_note(path, kind(words));
            }
        }
    }
    tree
}

/// What the lines of a list say of their paths, given the words behind the path.
fn list_kind(path: &str) -> Option<fn(&str) -> Node> {
    match path {
        DENIED_LIST => Some(|_| Node::Denied),
        VALUELESS_LIST => Some(|_| Node::Valueless),
        FAILED_LIST => Some(|words| Node::Failed(words.to_owned())),
        NAMES_LIST => Some(|_| Node::NotKept),
        _ => None,
    }
}

/// The one folder above `proc` and `sys` that every entry shares, or "".
fn top_folder(entries: &[(String, Node)]) -> String {
    let holds_host = |top: &str| {
        entries.iter().any(|(path, _)| {
            path.strip_prefix(top).is_some_and(|rest| {
                ["/proc", "/sys"].iter().any(|d| rest == *d || rest.starts_with(&format!("{d}/")))
            })
        })
    };
    if holds_host("") {
        return String::new();
    }
    let first = entries.iter().find_map(|(path, _)| path.split('/').nth(1)).unwrap_or_default();
    let top = format!("/{first}");
    if holds_host(&top) { top } else { String::new() }
}
