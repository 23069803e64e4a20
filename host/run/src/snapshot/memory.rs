//! Reads memory, huge pages and swap.

use super::formats;
use crate::{Root, smbios};
use lowlat_host::{
    Reading,
    snapshot::{HugePages, MemoryFacts, Swap},
};
use std::collections::BTreeSet;

const HUGE_PAGES: &str = "/sys/kernel/mm/hugepages";
const THP: &str = "/sys/kernel/mm/transparent_hugepage";
const MEMINFO: &str = "/proc/meminfo";

pub(super) fn read(root: &Root) -> MemoryFacts {
    let chosen = |name: &str| formats::chosen_word(root, &format!("{THP}/{name}"));
    let described = smbios::memory(root);
    MemoryFacts {
        total_bytes: memory_total(root),
        available_bytes: read_meminfo_bytes(root, MEMINFO, "MemAvailable"),
        huge_pages: read_huge_pages(root),
        huge_page_default_bytes: read_meminfo_bytes(root, MEMINFO, "Hugepagesize"),
        thp_enabled: chosen("enabled"),
        thp_defrag: chosen("defrag"),
        ksm_run: root.read_as("/sys/kernel/mm/ksm/run", "0, 1 or 2"),
        swaps: read_swaps(root),
        ..described
    }
}

/// The memory of the host in bytes (MemTotal).
pub fn memory_total(root: &Root) -> Reading<u64> {
    read_meminfo_bytes(root, MEMINFO, "MemTotal")
}

/// The amount of `key` in /proc/meminfo ("MemTotal:  16 kB") or in a node's file ("Node 0 MemTotal:  16 kB").
pub(super) fn read_meminfo_bytes(root: &Root, path: &str, key: &str) -> Reading<u64> {
    root.read(path).and_then(|text| {
        let amount = text.lines().find_map(|line| {
            let (name, amount) = line.split_once(':')?;
            (name.split_ascii_whitespace().last() == Some(key)).then(|| amount.trim())
        });
        match amount {
            None => Reading::Absent,
            Some(raw) => {
                let (bytes, line) = (formats::meminfo_amount(raw), format!("{key}: {raw}"));
                Reading::understood(bytes, path, &line, "an amount such as 16384 kB")
            }
        }
    })
}

/// Per node if nodes expose their pools, otherwise for the whole host.
fn read_huge_pages(root: &Root) -> Vec<HugePages> {
    root.or_unread("/sys/kernel/mm", root.list("/sys/kernel/mm"));
    if let missing @ (Reading::Denied | Reading::Unparsable(_)) = root.list(HUGE_PAGES) {
        root.or_unread("/sys/kernel/mm", missing);
    }
    let mut pools: Vec<HugePages> = root
        .glob("/sys/devices/system/node/node*/hugepages/hugepages-*kB")
        .iter()
        .filter_map(|folder| {
            let node = folder.split('/').nth(5)?.strip_prefix("node")?.parse().ok()?;
            read_pool(root, folder, Some(node))
        })
        .collect();
    if pools.is_empty() {
        let folders = root.glob(&format!("{HUGE_PAGES}/hugepages-*kB"));
        pools = folders.iter().filter_map(|folder| read_pool(root, folder, None)).collect();
    }
    pools.extend(unread_pools(root, &pools));
    pools.sort_by_key(|pool| (pool.node, pool.size_bytes));
    pools
}

/// The kernel has pools of the same sizes for each node with memory.
fn unread_pools(root: &Root, pools: &[HugePages]) -> Vec<HugePages> {
    const NODES: &str = "/sys/devices/system/node";
    let sizes: BTreeSet<u64> =
        pools.iter().filter(|pool| pool.node.is_some()).map(|pool| pool.size_bytes).collect();
    let mut unread = Vec::new();
    for path in root.glob(&format!("{NODES}/node*/meminfo")).iter().filter(|_| !sizes.is_empty()) {
        let node = path.split('/').nth(5).and_then(|name| name.strip_prefix("node")?.parse().ok());
        let has_memory = read_meminfo_bytes(root, path, "MemTotal").known().is_some_and(|bytes| *bytes > 0);
        if has_memory && pools.iter().all(|pool| pool.node != node) {
            let pool = |size_bytes: &u64| HugePages { node, size_bytes: *size_bytes, ..HugePages::default() };
            unread.extend(sizes.iter().map(pool));
        }
    }
    unread
}

