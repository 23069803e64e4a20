//! From a path to a directory held open and a name in it, without ever leaving the root.

use super::HostError;
use rustix::{
    fs::{self, AtFlags, FileType, Mode, OFlags},
    io::Errno,
};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// Maximum number of links followed; the kernel's own limit.
const LINKS_MAX: usize = 40;
/// The attribute with a link's label of SELinux (xattr(7)).
pub(super) const CONTEXT: &str = "security.selinux";
const CONTEXT_BYTES_MAX: usize = 4_096;
/// Maximum number of directories in the path.
const DEPTH_MAX: usize = 256;

/// The location that a path leads to. The directory stays open, so that it cannot be swapped between check
/// and write.
#[derive(Debug)]
pub(super) struct Place {
    /// The deepest existing directory in the path.
    pub(super) dir: OwnedFd,
    /// Missing directories below it, outermost first.
    pub(super) missing: Vec<String>,
    /// Last name in the path.
    pub(super) name: String,
    /// The path without links, as the host names it.
    pub(super) real: String,
}

/// A walk through a tree.
struct Walk<'a> {
    asked: &'a str,
    root: BorrowedFd<'a>,
    /// Directories below the root, opened, by name.
    stack: Vec<(OwnedFd, String)>,
    /// Names still to be walked, the next one last.
    pending: Vec<String>,
    links: usize,
}

/// Walks `path` below `root`. A link as the last component is followed if `follow_last` is set. Absolute
/// links start at the root; a link that climbs above the root is rejected.
///
/// This is implemented here because openat2 with `RESOLVE_IN_ROOT` came with Linux 5.6, and RHEL 8 has 4.18.
pub(super) fn find(root: BorrowedFd<'_>, path: &str, follow_last: bool) -> Result<Place, HostError> {
    let bad = || HostError::bad_path(path);
    let relative = path.strip_prefix('/').filter(|_| !path.contains('\0')).ok_or_else(bad)?;
    if relative.split('/').any(|name| matches!(name, "" | "." | "..")) {
        return Err(bad());
    }
    let pending = relative.rsplit('/').map(str::to_owned).collect();
    let mut walk = Walk { asked: path, root, stack: Vec::new(), pending, links: 0 };
    let mut link = String::new();
    while let Some(name) = walk.pending.pop() {
        if name.is_empty() || name == "." {
            continue;
        }
        if name == ".." {
            if walk.stack.pop().is_none() {
                return Err(HostError::Unfit(format!(
                    "{path}: the link at {link} leads out of the root, and lowlat does not follow it; correct the link"
                )));
            }
            continue;
        }
        let is_last = walk.pending.is_empty();
        if is_last && !follow_last {
            return walk.end(name, Vec::new());
        }
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let found = match fs::openat(walk.here(), name.as_str(), flags, Mode::empty()) {
            Ok(found) => found,
            Err(Errno::NOENT) => return walk.end_in_nothing(name),
            Err(errno) => return Err(HostError::io("open", &walk.real(&name), errno)),
        };
        let stat = fs::fstat(&found).map_err(|e| HostError::io("stat", &walk.real(&name), e))?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Symlink => {
                link = walk.real(&name);
                walk.follow(&name, &link)?;
            }
            FileType::Directory if !is_last => walk.enter(found, name)?,
            _ if is_last => return walk.end(name, Vec::new()),
            _ => return Err(HostError::io("enter", &walk.real(&name), Errno::NOTDIR)),
        }
    }
    Err(HostError::Kind { path: path.to_owned(), found: "a directory", expected: "a file" })
}

