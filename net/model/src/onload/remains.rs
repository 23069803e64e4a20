//! What the vendor's programs make and leave: the unpacked release, folders and a user. The log of an installation has
//! what undoes each of them.

use super::{Release, Step, procedure::step};
use std::collections::BTreeSet;

/// User of Onload's control plane.
pub const USER: &str = "onload_cplane";
/// Between a line of the log and the command that undoes it.
const UNDO: &str = "; undo: ";

/// What the vendor's programs may add to, before or after them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InstallSurroundings {
    /// Paths of the folders in which they install.
    pub folders: BTreeSet<String>,
    /// True if [`USER`] exists.
    pub has_user: bool,
}

impl InstallSurroundings {
    /// Returns lines for the log: what was made since, each with what undoes it. `into` is the folder of unpacked
    /// releases, which steps of their own undo.
    pub fn log_lines(&self, after: &Self, into: &str) -> Vec<String> {
        let is_release = |folder: &str| {
            let below = folder.strip_prefix(into).and_then(|rest| rest.strip_prefix('/'));
            below.is_some_and(|below| is_release(below.split('/').next().unwrap_or_default()))
        };
        let made = after.folders.difference(&self.folders).filter(|folder| !is_release(folder));
        let folders = made.map(|folder| format!("== made {folder}{UNDO}rmdir {folder}"));
        let user = (after.has_user && !self.has_user).then(|| format!("== made {USER}{UNDO}userdel {USER}"));
        folders.chain(user).collect()
    }
}

/// What installations made and uninstalling leaves.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OnloadRemains {
    /// Paths of unpacked releases.
    pub releases: BTreeSet<String>,
    /// Paths of archives that were taken out of bundles.
    pub archives: BTreeSet<String>,
    /// Paths of folders, which may have been there for others since.
    pub folders: BTreeSet<String>,
    /// True if [`USER`] was made.
    pub has_user: bool,
}

impl OnloadRemains {
    /// Parses the log of installations. Of what its commands would remove, only a release, its archive, an empty folder and
    /// [`USER`] are taken.
    pub fn parse(log: &str) -> Self {
        let mut remains = Self::default();
        for (_, undo) in log.lines().filter_map(|line| line.split_once(UNDO)) {
            let (command, path) = undo.rsplit_once(' ').unwrap_or_default();
            let name = path.rsplit('/').next().unwrap_or_default();
            match command {
                "rm -r" if path.starts_with('/') && is_release(name) => {
                    remains.releases.insert(path.to_owned());
                }
                "rm" if path.starts_with('/') && Release::parse(name).is_some() => {
                    remains.archives.insert(path.to_owned());
                }
                "rmdir" if path.starts_with('/') => {
                    remains.folders.insert(path.to_owned());
                }
                "userdel" => remains.has_user |= path == USER,
                _ => {}
            }
        }
        remains
    }

    /// Returns what is still there.
    #[must_use]
    pub fn existing(mut self, exists: impl Fn(&str) -> bool, has_user: bool) -> Self {
        // A folder of that name without the vendor's program is someone else's.
        self.releases.retain(|folder| exists(&format!("{folder}/scripts/onload_install")));
        self.archives.retain(|file| exists(file));
        self.folders.retain(|folder| exists(folder));
        self.has_user &= has_user;
        self
    }

    /// Returns the steps that remove it, after the vendor's own.
    pub(super) fn removal(&self) -> Vec<Step> {
        let command = |words: &[&'static str], paths: Vec<&String>| {
            let words = words.iter().map(|word| (*word).to_owned());
            words.chain(paths.into_iter().cloned()).collect::<Vec<_>>()
        };
        let mut steps = Vec::new();
        if !self.releases.is_empty() || !self.archives.is_empty() {
            let paths = self.releases.iter().chain(&self.archives).collect();
            let command = command(&["rm", "-r"], paths);
            steps.push(Step {
                command,
                ..step("remove the unpacked release", &[], "lowlat onload install ARCHIVE")
            });
        }
        if !self.folders.is_empty() {
            // Those within others first. The vendor's programs have removed some by then.
            let command =
                command(&["rmdir", "--ignore-fail-on-non-empty"], self.folders.iter().rev().collect());
            steps.push(Step {
                command,
                may_fail: true,
                ..step("remove folders that are left empty", &[], "")
            });
        }
        if self.has_user {
            steps.push(step(
                "remove the user of Onload's control plane",
                &["userdel", USER],
                "onload_tool add_cplane_user",
            ));
        }
        steps
    }
}

fn is_release(folder: &str) -> bool {
    Release::parse(&format!("{folder}.tgz")).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn surroundings(folders: &[&str], has_user: bool) -> InstallSurroundings {
        InstallSurroundings { folders: folders.iter().map(|folder| (*folder).to_owned()).collect(), has_user }
    }

    #[test]
    fn what_an_installation_made_is_removed_and_nothing_else() {
        let before = surroundings(&["/etc", "/usr/local/src"], false);
        let after = surroundings(
            &[
                "/etc",
                "/etc/depmod.d",
                "/usr/local/src",
                "/usr/local/src/onload-9.2.1",
                "/usr/local/src/onload-9.2.1/scripts",
                "/usr/lib/p",
                "/usr/lib/p/c",
            ],
            true,
        );
        let mut log = before.log_lines(&after, "/usr/local/src").join("\n");
        assert!(!log.contains("/usr/local/src"), "{log}");
        log.push_str("\n== exit status: 0; undo: rm -r /usr/local/src/onload-9.2.1\n");
        log.push_str("== exit status: 0; undo: rm /usr/local/src/onload-9.2.1.tgz\n");
        for foreign in [
            "rm -r /",
            "rm -r /home/onload",
            "rm /etc/passwd",
            "userdel root",
            "rm -r onload-9.2.1",
            "onload_tool unload",
        ] {
            log.push_str(&format!("== exit status: 0; undo: {foreign}\n"));
        }
        let remains = OnloadRemains::parse(&log);
        let lines = |remains: &OnloadRemains| -> Vec<String> {
            remains.removal().iter().map(|step| step.command.join(" ")).collect()
        };
        assert_eq!(
            lines(&remains),
            [
                "rm -r /usr/local/src/onload-9.2.1 /usr/local/src/onload-9.2.1.tgz",
                "rmdir --ignore-fail-on-non-empty /usr/lib/p/c /usr/lib/p /etc/depmod.d",
                "userdel onload_cplane",
            ]
        );
        let gone = remains.clone().existing(|_| false, false);
        assert_eq!(gone, OnloadRemains::default());
        let others =
            remains.existing(|path| path.starts_with("/etc/") || path.starts_with("/usr/lib/"), true);
        assert_eq!(lines(&others).len(), 2, "a folder without the vendor's program");
        // What was there before is not made.
        assert_eq!(after.log_lines(&after, "/usr/local/src"), [""; 0]);
        assert_eq!(OnloadRemains::parse(""), OnloadRemains::default());
    }
}
