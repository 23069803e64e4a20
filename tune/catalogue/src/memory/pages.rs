//! Huge pages, transparent huge pages, samepage merging, swap.

use lowlat_host::{Profile, Reading, snapshot::HugePages};
use lowlat_settings::{
    Context, Impact, Judgement, Layer, Needs, Risk, Setting, Want,
    change::{self, WhyLeftOut},
    judge::{
        each::{One, judge_each, list},
        missing, satisfies,
    },
};

const THP: &str = "kernel Documentation/admin-guide/mm/transhuge.rst";
const HUGETLB: &str = "kernel Documentation/admin-guide/mm/hugetlbpage.rst";
const TWO_MIB: u64 = 2 << 20;
/// Without it, no pools does not mean that the kernel has none.
const MM: &str = "/sys/kernel/mm";
const NR_HUGEPAGES: &str = "/sys/devices/system/node/node*/hugepages/hugepages-*/nr_hugepages";
/// The guide's reservation: hugepagesz=2MB hugepages=6000.
const GUIDE_PAGES: u64 = 6_000;

const ROW: Setting = Setting { layer: Layer::Memory, ..Setting::BLANK };
const THP_ROW: Setting = Setting { needs: Needs::ANY.with_config(&["TRANSPARENT_HUGEPAGE"]), ..ROW };

pub(crate) const SETTINGS: &[Setting] = &[
    Setting {
        id: "memory.thp_enabled",
        change: change::memory::thp,
        name: "transparent_hugepage/enabled",
        reason: "The kernel backs a program's memory with huge pages automatically. A page fault may then \
                 clear 2 MiB at once. khugepaged moves pages of a running program and interrupts its CPUs to \
                 flush their TLBs.",
        cost: "Programs that neither request huge pages nor map them get small ones and miss the TLB more \
               often.",
        effective: "AnonHugePages in /proc/PID/smaps_rollup; thp_fault_alloc in /proc/vmstat does not \
                    increase.",
        trading: Want::OneOf(&["never", "madvise"]),
        guide: Want::Value("never"),
        hazard: "never also applies to programs that request huge pages with madvise. Those that map hugetlb \
                 pages are not affected.",
        judge: |context, setting| value(context, setting, &context.host.memory.thp_enabled, THP_ENABLED),
        sources: &[THP, "guide 57037 section 4.3.2.1.1: transparent_hugepage=never"],
        ..THP_ROW
    },
    Setting {
        id: "memory.thp_defrag",
        acts_when: "memory is fragmented",
        change: change::memory::thp,
        name: "transparent_hugepage/defrag",
        reason: "With always, a page fault that finds no free huge page blocks the thread until memory is \
                 reclaimed and compacted.",
        cost: "Fewer huge pages on a host whose memory is fragmented.",
        effective: "compact_stall in /proc/vmstat does not increase.",
        trading: Want::OneOf(&["never", "defer", "defer+madvise", "madvise"]),
        judge: thp_defrag,
        sources: &[THP],
        ..THP_ROW
    },
    Setting {
        id: "memory.thp_khugepaged_defrag",
        acts_when: "memory is fragmented",
        name: "transparent_hugepage/khugepaged/defrag",
        reason: "khugepaged compacts memory to collapse small pages of running programs into huge ones. It \
                 locks their memory map meanwhile, and flushes TLBs on every CPU that runs them.",
        cost: "Memory that was faulted in as small pages stays so.",
        effective: "thp_collapse_alloc in /proc/vmstat does not increase.",
        reads: &["/sys/kernel/mm/transparent_hugepage/khugepaged/defrag"],
        trading: Want::Value("0"),
        judge: khugepaged_defrag,
        sources: &[THP],
        ..THP_ROW
    },
    Setting {
        id: "memory.huge_pages",
        change: change::memory::huge_pages,
        name: "nr_hugepages",
        reason: "A program that maps reserved huge pages never waits for them and needs few TLB entries. \
                 Reserve them at boot, before memory is fragmented.",
        cost: "Reserved pages cannot be used for anything else or swapped out.",
        risk: Risk::Availability,
        impact: Impact::Low,
        needs_reboot: true,
        needs: Needs::ANY.with_config(&["HUGETLBFS"]),
        effective: "HugePages_Total in /proc/meminfo; HugePages_Free falls when the program starts.",
        trading: Want::State("some reserved for programs that map them"),
        guide: Want::State("6000 pages of 2 MiB"),
        hazard: "6000 pages of 2 MiB take 11.7 GiB, and the kernel spreads them over the nodes without \
                 regard to need. Set them per node (hugepages=0:N,1:N, Linux 5.16). The guide writes 2MB; \
                 the kernel's documents write 2M.",
        judge: huge_pages,
        sources: &[HUGETLB, "guide 57037 section 4.3.2.1.1: hugepagesz=2MB hugepages=6000"],
        ..ROW
    },
    Setting {
        id: "memory.huge_pages_spread",
        not_planned: "lowlat cannot know how many pages each node needs; hugepages=0:N,1:N reserves them per node",
        name: "node*/hugepages/nr_hugepages",
        reason: "A thread takes huge pages from its own node. If the node has none, its threads get remote \
                 memory, or their mapping fails.",
        effective: "numastat -m: HugePages_Total of every node that runs trading threads.",
        both: Want::State("some on every node with isolated CPUs"),
        judge: huge_pages_spread,
        sources: &[HUGETLB],
        ..ROW
    },
    Setting {
        id: "memory.ksm",
        change: change::memory::thp,
        name: "ksm/run",
        reason: "Kernel samepage merging scans memory in the background and merges identical pages. A write \
                 to a merged page faults and copies it.",
        cost: "Identical pages of virtual machines take their full size.",
        needs: Needs::ANY.with_config(&["KSM"]),
        effective: "full_scans in /sys/kernel/mm/ksm does not increase.",
        both: Want::OneOf(&["0", "2"]),
        hazard: "The guide stops the ksm service, which only starts the merging. Pages that are already \
                 merged stay merged until 2 is written.",
        judge: ksm,
        sources: &[
            "kernel Documentation/admin-guide/mm/ksm.rst",
            "guide 57037 section 4.3.3: services to stop",
        ],
        ..ROW
    },
    Setting {
        id: "memory.swap_used",
        not_planned: "swapoff -a brings the pages back, which takes a while: run it while nothing trades",
        why_not: WhyLeftOut::StateOfTheMoment,
        name: "/proc/swaps",
        reason: "A page that was swapped out must be read from a disk, and the thread that touches it waits \
                 that long. Lock the memory of trading processes (mlockall), and disable swap on the host.",
        cost: "Without swap the kernel kills a process when memory runs out.",
        risk: Risk::Availability,
        impact: Impact::High,
        effective: "pswpin and pswpout in /proc/vmstat do not increase.",
        both: Want::State("no swap in use"),
        hazard: "The guide sets vm.swappiness=0 and leaves swap on. Pages can still be swapped when memory \
                 runs short.",
        judge: swap_used,
        sources: &[
            "kernel Documentation/admin-guide/sysctl/vm.rst: swappiness",
            "mlockall(2)",
            "guide 57037 section 4.2.1",
        ],
        ..ROW
    },
];

