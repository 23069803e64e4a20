use super::{Fixture, GIB, Reading, Verdict, check, cpus, good_host, known};
use Verdict::{Good, NotApplicable, Unknown, Wrong};
use lowlat_host::{snapshot::Swap, topology::Node};

const KHUGEPAGED: &str = "/sys/kernel/mm/transparent_hugepage/khugepaged/defrag";

#[test]
fn transparent_huge_pages() {
    check(
        "memory.thp_enabled",
        &[
            ("madvise", |_| {}, Good),
            ("madvise, guide", Fixture::guide, Wrong),
            ("always", |f| f.host.memory.thp_enabled = known("always"), Wrong),
            ("denied", |f| f.host.memory.thp_enabled = Reading::Denied, Unknown),
            ("absent", |f| f.host.memory.thp_enabled = Reading::Absent, NotApplicable),
        ],
    );
    check(
        "memory.thp_defrag",
        &[
            ("madvise", |_| {}, Good),
            ("always", |f| f.host.memory.thp_defrag = known("always"), Wrong),
            ("junk", |f| f.host.memory.thp_defrag = Reading::unparsable("/x", "\0", "a choice"), Unknown),
            ("no huge pages at all", |f| f.host.memory.thp_enabled = known("never"), NotApplicable),
        ],
    );
    check(
        "memory.thp_khugepaged_defrag",
        &[
            ("0", |_| {}, Good),
            ("1", |f| f.file(KHUGEPAGED, known("1")), Wrong),
            ("denied", |f| f.file(KHUGEPAGED, Reading::Denied), Unknown),
            ("no huge pages at all", |f| f.host.memory.thp_enabled = known("never"), NotApplicable),
        ],
    );
}

fn pages(f: &mut Fixture, per_node: [u64; 2]) {
    for (pool, total) in f.host.memory.huge_pages.iter_mut().zip(per_node) {
        pool.total = known(total);
    }
}

#[test]
fn reserved_huge_pages() {
    check(
        "memory.huge_pages",
        &[
            ("6000", |_| {}, Good),
            ("6000, guide", Fixture::guide, Good),
            ("none", |f| pages(f, [0, 0]), Wrong),
            ("few", |f| pages(f, [8, 8]), Good),
            (
                "few, guide",
                |f| {
                    f.guide();
                    pages(f, [8, 8]);
                },
                Wrong,
            ),
            (
                "denied",
                |f| {
                    pages(f, [0, 0]);
                    f.host.memory.huge_pages[1].total = Reading::Denied;
                },
                Unknown,
            ),
            ("no pools", |f| f.host.memory.huge_pages.clear(), NotApplicable),
        ],
    );
    assert_eq!(good_host().finding("memory.huge_pages").observed, "6000 x 2 MiB");
    check(
        "memory.huge_pages_spread",
        &[
            ("even", |_| {}, Good),
            ("all on one node", |f| pages(f, [6_000, 0]), Wrong),
            ("none", |f| pages(f, [0, 0]), NotApplicable),
            ("one node", |f| f.host.topology.nodes.truncate(1), NotApplicable),
            ("none isolated", Fixture::no_isolated, NotApplicable),
            (
                "pools of the whole host",
                |f| f.host.memory.huge_pages.iter_mut().for_each(|pool| pool.node = None),
                Unknown,
            ),
        ],
    );
}

#[test]
fn samepage_merging_and_swap() {
    check(
        "memory.ksm",
        &[
            ("stopped", |_| {}, Good),
            ("unmerged", |f| f.host.memory.ksm_run = known(2u32), Good),
            ("running", |f| f.host.memory.ksm_run = known(1u32), Wrong),
            ("denied", |f| f.host.memory.ksm_run = Reading::Denied, Unknown),
            ("absent", |f| f.host.memory.ksm_run = Reading::Absent, NotApplicable),
        ],
    );
    let swap = |used_bytes| Swap { path: "/dev/dm-1".into(), size_bytes: 8 * GIB, used_bytes };
    for (used, verdict) in [(0, Good), (1, Wrong)] {
        let mut fixture = good_host();
        fixture.host.memory.swaps = Reading::Known(vec![swap(used)]);
        assert_eq!(fixture.finding("memory.swap_used").verdict, verdict, "{used}");
    }
    check(
        "memory.swap_used",
        &[
            ("no swap", |_| {}, Good),
            ("denied", |f| f.host.memory.swaps = Reading::Denied, Unknown),
            ("no file", |f| f.host.memory.swaps = Reading::Absent, NotApplicable),
        ],
    );
}

fn module(f: &mut Fixture, change: impl FnOnce(&mut lowlat_host::snapshot::MemoryModule)) {
    if let Reading::Known(modules) = &mut f.host.memory.modules {
        change(&mut modules[3]);
    }
}

#[test]
fn memory_modules_are_alike_and_at_full_speed() {
    check(
        "memory.module_speed",
        &[
            ("in step with the fabric", |_| {}, Good),
            ("one slow module", |f| module(f, |m| m.configured_mts = Some(2_666)), Wrong),
            ("2933 of 3200 on a later processor", |f| f.host.cpu.family = known(25u32), Wrong),
            ("denied", |f| f.host.memory.modules = Reading::Denied, Unknown),
            ("no tables", |f| f.host.memory.modules = Reading::Absent, Unknown),
            ("no modules", |f| f.host.memory.modules = Reading::Known(vec![]), Unknown),
        ],
    );
    check(
        "memory.module_uniform",
        &[
            ("alike", |_| {}, Good),
            ("one larger", |f| module(f, |m| m.size_bytes = 64 * GIB), Wrong),
            ("one of fewer ranks", |f| module(f, |m| m.ranks = Some(1)), Wrong),
            ("denied", |f| f.host.memory.modules = Reading::Denied, Unknown),
        ],
    );
    assert_eq!(good_host().finding("memory.module_uniform").observed, "16 x 32 GiB DDR4, 2 ranks, 3200 MT/s");
}

#[test]
fn nodes_hold_the_same_memory() {
    check(
        "memory.population_balance",
        &[
            ("nearly the same", |_| {}, Good),
            ("half", |f| f.host.topology.nodes[1].memory_bytes = known(128 * GIB), Wrong),
            ("none", |f| f.host.topology.nodes[1].memory_bytes = known(0u64), Wrong),
            ("denied", |f| f.host.topology.nodes[1].memory_bytes = Reading::Denied, Unknown),
            ("one node", |f| f.host.topology.nodes.truncate(1), NotApplicable),
        ],
    );
}

#[test]
fn pages_stay_in_local_memory() {
    const DEMOTION: &str = "/sys/kernel/mm/numa/demotion_enabled";
    fn far(f: &mut Fixture, demotion: Reading<String>) {
        let memory_bytes = known(256 * GIB);
        f.host.topology.nodes.push(Node { id: 2, cpus: cpus(""), memory_bytes, ..Node::default() });
        f.file(DEMOTION, demotion);
    }
    check(
        "memory.far_node_demotion",
        &[
            ("no far node", |_| {}, NotApplicable),
            ("off", |f| far(f, known("false")), Good),
            ("on", |f| far(f, known("true")), Wrong),
            ("denied", |f| far(f, Reading::Denied), Unknown),
        ],
    );
}
