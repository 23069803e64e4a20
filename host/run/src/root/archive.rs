//! Capture files: a tar of a host's tree, either plain or compressed with gzip or bzip2.

use super::{
    FILE_BYTES_MAX,
    limits::{CONTENT_BYTES_MAX, HEADER_BYTES_MAX, STREAM_BYTES_MAX, check_path, check_tree},
    tree::{Node, Tree},
};
use std::{
    fmt,
    io::{self, Read},
    path::{Component, Path},
};
use tar::EntryType;
use thiserror::Error;

/// List of the paths in a capture that could not be read, one per line.
pub(crate) const DENIED_LIST: &str = "/.lowlat/denied";
/// List of the existing paths in a capture that have no value (an attribute of a link that is down), one per
/// line.
pub(crate) const VALUELESS_LIST: &str = "/.lowlat/valueless";
/// List of the paths in a capture that failed otherwise: path, tab, error text.
pub(crate) const FAILED_LIST: &str = "/.lowlat/failed";
/// List of the existing paths in a capture whose content was not kept, one per line.
pub(crate) const NAMES_LIST: &str = "/.lowlat/names";

/// Reason why a file is not a valid capture.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct ArchiveError(String);

impl ArchiveError {
    /// It is larger than any host's tree, or contains what captures never do.
    pub(super) fn new(problem: impl fmt::Display) -> Self {
        Self(format!("{problem}\nhint: capture the host again with `lowlat host capture`"))
    }

    fn not_an_archive(start: &[u8]) -> Self {
        let found = match start {
            [] => "it is empty".to_owned(),
            bytes => format!("it starts with bytes {bytes:02x?}"),
        };
        Self(format!(
            "{found}, expected a tar archive, either plain or compressed with gzip or bzip2\nhint: name a file that `lowlat \
             host capture` wrote"
        ))
    }
}

impl From<io::Error> for ArchiveError {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::FileTooLarge {
            Self::new(format!("it unpacks to more than {STREAM_BYTES_MAX} bytes"))
        } else {
            Self(format!("{error}\nhint: the file is truncated or damaged; capture the host again"))
        }
    }
}

/// Fails after the maximum unpacked size of a capture.
struct Bounded<R> {
    inner: R,
    bytes_left: u64,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.bytes_left == 0 {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let size = (&mut self.inner).take(self.bytes_left).read(buffer)?;
        self.bytes_left -= u64::try_from(size).unwrap_or(u64::MAX).min(self.bytes_left);
        Ok(size)
    }
}

/// Loads a capture into memory. If all entries share one top directory, as in captures of other tools, its
/// content is used.
pub(super) fn load(mut archive: impl Read) -> Result<Tree, ArchiveError> {
    let mut magic = Vec::new();
    (&mut archive).take(262).read_to_end(&mut magic)?;
    let whole = io::Cursor::new(magic.clone()).chain(archive);
    let inner: Box<dyn Read + '_> = match magic.as_slice() {
        [0x1f, 0x8b, ..] => Box::new(flate2::read::MultiGzDecoder::new(whole)),
        [b'B', b'Z', b'h', ..] => Box::new(bzip2::read::MultiBzDecoder::new(whole)),
        bytes if bytes.get(257..262) == Some(b"ustar") => Box::new(whole),
        bytes => return Err(ArchiveError::not_an_archive(bytes.get(..4).unwrap_or(bytes))),
    };
    let entries = unpack(Bounded { inner, bytes_left: STREAM_BYTES_MAX })?;
    plant(entries)
}

/// Long names that precede their entry.
#[derive(Debug, Default)]
struct LongNames {
    path: Option<Vec<u8>>,
    target: Option<Vec<u8>>,
    size: Option<u64>,
}

fn unpack(reader: impl Read) -> Result<Vec<(String, Node)>, ArchiveError> {
    let mut nodes = Vec::new();
    let (mut content_bytes, mut names_bytes) = (0_u64, 0_usize);
    let mut names = LongNames::default();
    let mut archive = tar::Archive::new(reader);
    // Raw, because the crate would read extended headers of any size.
    for entry in archive.entries()?.raw(true) {
        let mut entry = entry?;
        let kind = entry.header().entry_type();
        if names.take_header(kind, &mut entry)? {
            continue;
        }
        let LongNames { path, target, size } = std::mem::take(&mut names);
        if size.is_some_and(|size| size != entry.size()) {
            return Err(ArchiveError::new("it contains an entry whose headers give two sizes"));
        }
        let path = path.unwrap_or_else(|| entry.path_bytes().into_owned());
        let path = cleaned(&text("path", &path)?);
        let node = match kind {
            EntryType::Directory => Node::Directory,
            EntryType::Symlink | EntryType::Link => {
                let target = target.or_else(|| entry.link_name_bytes().map(std::borrow::Cow::into_owned));
                Node::Link(text("link target", &target.unwrap_or_default())?)
            }
            EntryType::Regular | EntryType::Continuous => {
                let mut bytes = Vec::new();
                (&mut entry).take(FILE_BYTES_MAX).read_to_end(&mut bytes)?;
                content_bytes += entry.size();
                Node::File(bytes)
            }
            EntryType::GNUSparse => return Err(ArchiveError::new("it contains sparse files")),
            _ => continue,
        };
        names_bytes += path.len() + node.target_bytes();
        nodes.push((path, node));
        if content_bytes > CONTENT_BYTES_MAX {
            return Err(ArchiveError::new(format!("its files contain more than {CONTENT_BYTES_MAX} bytes")));
        }
        check_tree(nodes.len(), names_bytes)?;
    }
    Ok(nodes)
}