const THP_ENABLED: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
const THP_DEFRAG: &str = "/sys/kernel/mm/transparent_hugepage/defrag";

/// Judges a value that a reader has already extracted from its file.
fn value(context: &Context<'_>, setting: &Setting, reading: &Reading<String>, path: &str) -> Judgement {
    match reading {
        Reading::Known(value) if satisfies(context, &setting.want(context.profile), value) => {
            Judgement::good(value.as_str())
        }
        Reading::Known(value) => Judgement::wrong(value.as_str(), ""),
        Reading::Absent => Judgement::not_applicable(format!("{path} does not exist on this host")),
        other => missing(other, path),
    }
    .at(path)
}

fn without_thp(context: &Context<'_>) -> Option<Judgement> {
    (context.host.memory.thp_enabled.text() == "never")
        .then(|| Judgement::not_applicable("transparent huge pages are off").at(THP_ENABLED))
}

fn thp_defrag(context: &Context<'_>, setting: &Setting) -> Judgement {
    without_thp(context)
        .unwrap_or_else(|| value(context, setting, &context.host.memory.thp_defrag, THP_DEFRAG))
}

fn khugepaged_defrag(context: &Context<'_>, setting: &Setting) -> Judgement {
    let enabled = &context.host.memory.thp_enabled;
    let judgement = lowlat_settings::judge::files(context, setting);
    match without_thp(context) {
        Some(judgement) => judgement,
        // It does not matter where transparent huge pages are off.
        None if judgement.verdict.is_fault() && !enabled.is_known() => {
            missing(enabled, "/sys/kernel/mm/transparent_hugepage/enabled")
        }
        None => judgement,
    }
}

fn ksm(context: &Context<'_>, setting: &Setting) -> Judgement {
    let run = context.host.memory.ksm_run.as_ref().map(u32::to_string);
    value(context, setting, &run, "/sys/kernel/mm/ksm/run")
}

/// "6000 x 2 MiB".
fn pages_in_words(pages: u64, size_bytes: u64) -> String {
    match size_bytes {
        size if size >= 1 << 30 && size % (1 << 30) == 0 => format!("{pages} x {} GiB", size >> 30),
        size if size >= 1 << 20 && size % (1 << 20) == 0 => format!("{pages} x {} MiB", size >> 20),
        size => format!("{pages} x {} KiB", size >> 10),
    }
}

