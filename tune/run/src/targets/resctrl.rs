//! Groups of resctrl: CPUs with the cache ways and the bandwidth that they may use. The value is one line in the format
//! of [`Group`]. A tree on disk that stands in for resctrl gets the files that the kernel would create.

use super::{failed, refused};
use lowlat_host::CpuSet;
use lowlat_host::resctrl::{DEFAULT_GROUP, Group, MOUNT, Schemata};
use lowlat_undo::{Comparison, FileState, HostError, State, Target, TargetSpec, Writer};

const SET: &str = "set the group";
const SCHEMATA: &str = "schemata";
const CPUS: &str = "cpus_list";

/// Groups by name; `default` is the one of all other CPUs.
#[derive(Debug)]
pub struct CacheGroups;

impl CacheGroups {
    pub const KIND: &str = "resctrl-group";

    /// A group as a target, with its comparison.
    pub fn spec(group: &str) -> TargetSpec {
        TargetSpec { kind: Self::KIND.into(), name: group.into(), comparison: Comparison::Exact }
    }
}

impl Target for CacheGroups {
    fn kind(&self) -> &'static str {
        Self::KIND
    }

    fn outlives_boot(&self, _spec: &TargetSpec) -> bool {
        false
    }

    fn read(&self, writer: &Writer, spec: &TargetSpec) -> Result<State, HostError> {
        check(spec)?;
        let Some(schemata) = text(writer, &path(&spec.name, SCHEMATA))? else { return Ok(State::Absent) };
        let cpus = if spec.name == DEFAULT_GROUP { None } else { text(writer, &path(&spec.name, CPUS))? };
        let cpus = CpuSet::parse_list(cpus.unwrap_or_default().trim())
            .map_err(|error| failed("read the group's CPUs", &spec.name, error))?;
        Ok(State::Value(Group { cpus, schemata: Schemata::parse(&schemata) }.to_line()))
    }

    fn write(&self, writer: &Writer, spec: &TargetSpec, to: &State) -> Result<(), HostError> {
        check(spec)?;
        match to {
            State::Value(line) => {
                let group = Group::parse_line(line).ok_or_else(|| {
                    failed(
                        SET,
                        &spec.name,
                        format!("found {line:?}, expected a line such as cpus=1-3 L3:0=ff0"),
                    )
                })?;
                set(writer, &spec.name, &group).map_err(|error| why(writer, &spec.name, error))
            }
            // It disappears with the mount.
            State::Absent if spec.name == DEFAULT_GROUP => Ok(()),
            State::Absent => remove(writer, &spec.name),
            _ => Err(HostError::wrong_state(CacheGroups::KIND, &spec.name, to)),
        }
    }
}

fn check(spec: &TargetSpec) -> Result<(), HostError> {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if !spec.name.is_empty() && spec.name.bytes().all(is_letter) {
        return Ok(());
    }
    let why = "expected the name of a group, such as lowlat; this plan is wrong, make a new one";
    Err(failed("use as a group of resctrl", &spec.name, why))
}

fn path(group: &str, file: &str) -> String {
    if group == DEFAULT_GROUP { format!("{MOUNT}/{file}") } else { format!("{MOUNT}/{group}/{file}") }
}

fn set(writer: &Writer, name: &str, group: &Group) -> Result<(), HostError> {
    if text(writer, &path(DEFAULT_GROUP, SCHEMATA))?.is_none() {
        return Err(refused(
            SET,
            name,
            "resctrl is not mounted; mount it with `mount -t resctrl resctrl /sys/fs/resctrl`",
        ));
    }
    if name != DEFAULT_GROUP {
        writer.make_directory(&format!("{MOUNT}/{name}"))?;
    }
    if !writer.is_live() {
        return stand_in(writer, name, group);
    }
    // The ways come first, so that no CPU of the group uses others.
    for line in group.schemata.lines() {
        writer.write_value(&path(name, SCHEMATA), &format!("{line}\n"))?;
    }
    if name == DEFAULT_GROUP {
        return Ok(());
    }
    writer.write_value(&path(name, CPUS), &format!("{}\n", group.cpus.to_list()))
}

