//! Links that start a unit at boot, or mask it.

use super::super::refused;
use lowlat_undo::{FileTime, HostError, State, Writer};
use std::fmt;

/// Directories of links made by enabling: permanent, and until the next boot. The distribution's links are
/// not changed.
const DIRECTORIES: [&str; 2] = ["/etc/systemd/system", "/run/systemd/system"];
/// Maximum number of names in one directory; real ones have some hundred.
const NAMES_MAX: usize = 5_000;
/// The target of links that mask a unit.
const MASK: &str = "/dev/null";

/// A link with its attributes, so that it can be restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) path: String,
    to: String,
    uid: u32,
    gid: u32,
    mtime: FileTime,
    /// Its label of SELinux.
    context: Option<String>,
}

impl Link {
    /// The link at `path`; none if there is no link.
    fn read(writer: &Writer, path: String) -> Result<Option<Self>, HostError> {
        let link = match writer.read_file(&path) {
            Ok(State::Link { to, uid, gid, mtime: Some(mtime), context }) => {
                Self { path, to, uid, gid, mtime, context }
            }
            // A unit file of the administrator, or a directory of drop-ins.
            Ok(_) | Err(HostError::Kind { .. } | HostError::TooLarge { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        if [&link.path, &link.to].iter().any(|text| text.contains(['\n', '\r']) || text.contains(" -> ")) {
            let why = "its name contains a line break; rename it, or leave this step out";
            return Err(refused("record the link", &link.path, why));
        }
        Ok(Some(link))
    }

    /// Parses what `Display` writes.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (path, rest) = text.split_once(" -> ")?;
        let (to, rest) = rest.strip_suffix(')')?.rsplit_once(" (")?;
        let (owner, time) = rest.split_once(" at ")?;
        let (time, context) =
            time.split_once(" as ").map_or((time, None), |(time, context)| (time, Some(context.to_owned())));
        let ((uid, gid), (seconds, nanoseconds)) = (owner.split_once(':')?, time.split_once('.')?);
        let mtime = FileTime { seconds: seconds.parse().ok()?, nanoseconds: nanoseconds.parse().ok()? };
        let (uid, gid) = (uid.parse().ok()?, gid.parse().ok()?);
        // The log is not trusted blindly: such links belong in these directories only.
        let is_in_place = DIRECTORIES.iter().any(|dir| path.starts_with(&format!("{dir}/")));
        is_in_place.then(|| Self { path: path.to_owned(), to: to.to_owned(), uid, gid, mtime, context })
    }

    pub(super) fn is_mask(&self) -> bool {
        self.to == MASK
    }

    pub(super) fn state(&self) -> State {
        let Self { to, uid, gid, mtime, context, .. } = self.clone();
        State::Link { to, uid, gid, mtime: Some(mtime), context }
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, to, uid, gid, mtime, context } = self;
        let context = context.iter().map(|context| format!(" as {context}")).collect::<String>();
        write!(f, "{path} -> {to} ({uid}:{gid} at {}.{:09}{context})", mtime.seconds, mtime.nanoseconds)
    }
}

/// Links that start a unit at boot, are aliases of it, or mask it, in order.
pub(super) fn of_unit(writer: &Writer, unit: &str) -> Result<Vec<Link>, HostError> {
    let mut links = Vec::new();
    for directory in DIRECTORIES {
        for name in writer.list(directory, NAMES_MAX)? {
            let path = format!("{directory}/{name}");
            let is_of_dependencies =
                matches!(name.rsplit_once('.'), Some((_, "wants" | "requires" | "upholds")));
            if is_of_dependencies {
                links.extend(in_dependencies(writer, &path, unit)?);
            } else if let Some(link) = Link::read(writer, path)? {
                // A link with the unit's name to another place is the unit file itself, linked by `systemctl
                // link`.
                let is_mask = name == unit && link.is_mask();
                let is_alias = name != unit && base_name(&link.to) == unit;
                if is_mask || is_alias {
                    links.push(link);
                }
            }
        }
    }
    Ok(links)
}

fn in_dependencies(writer: &Writer, directory: &str, unit: &str) -> Result<Vec<Link>, HostError> {
    let mut links = Vec::new();
    for name in writer.list(directory, NAMES_MAX)? {
        let Some(link) = Link::read(writer, format!("{directory}/{name}"))? else { continue };
        if name == unit || base_name(&link.to) == unit {
            links.push(link);
        }
    }
    Ok(links)
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Masks a unit permanently.
pub(super) fn mask(writer: &Writer, unit: &str) -> Result<(), HostError> {
    let path = format!("/etc/systemd/system/{unit}");
    match writer.read_file(&path)? {
        State::Absent => writer.write_file(
            &path,
            &State::Link { to: MASK.to_owned(), uid: 0, gid: 0, mtime: None, context: None },
        ),
        found => {
            let why = format!(
                "found {found} in the link's place, expected nothing; move it away, or leave this step out"
            );
            Err(refused("mask", &path, why))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_the_same_after_the_log() {
        let mtime = FileTime { seconds: 7, nanoseconds: 9 };
        let (path, to) = ("/etc/systemd/system/a.wants/b.timer".to_owned(), "/usr/b (old).timer".to_owned());
        for context in [None, Some("system_u:object_r:systemd_unit_t:s0-s0:c0.c1023".to_owned())] {
            let link = Link { path: path.clone(), to: to.clone(), uid: 1, gid: 2, mtime, context };
            assert_eq!(Link::parse(&link.to_string()), Some(link));
        }
    }
}