impl Walk<'_> {
    fn here(&self) -> BorrowedFd<'_> {
        self.stack.last().map_or(self.root, |(fd, _)| fd.as_fd())
    }

    fn real(&self, name: &str) -> String {
        let above = self.stack.iter().map(|(_, name)| name.as_str());
        above.chain([name]).flat_map(|name| ["/", name]).collect()
    }

    fn enter(&mut self, dir: OwnedFd, name: String) -> Result<(), HostError> {
        if self.stack.len() >= DEPTH_MAX {
            return Err(HostError::too_many_links(self.asked));
        }
        self.stack.push((dir, name));
        Ok(())
    }

    fn follow(&mut self, name: &str, link: &str) -> Result<(), HostError> {
        self.links += 1;
        if self.links > LINKS_MAX {
            return Err(HostError::too_many_links(self.asked));
        }
        let to = link_text(self.here(), name, link)?;
        if to.starts_with('/') {
            self.stack.clear();
        }
        self.pending.extend(to.rsplit('/').map(str::to_owned));
        Ok(())
    }

    /// The walk has reached a directory or file that does not exist.
    fn end_in_nothing(mut self, name: String) -> Result<Place, HostError> {
        let mut missing = vec![name];
        while let Some(name) = self.pending.pop() {
            match name.as_str() {
                "" | "." => {}
                ".." => return Err(HostError::io("enter", &self.real(&missing.join("/")), Errno::NOENT)),
                _ => missing.push(name),
            }
        }
        if missing.len() > DEPTH_MAX {
            return Err(HostError::too_many_links(self.asked));
        }
        let last = missing.pop().unwrap_or_default();
        self.end(last, missing)
    }

    fn end(mut self, name: String, missing: Vec<String>) -> Result<Place, HostError> {
        let below: String =
            missing.iter().flat_map(|name| [name.as_str(), "/"]).chain([name.as_str()]).collect();
        let real = self.real(&below);
        let dir = match self.stack.pop() {
            Some((dir, _)) => dir,
            None => self.root.try_clone_to_owned().map_err(|e| HostError::io("open", "/", e))?,
        };
        Ok(Place { dir, missing, name, real })
    }
}

impl Place {
    /// True if the target cannot exist because its directory does not.
    pub(super) fn has_no_directory(&self) -> bool {
        !self.missing.is_empty()
    }

    /// Paths of the missing directories, outermost first.
    pub(super) fn missing_paths(&self) -> Vec<String> {
        let depth = self.missing.len();
        let mut at = self.real.as_str();
        let mut paths: Vec<String> = Vec::new();
        for _ in 0..depth {
            at = at.rsplit_once('/').map_or("", |(above, _)| above);
            paths.push(at.to_owned());
        }
        paths.reverse();
        paths
    }

    /// Metadata of what exists there, without following links; `None` if nothing does.
    pub(super) fn stat(&self) -> Result<Option<fs::Stat>, HostError> {
        if self.has_no_directory() {
            return Ok(None);
        }
        match fs::statat(&self.dir, self.name.as_str(), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(HostError::io("stat", &self.real, errno)),
        }
    }

    /// Opens for reading; never follows a link and never waits for the other end of a pipe.
    pub(super) fn open_to_read(&self) -> Result<Option<OwnedFd>, HostError> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        match fs::openat(&self.dir, self.name.as_str(), flags, Mode::empty()) {
            Ok(file) => Ok(Some(file)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(HostError::io("open", &self.real, errno)),
        }
    }

    pub(super) fn link_text(&self) -> Result<String, HostError> {
        link_text(self.dir.as_fd(), &self.name, &self.real)
    }

    /// The context of the link; `None` without one, or if it may not be read.
    pub(super) fn link_context(&self) -> Option<String> {
        let mut value = [0; CONTEXT_BYTES_MAX];
        let length = fs::lgetxattr(self.path_of(&self.name), CONTEXT, value.as_mut_slice()).ok()?;
        let text = std::str::from_utf8(value.get(..length)?).ok()?;
        Some(text.trim_end_matches('\0').to_owned()).filter(|text| !text.contains(char::is_whitespace))
    }

    /// A name in the open directory as a path: links have attributes by path only.
    pub(super) fn path_of(&self, name: &str) -> String {
        format!("/proc/self/fd/{}/{name}", self.dir.as_raw_fd())
    }
}

fn link_text(dir: BorrowedFd<'_>, name: &str, path: &str) -> Result<String, HostError> {
    let to = fs::readlinkat(dir, name, Vec::new()).map_err(|e| HostError::io("read the link", path, e))?;
    String::from_utf8(to.into_bytes())
        .map_err(|error| HostError::not_text(path, &String::from_utf8_lossy(error.as_bytes())))
}