/// Page sizes with the number of reserved pages over all pools.
fn totals(pools: &[HugePages]) -> Vec<(u64, u64)> {
    let mut totals: Vec<(u64, u64)> = Vec::new();
    for pool in pools {
        let pages = pool.total.known().copied().unwrap_or(0);
        match totals.iter_mut().find(|(size, _)| *size == pool.size_bytes) {
            Some((_, sum)) => *sum = sum.saturating_add(pages),
            None => totals.push((pool.size_bytes, pages)),
        }
    }
    totals
}

/// The sizes of which pages are reserved, as text.
fn reserved(totals: &[(u64, u64)]) -> Vec<String> {
    let some = totals.iter().filter(|(_, pages)| *pages > 0);
    some.map(|(size, pages)| pages_in_words(*pages, *size)).collect()
}

/// The first pool that could not be read.
fn unread(pools: &[HugePages]) -> Option<&Reading<u64>> {
    pools.iter().map(|pool| &pool.total).find(|total| !total.is_known())
}

fn huge_pages(context: &Context<'_>, _: &Setting) -> Judgement {
    let pools = &context.host.memory.huge_pages;
    let listed = context.host.listed(MM, ());
    if pools.is_empty() && !listed.is_known() {
        return missing(&listed, MM);
    }
    if pools.is_empty() {
        return Judgement::not_applicable("this kernel has no pools of huge pages");
    }
    let all = totals(pools);
    let reserved = reserved(&all);
    let is_enough = match context.profile {
        Profile::Guide57037 => all.iter().any(|(size, pages)| *size == TWO_MIB && *pages >= GUIDE_PAGES),
        Profile::Trading => !reserved.is_empty(),
    };
    if is_enough {
        let bound = if unread(pools).is_some() { "at least " } else { "" };
        return Judgement::good(format!("{bound}{}", list(&reserved))).at(NR_HUGEPAGES);
    }
    if let Some(total) = unread(pools) {
        return missing(total, NR_HUGEPAGES);
    }
    if reserved.is_empty() {
        return Judgement::wrong("none reserved", "").at(NR_HUGEPAGES);
    }
    Judgement::wrong(list(&reserved), "fewer than the guide reserves").at(NR_HUGEPAGES)
}

fn huge_pages_spread(context: &Context<'_>, _: &Setting) -> Judgement {
    let (pools, topology) = (&context.host.memory.huge_pages, &context.host.topology);
    let Some(isolated) = lowlat_settings::judge::each::isolated(context) else {
        return lowlat_settings::judge::each::none_isolated();
    };
    if totals(pools).iter().all(|(_, pages)| *pages == 0) {
        let listed = context.host.listed(MM, ());
        return match unread(pools) {
            None if pools.is_empty() && !listed.is_known() => missing(&listed, MM),
            None => Judgement::not_applicable("no huge pages are reserved"),
            Some(reading) => missing(reading, NR_HUGEPAGES),
        };
    }
    let nodes: Vec<_> = topology.nodes.iter().filter(|node| !node.cpus.is_disjoint(isolated)).collect();
    if topology.nodes.len() < 2 {
        return Judgement::not_applicable("one NUMA node: all huge pages are local");
    }
    let judge = |node: &&lowlat_host::topology::Node| {
        let own: Vec<HugePages> = pools.iter().filter(|pool| pool.node == Some(node.id)).cloned().collect();
        let reserved = reserved(&totals(&own));
        let one = if !reserved.is_empty() {
            One::Good(reserved.join(", "))
        } else if own.is_empty() || unread(&own).is_some() {
            One::Unknown("the pools of this node are not known".into())
        } else {
            let cpus = format!("{:#}", &node.cpus.intersection(isolated));
            One::Wrong("none".into(), format!("{cpus} would map huge pages of another node"))
        };
        (format!("node {}", node.id), one)
    };
    judge_each(nodes.iter().map(judge), "no node contains isolated CPUs").at(NR_HUGEPAGES)
}

fn swap_used(context: &Context<'_>, _: &Setting) -> Judgement {
    const PATH: &str = "/proc/swaps";
    let swaps = match &context.host.memory.swaps {
        Reading::Known(swaps) => swaps,
        Reading::Absent => return Judgement::not_applicable("this kernel has no swap").at(PATH),
        other => return missing(other, PATH),
    };
    if swaps.is_empty() {
        return Judgement::good("no swap").at(PATH);
    }
    let mib = |bytes: u64| bytes.div_ceil(1 << 20);
    let used: Vec<String> = swaps
        .iter()
        .filter(|swap| swap.used_bytes > 0)
        .map(|swap| format!("{}: {} MiB in use", swap.path, mib(swap.used_bytes)))
        .collect();
    if used.is_empty() {
        let size = swaps.iter().fold(0u64, |sum, swap| sum.saturating_add(swap.size_bytes));
        return Judgement::good(format!("{} MiB, none in use", mib(size))).at(PATH);
    }
    Judgement::wrong(list(&used), "swapoff -a brings the pages back; run it while nothing trades").at(PATH)
}