/// Writes the complete files of a group: a directory does not merge lines as the kernel does.
fn stand_in(writer: &Writer, name: &str, group: &Group) -> Result<(), HostError> {
    let lines: Vec<String> = group.schemata.lines().collect();
    let file = |text: String| State::File(FileState::of_root(text, 0o644));
    writer.write_file(&path(name, SCHEMATA), &file(lines.join("\n") + "\n"))?;
    if name == DEFAULT_GROUP {
        return Ok(());
    }
    writer.write_file(&path(name, CPUS), &file(group.cpus.to_list() + "\n"))
}

/// Removes a group, whose CPUs and tasks return to the default group.
fn remove(writer: &Writer, name: &str) -> Result<(), HostError> {
    if !writer.is_live() {
        for file in [SCHEMATA, CPUS] {
            writer.write_file(&path(name, file), &State::Absent)?;
        }
    }
    let left = writer.remove_directories(&[format!("{MOUNT}/{name}")])?;
    if left.is_empty() {
        Ok(())
    } else {
        Err(refused("remove the group", name, "it contains other groups; remove them first"))
    }
}

/// An error with the kernel's own explanation.
fn why(writer: &Writer, name: &str, error: HostError) -> HostError {
    let said = text(writer, &format!("{MOUNT}/info/last_cmd_status")).ok().flatten().unwrap_or_default();
    match said.trim() {
        "" | "ok" => error,
        said => refused(SET, name, format!("{error}: the kernel says \"{said}\"")),
    }
}

fn text(writer: &Writer, path: &str) -> Result<Option<String>, HostError> {
    Ok(writer.read_value(path)?.into_value())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn stand_in_with(files: &[(&str, &str)]) -> (tempfile::TempDir, Writer) {
        let tree = tempfile::tempdir().unwrap();
        for (file, text) in files {
            let path = tree.path().join("sys/fs/resctrl").join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let writer = Writer::below(tree.path()).unwrap();
        (tree, writer)
    }

    fn value(line: &str) -> State {
        State::Value(line.to_owned())
    }

    #[test]
    fn a_group_is_made_changed_and_removed() {
        let (tree, writer) = stand_in_with(&[("schemata", "    L3:0=00ffff\n    MB:0=100\n")]);
        let (group, all) = (CacheGroups::spec("lowlat"), CacheGroups::spec("default"));
        assert_eq!(CacheGroups.read(&writer, &group).unwrap(), State::Absent);
        assert_eq!(CacheGroups.read(&writer, &all).unwrap(), value("L3:0=ffff MB:0=100"));
        for line in ["cpus=1-3 L3:0=fff MB:0=100", "cpus=1-2 L3:0=ff MB:0=100"] {
            CacheGroups.write(&writer, &group, &value(line)).unwrap();
            assert_eq!(CacheGroups.read(&writer, &group).unwrap(), value(line));
        }
        CacheGroups.write(&writer, &all, &value("L3:0=f000 MB:0=50")).unwrap();
        assert_eq!(CacheGroups.read(&writer, &all).unwrap(), value("L3:0=f000 MB:0=50"));
        CacheGroups.write(&writer, &group, &State::Absent).unwrap();
        CacheGroups.write(&writer, &group, &State::Absent).unwrap();
        assert!(!tree.path().join("sys/fs/resctrl/lowlat").exists());
    }

    #[test]
    fn what_is_not_mounted_or_not_empty_is_refused() {
        let (_tree, writer) = stand_in_with(&[("info/last_cmd_status", "ok\n")]);
        let error =
            CacheGroups.write(&writer, &CacheGroups::spec("lowlat"), &value("cpus=1 L3:0=f")).unwrap_err();
        assert!(error.is_refusal() && error.to_string().contains("not mounted"), "{error}");
        let (_tree, writer) = stand_in_with(&[
            ("schemata", "L3:0=f\n"),
            ("lowlat/schemata", "L3:0=f\n"),
            ("lowlat/mon_groups/x/y", ""),
        ]);
        let error = CacheGroups.write(&writer, &CacheGroups::spec("lowlat"), &State::Absent).unwrap_err();
        assert!(error.is_refusal() && error.to_string().contains("other groups"), "{error}");
        assert!(CacheGroups.read(&writer, &CacheGroups::spec("../x")).is_err());
    }

    #[test]
    fn the_kernels_own_words_are_shown() {
        let (_tree, writer) = stand_in_with(&[("info/last_cmd_status", "Mask out of range\n")]);
        let error = why(&writer, "lowlat", failed(SET, "lowlat", "Invalid argument"));
        assert!(error.to_string().contains("the kernel says \"Mask out of range\""), "{error}");
    }
}
