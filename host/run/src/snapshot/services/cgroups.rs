//! Control groups: which version, and cpuset partitions.

use crate::Root;
use lowlat_host::{Reading, snapshot::CpusetPartition};
use std::collections::VecDeque;

const MOUNT: &str = "/sys/fs/cgroup";
/// Mount point of the second version on hybrid hosts.
const UNIFIED: &str = "/sys/fs/cgroup/unified";
/// Levels below the root group that are walked.
const DEPTH_MAX: u32 = 4;
/// Maximum number of groups visited.
const GROUPS_MAX: usize = 2_000;

/// 2, 1, or 0 for a host with both, according to the root groups.
pub(super) fn version(root: &Root) -> Reading<u32> {
    if root.exists(&format!("{MOUNT}/cgroup.controllers")) {
        return Reading::Known(2);
    }
    if root.exists(&format!("{UNIFIED}/cgroup.controllers")) {
        return Reading::Known(0);
    }
    root.list(MOUNT).and_then(|names| if names.is_empty() { Reading::Absent } else { Reading::Known(1) })
}

/// Groups of the second version that form a partition, breadth first within the limits.
pub(super) fn cpuset_partitions(root: &Root) -> Vec<CpusetPartition> {
    let top = if root.exists(&format!("{MOUNT}/cgroup.controllers")) { MOUNT } else { UNIFIED };
    let mut partitions = Vec::new();
    let mut ahead = VecDeque::from([(String::new(), 0)]);
    let mut visited = 0;
    while let Some((group, depth)) = ahead.pop_front() {
        visited += 1;
        let directory = format!("{top}{group}");
        partitions.extend(partition(root, &directory, &group));
        if depth == DEPTH_MAX {
            continue;
        }
        for name in root.list(&directory).into_known().unwrap_or_default() {
            if visited + ahead.len() >= GROUPS_MAX {
                break;
            }
            // A group is a directory with a process list; the kernel's own files have names such as cpu.max.
            if !is_control_file(&name) && root.exists(&format!("{directory}/{name}/cgroup.procs")) {
                ahead.push_back((format!("{group}/{name}"), depth + 1));
            }
        }
    }
    partitions.sort_by(|a, b| a.group.cmp(&b.group));
    partitions
}

fn is_control_file(name: &str) -> bool {
    let controller = name.split_once('.').map(|(controller, _)| controller);
    matches!(
        controller,
        Some(
            "cgroup"
                | "cpu"
                | "cpuset"
                | "memory"
                | "io"
                | "irq"
                | "pids"
                | "hugetlb"
                | "rdma"
                | "misc"
                | "dmem"
        )
    )
}

fn partition(root: &Root, directory: &str, group: &str) -> Option<CpusetPartition> {
    let state = root.read(&format!("{directory}/cpuset.cpus.partition")).into_known()?;
    (state != "member").then(|| CpusetPartition {
        group: if group.is_empty() { "/".into() } else { group.to_owned() },
        state,
        cpus: root.read_cpu_list(&format!("{directory}/cpuset.cpus.effective")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestTree;

    fn group(tree: TestTree, path: &str, partition: &str) -> TestTree {
        tree.file(&format!("{MOUNT}{path}/cgroup.procs"), "")
            .file(&format!("{MOUNT}{path}/cpuset.cpus.partition"), partition)
            .file(&format!("{MOUNT}{path}/cpuset.cpus.effective"), "4-7\n")
    }

    #[test]
    fn versions_are_distinguished() {
        let of = |path: &str| version(&TestTree::new().file(path, "").root());
        assert_eq!(of("/sys/fs/cgroup/cgroup.controllers"), Reading::Known(2));
        assert_eq!(of("/sys/fs/cgroup/unified/cgroup.controllers"), Reading::Known(0));
        assert_eq!(of("/sys/fs/cgroup/cpuset/tasks"), Reading::Known(1));
        assert!(version(&TestTree::new().dir("/sys/fs/cgroup").root()).is_absent());
        assert!(version(&TestTree::new().root()).is_absent());
    }

    #[test]
    fn partitions_are_found_at_any_level_in_reach() {
        let tree = TestTree::new().file("/sys/fs/cgroup/cgroup.controllers", "cpuset");
        let tree = group(group(tree, "/trading.slice", "root\n"), "/trading.slice/strategy", "isolated\n");
        let tree = group(group(tree, "/user.slice", "member\n"), "/a/b/c/d/e", "isolated\n");
        let tree = ["/a", "/a/b", "/a/b/c", "/a/b/c/d"]
            .iter()
            .fold(tree, |tree, path| group(tree, path, "member\n"));
        let tree = group(tree, "/bad", "isolated invalid (Cpu list in cpuset.cpus not exclusive)\n");
        let found = cpuset_partitions(&tree.root());
        let shown: Vec<String> =
            found.iter().map(|p| format!("{} {} {}", p.group, p.state, p.cpus)).collect();
        let expected = [
            "/bad isolated invalid (Cpu list in cpuset.cpus not exclusive) 4-7",
            "/trading.slice root 4-7",
            "/trading.slice/strategy isolated 4-7",
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn the_walk_is_bounded() {
        let tree = (0..GROUPS_MAX + 50).fold(TestTree::new(), |tree, number| {
            tree.file(&format!("{UNIFIED}/g{number}/cgroup.procs"), "")
                .file(&format!("{UNIFIED}/g{number}/cpuset.cpus.partition"), "root")
        });
        assert_eq!(cpuset_partitions(&tree.root()).len(), GROUPS_MAX - 1);
    }
}
