//! Huge pages and transparent huge pages.

use super::files::value;
use super::{Moment, Proposal, Target, WhyLeftOut};
use crate::{Context, Setting};
use lowlat_host::{Profile, Reading};

const THP: &str = "/sys/kernel/mm/transparent_hugepage";
const TWO_MIB: u64 = 2 << 20;
/// Number of pages that guide 57037 reserves.
const GUIDE_PAGES: u64 = 6_000;

/// The row's file: transparent huge pages (`enabled`, `defrag`), or samepage merging.
pub fn thp(context: &Context<'_>, setting: &Setting) -> Proposal {
    let memory = &context.host.memory;
    let (path, before) = match setting.id {
        "memory.thp_enabled" => (format!("{THP}/enabled"), memory.thp_enabled.clone()),
        "memory.thp_defrag" => (format!("{THP}/defrag"), memory.thp_defrag.clone()),
        _ => ("/sys/kernel/mm/ksm/run".to_owned(), memory.ksm_run.clone().map(|run| run.to_string())),
    };
    match value(context, setting) {
        Some(value) => Proposal::default().step(Target::File { path }, before, value),
        None => Proposal::default(),
    }
}

/// The guide's pages, spread over the nodes with memory. The number that a trading host needs depends on its programs.
pub fn huge_pages(context: &Context<'_>, _: &Setting) -> Proposal {
    if context.profile != Profile::Guide57037 {
        return Proposal::not(
            WhyLeftOut::YourChoice,
            "the number and size of pages depend on your programs; reserve them per node with hugepages=0:N,1:N",
        );
    }
    if let Some(refusal) = too_many(context) {
        return refusal;
    }
    let pools = || context.host.memory.huge_pages.iter().filter(|pool| pool.size_bytes == TWO_MIB);
    let has_nodes = pools().any(|pool| pool.node.is_some());
    let pools: Vec<_> = pools().filter(|pool| pool.node.is_some() == has_nodes).collect();
    let count = u64::try_from(pools.len()).unwrap_or(0);
    if count == 0 {
        return Proposal::not(WhyLeftOut::Kernel, "this kernel has no pool of 2 MiB pages");
    }
    let mut proposal = Proposal::default();
    for (at, pool) in (0u64..).zip(pools) {
        let pages = GUIDE_PAGES / count + u64::from(at < GUIDE_PAGES % count);
        if pool.total != Reading::Known(pages) {
            let target = Target::HugePages { node: pool.node, size_bytes: TWO_MIB };
            let before = pool.total.clone().map(|total| total.to_string());
            proposal = proposal.step_at(Moment::Now, target, before, pages.to_string());
        }
    }
    proposal
}

/// Does not reserve the guide's pages if they need more than half of the memory: such a host may not boot.
pub fn too_many(context: &Context<'_>) -> Option<Proposal> {
    let Reading::Known(total_bytes) = context.host.memory.total_bytes else {
        let text = format!(
            "{GUIDE_PAGES} pages of 2 MiB may need more than half of the memory, whose size is unknown here"
        );
        return Some(Proposal::not(WhyLeftOut::Hardware, text));
    };
    (GUIDE_PAGES * TWO_MIB > total_bytes / 2).then(|| {
        let text = format!(
            "{GUIDE_PAGES} pages of 2 MiB need more than half of this host's {} MiB of memory, and it might not \
             boot; reserve fewer",
            total_bytes >> 20
        );
        Proposal::not(WhyLeftOut::Hardware, text)
    })
}