impl LongNames {
    /// Stores what an extended header says about the next entry; `false` if the entry is not such a header.
    fn take_header(
        &mut self,
        kind: EntryType,
        entry: &mut tar::Entry<'_, impl Read>,
    ) -> Result<bool, ArchiveError> {
        match kind {
            EntryType::GNULongName => self.path = Some(without_end(header_bytes(entry)?)),
            EntryType::GNULongLink => self.target = Some(without_end(header_bytes(entry)?)),
            EntryType::XHeader => {
                let records = header_bytes(entry)?;
                for record in tar::PaxExtensions::new(&records) {
                    let record = record?;
                    match record.key_bytes() {
                        b"path" => self.path = Some(record.value_bytes().to_vec()),
                        b"linkpath" => self.target = Some(record.value_bytes().to_vec()),
                        b"size" => {
                            let size = record.value().ok().and_then(|size| size.parse().ok());
                            self.size = Some(size.unwrap_or(u64::MAX));
                        }
                        _ => {}
                    }
                }
            }
            EntryType::XGlobalHeader => {}
            _ => return Ok(false),
        }
        Ok(true)
    }
}

fn header_bytes(entry: &mut tar::Entry<'_, impl Read>) -> Result<Vec<u8>, ArchiveError> {
    let size = entry.size();
    if size > HEADER_BYTES_MAX {
        return Err(ArchiveError::new(format!(
            "an extended tar header has {size} bytes, at most {HEADER_BYTES_MAX} are supported"
        )));
    }
    let mut bytes = Vec::new();
    entry.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// GNU tar ends long names with a zero.
fn without_end(mut name: Vec<u8>) -> Vec<u8> {
    if name.last() == Some(&0) {
        name.pop();
    }
    name
}

/// A path or link target as text, within the limits.
fn text(what: &str, bytes: &[u8]) -> Result<String, ArchiveError> {
    let text = String::from_utf8_lossy(bytes);
    check_path(what, &text)?;
    Ok(text.into_owned())
}

/// The path as the host names it; components that climb above the root are removed.
fn cleaned(path: &str) -> String {
    let mut clean = String::new();
    for component in Path::new(path).components() {
        if let Component::Normal(name) = component {
            clean.push('/');
            clean.push_str(&name.to_string_lossy());
        }
    }
    clean
}

/// A tree of files only. Files beyond the limits of a capture are left out.
pub(super) fn plant_files(files: impl IntoIterator<Item = (String, Vec<u8>)>) -> Tree {
    let within = files.into_iter().filter(|(path, _)| check_path("path", path).is_ok());
    plant(within.map(|(path, bytes)| (cleaned(&path), Node::File(bytes))).collect()).unwrap_or_default()
}

fn plant(entries: Vec<(String, Node)>) -> Result<Tree, ArchiveError> {
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
            _ => tree.insert(path, node)?,
        }
    }
    for (kind, text) in lists {
        for (path, words) in text.lines().map(|line| line.split_once('\t').unwrap_or((line, ""))) {
            if path.starts_with('/') {
                check_path("path", path)?;
                tree.insert_note(&cleaned(path), kind(words))?;
            }
        }
    }
    Ok(tree)
}

/// Returns the parser for the lines of a list, which is given the text after the path.
fn list_kind(path: &str) -> Option<fn(&str) -> Node> {
    match path {
        DENIED_LIST => Some(|_| Node::Denied),
        VALUELESS_LIST => Some(|_| Node::Valueless),
        FAILED_LIST => Some(|words| Node::Failed(words.to_owned())),
        NAMES_LIST => Some(|_| Node::NotKept),
        _ => None,
    }
}

/// The one directory above `proc` and `sys` that all entries share, or "".
fn top_folder(entries: &[(String, Node)]) -> String {
    let is_host = |rest: &str| {
        ["/proc", "/sys"].iter().any(|folder| {
            rest.strip_prefix(folder).is_some_and(|below| below.is_empty() || below.starts_with('/'))
        })
    };
    let holds_host = |top: &str| entries.iter().any(|(path, _)| path.strip_prefix(top).is_some_and(is_host));
    if holds_host("") {
        return String::new();
    }
    let first = entries.iter().find_map(|(path, _)| path.split('/').nth(1)).unwrap_or_default();
    let top = format!("/{first}");
    if holds_host(&top) { top } else { String::new() }
}