fn read_pool(root: &Root, folder: &str, node: Option<u32>) -> Option<HugePages> {
    let name = folder.rsplit('/').next()?;
    let kilobytes = name.strip_prefix("hugepages-")?.strip_suffix("kB")?.parse::<u64>().ok()?;
    let pages = |file: &str| root.read_as(&format!("{folder}/{file}"), "a number of pages");
    Some(HugePages {
        node,
        size_bytes: kilobytes.checked_mul(1024)?,
        total: pages("nr_hugepages"),
        free: pages("free_hugepages"),
    })
}

/// /proc/swaps: a header, then "path type size used priority" with sizes in kibibytes. A kernel without swap
/// support has no such file.
fn read_swaps(root: &Root) -> Reading<Vec<Swap>> {
    const PATH: &str = "/proc/swaps";
    root.read(PATH).and_then(|text| {
        let mut lines = text.lines();
        if !lines.next().is_some_and(|heading| heading.starts_with("Filename")) {
            return Reading::unparsable(PATH, &text, "a header that starts with Filename");
        }
        let mut swaps = Vec::new();
        for line in lines.filter(|line| !line.trim().is_empty()) {
            match swap(line) {
                Some(swap) => swaps.push(swap),
                None => return Reading::unparsable(PATH, line, "path, type, size, used and priority"),
            }
        }
        Reading::Known(swaps)
    })
}

/// Blanks in the path are octal escapes, so splitting from the left is safe.
fn swap(line: &str) -> Option<Swap> {
    let mut words = line.split_ascii_whitespace();
    let path = words.next()?.replace("\\040", " ");
    let mut bytes = words.skip(1).map_while(|word| word.parse::<u64>().ok()?.checked_mul(1024));
    Some(Swap { path, size_bytes: bytes.next()?, used_bytes: bytes.next()? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestTree;

    #[test]
    fn a_host_with_nodes_and_swap_is_read() {
        let tree = TestTree::new()
            .file(
                MEMINFO,
                "MemTotal:       16384 kB\nMemAvailable:    1024 kB\nHugepagesize:       2048 kB\n",
            )
            .file("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "99\n")
            .file("/sys/devices/system/node/node1/hugepages/hugepages-1048576kB/nr_hugepages", "4\n")
            .file("/sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages", "8\n")
            .file("/sys/devices/system/node/node0/hugepages/hugepages-2048kB/free_hugepages", "7\n")
            .file("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n")
            .file("/sys/kernel/mm/transparent_hugepage/defrag", "always defer\n")
            .file("/sys/kernel/mm/ksm/run", "0\n")
            .file("/proc/swaps", "Filename Type Size Used Priority\n/dev/dm-1 partition 8 4 -2\n");
        let facts = read(&tree.root());
        assert_eq!(facts.total_bytes, Reading::Known(16 << 20));
        assert_eq!(facts.huge_page_default_bytes, Reading::Known(2 << 20));
        let pools: Vec<_> =
            facts.huge_pages.iter().map(|p| (p.node, p.size_bytes, p.total.clone())).collect();
        assert_eq!(pools, [(Some(0), 2 << 20, Reading::Known(8)), (Some(1), 1 << 30, Reading::Known(4))],);
        assert!(facts.huge_pages[1].free.is_absent());
        assert_eq!(facts.thp_enabled.text(), "madvise");
        assert!(matches!(facts.thp_defrag, Reading::Unparsable(_)));
        assert_eq!(facts.ksm_run, Reading::Known(0));
        let swap = Swap { path: "/dev/dm-1".into(), size_bytes: 8192, used_bytes: 4096 };
        assert_eq!(facts.swaps, Reading::Known(vec![swap]));
    }

    #[test]
    fn a_host_without_nodes_shows_the_whole_hosts_pools() {
        let tree = TestTree::new().file("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "99\n");
        let facts = read(&tree.root());
        assert_eq!((facts.huge_pages.len(), facts.huge_pages[0].node), (1, None));
    }

    #[test]
    fn no_swap_is_known_and_a_cut_file_is_not() {
        let swaps = |text: &str| read(&TestTree::new().file("/proc/swaps", text).root()).swaps;
        assert_eq!(swaps("Filename\tType\tSize\n"), Reading::Known(Vec::new()));
        assert!(matches!(swaps(""), Reading::Unparsable(_)));
        assert!(matches!(swaps("Filename\n/dev/sda partit"), Reading::Unparsable(_)));
        assert!(read(&TestTree::new().root()).swaps.is_absent());
    }
}
