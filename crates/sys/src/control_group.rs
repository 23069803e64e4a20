//! The control groups of this process (cgroup-v2.rst, and cpuacct and memory of version 1).

use super::Root;
use lowlat_host::Reading;

const MOUNT: &str = "/sys/fs/cgroup";

/// This process's groups of one controller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnGroups {
    /// Whether the controller is one of version 1, whose files have other names.
    pub is_version_1: bool,
    /// The folder of the group, of the one above it, and so on up to the root group's.
    pub folders: Vec<String>,
}

impl OwnGroups {
    /// Finds them for a controller such as "memory"; absent if the process is in none.
    pub fn of(root: &Root, controller: &str) -> Reading<Self> {
        root.read("/proc/self/cgroup").and_then(|groups| {
            let named = |line: &str| {
                let (controllers, group) = line.split_once(':')?.1.split_once(':')?;
                controllers.split(',').any(|found| found == controller).then(|| group.to_owned())
            };
            let (mount, group, is_version_1) = match groups.lines().find_map(named) {
                Some(group) => (format!("{MOUNT}/{controller}"), group, true),
                None => match groups.lines().find_map(|line| line.strip_prefix("0::")) {
                    Some(group) => (MOUNT.to_owned(), group.to_owned(), false),
                    None => return Reading::Absent,
                },
            };
            let mut rest = group.trim_end_matches('/');
            let mut folders = vec![format!("{mount}{rest}")];
            while let Some((above, _)) = rest.rsplit_once('/') {
                folders.push(format!("{mount}{above}"));
                rest = above;
            }
            Reading::Known(Self { is_version_1, folders })
        })
    }
}

/// For how long quotas had stopped this process's control group, at a moment.
#[derive(Debug, Clone)]
pub struct Throttled(Reading<u64>);

impl Throttled {
    /// Reads it.
    pub fn read(root: &Root) -> Self {
        Self(throttled_ns(root))
    }

    /// For how long they have stopped it since, in nanoseconds.
    pub fn elapsed_ns(&self, root: &Root) -> Reading<u64> {
        self.0.as_ref().and_then(|from| throttled_ns(root).map(|to| to.saturating_sub(*from)))
    }
}

/// For how long quotas of CPU time have stopped the threads of this process's groups, in nanoseconds: of the group above it
/// or its own with the most. Absent if none can have a quota.
fn throttled_ns(root: &Root) -> Reading<u64> {
    OwnGroups::of(root, "cpu").and_then(|groups| {
        let (key, unit_ns) =
            if groups.is_version_1 { ("throttled_time", 1) } else { ("throttled_usec", 1_000) };
        let mut most: Reading<u64> = Reading::Absent;
        for folder in &groups.folders {
            let path = format!("{folder}/cpu.stat");
            let found = root.read(&path).and_then(|text| {
                let value = |line: &str| line.strip_prefix(key)?.trim().parse::<u64>().ok();
                let has_key = text.lines().any(|line| line.starts_with(key));
                match text.lines().find_map(value) {
                    Some(count) => Reading::Known(count.saturating_mul(unit_ns)),
                    None if has_key => Reading::unparsable(&path, &text, "a number of microseconds"),
                    None => Reading::Absent,
                }
            });
            most = match (most, found) {
                (Reading::Known(most), Reading::Known(found)) => Reading::Known(most.max(found)),
                (known, Reading::Absent) => known,
                (Reading::Absent, found) => found,
                (_, other) => return other,
            };
        }
        most
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ns(files: &[(&str, &str)]) -> Reading<u64> {
        let files = files.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec()));
        throttled_ns(&Root::in_memory("test", files))
    }

    #[test]
    fn the_group_that_was_throttled_most_counts() {
        let own = ("/proc/self/cgroup", "0::/desk/run\n");
        let desk = ("/sys/fs/cgroup/desk/cpu.stat", "usage_usec 9\nnr_throttled 4\nthrottled_usec 3440000\n");
        let run = ("/sys/fs/cgroup/desk/run/cpu.stat", "usage_usec 9\nnr_throttled 0\nthrottled_usec 0\n");
        let all = ("/sys/fs/cgroup/cpu.stat", "usage_usec 9\n");
        assert_eq!(ns(&[own, desk, run, all]), Reading::Known(3_440_000_000));
        assert_eq!(ns(&[own, run, all]), Reading::Known(0));
        assert_eq!((ns(&[own, all]), ns(&[])), (Reading::Absent, Reading::Absent));
        let junk = ("/sys/fs/cgroup/desk/cpu.stat", "throttled_usec much\n");
        assert!(matches!(ns(&[own, junk, run]), Reading::Unparsable(_)));
    }

    #[test]
    fn version_1_counts_nanoseconds() {
        let own = ("/proc/self/cgroup", "4:cpu,cpuacct:/docker/7\n0::/x\n");
        let stat = ("/sys/fs/cgroup/cpu/docker/7/cpu.stat", "nr_periods 9\nthrottled_time 77\n");
        assert_eq!(ns(&[own, stat]), Reading::Known(77));
    }
}
