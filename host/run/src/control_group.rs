//! The control groups of this process (cgroup-v2.rst, and cpuacct and memory of version 1).

use super::Root;
use lowlat_host::Reading;

const MOUNT: &str = "/sys/fs/cgroup";

/// This process's groups of one controller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnGroups {
    /// True if the controller is one of version 1, whose files have other names.
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

    /// The least of a group's limit and those of the groups above it. The root group has no limits; a group without the
    /// file has none of its own.
    pub fn least<T: PartialOrd + Copy>(
        &self,
        limit: impl Fn(&str) -> Reading<Option<T>>,
    ) -> Reading<Option<T>> {
        let mut least = None;
        for folder in &self.folders {
            match limit(folder) {
                Reading::Known(Some(found)) => {
                    if least.is_none_or(|least| found < least) {
                        least = Some(found);
                    }
                }
                Reading::Known(None) | Reading::Absent => {}
                other => return other,
            }
        }
        Reading::Known(least)
    }
}

/// Version 1 has a limit of this size where there is none: the largest number of whole pages.
const NO_LIMIT_BYTES: u64 = 1 << 62;

/// The memory that this process's group and those above it leave it, in bytes; the inner value is `None` without a
/// limit.
pub fn memory_left_bytes(root: &Root) -> Reading<Option<u64>> {
    OwnGroups::of(root, "memory").and_then(|groups| {
        let files = if groups.is_version_1 {
            ["memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"]
        } else {
            ["memory.max", "memory.current", "inactive_file"]
        };
        groups.least(|folder| memory(root, folder, files))
    })
}

/// The memory that a group leaves; the inner value is `None` without a limit.
fn memory(root: &Root, folder: &str, [limit, usage, reclaimable]: [&str; 3]) -> Reading<Option<u64>> {
    let path = format!("{folder}/{limit}");
    let text = root.read(&path);
    if text.text().trim() == "max" {
        return Reading::Known(None);
    }
    let limit: Reading<u64> = text.parse(&path, "a number of bytes", |text| text.parse().ok());
    limit.and_then(|limit| {
        if limit >= NO_LIMIT_BYTES {
            return Reading::Known(None);
        }
        let used: Reading<u64> = root.read_as(&format!("{folder}/{usage}"), "a number of bytes");
        // Pages of files that the kernel drops before it kills; unknown counts as none.
        let stat = root.read(&format!("{folder}/memory.stat"));
        let line = stat.known().and_then(|text| {
            text.lines().find_map(|line| line.strip_prefix(reclaimable)?.trim().parse::<u64>().ok())
        });
        used.map(|used| Some(limit.saturating_sub(used.saturating_sub(line.unwrap_or(0)))))
    })
}

/// Time for which quotas had stopped this process's control group, at a moment.
#[derive(Debug, Clone)]
pub struct Throttled(Reading<u64>);

impl Throttled {
    pub fn read(root: &Root) -> Self {
        Self(throttled_ns(root))
    }

    /// Time for which they have stopped it since, in nanoseconds.
    pub fn elapsed_ns(&self, root: &Root) -> Reading<u64> {
        self.0.as_ref().and_then(|from| throttled_ns(root).map(|to| to.saturating_sub(*from)))
    }
}

/// Time for which quotas of CPU time have stopped the threads of this process's groups, in nanoseconds: of the group
/// above it or its own with the most. Absent if none can have a quota.
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
