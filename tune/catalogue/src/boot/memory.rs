//! Huge pages.

use super::{BOOT, GUIDE};
use lowlat_host::{Reading, cmdline::CommandLine};
use lowlat_settings::{Context, Impact, Judgement, Setting, Want, change, compare, judge};

const GUIDE_PAGE_BYTES: u64 = 2 << 20;
const HUGETLB_DOC: &str = "kernel Documentation/admin-guide/mm/hugetlbpage.rst";

pub(crate) const SETTINGS: &[Setting] = &[
    Setting {
        id: "boot.hugepagesz",
        change: change::boot::huge_pages,
        name: "hugepagesz=",
        reason: "Names the page size that the next hugepages= reserves. Large pages avoid misses of the \
                 translation cache. For how many a host needs, see the memory rows.",
        effective: "/sys/kernel/mm/hugepages has a directory for the size.",
        guide: Want::Value("2M"),
        hazard: "2MB works because the kernel stops reading at the M. The documented spelling is 2M, and \
                 tools that compare text do not recognise 2MB.",
        sources: &[GUIDE, HUGETLB_DOC],
        judge: hugepagesz,
        ..BOOT
    },
    Setting {
        id: "boot.hugepages",
        change: change::boot::huge_pages,
        name: "hugepages=",
        reason: "Reserves huge pages before memory is fragmented.",
        cost: "The memory is unavailable for everything else: 6,000 pages of 2 MiB are 11.7 GiB.",
        effective: "The pool in /sys/kernel/mm/hugepages has that many pages.",
        guide: Want::Value("6000"),
        hazard: "The kernel spreads the pages over the NUMA nodes without regard to need. \
                 hugepages=0:3000,1:3000 sets the count for each node. The order of hugepagesz=, hugepages= \
                 and default_hugepagesz= matters.",
        sources: &[GUIDE, HUGETLB_DOC],
        judge: hugepages,
        ..BOOT
    },
    Setting {
        id: "boot.default_hugepagesz",
        name: "default_hugepagesz=",
        reason: "The page size for programs that do not name one.",
        effective: "Hugepagesize in /proc/meminfo shows the size.",
        guide: Want::Value("2M"),
        hazard: "2 MiB is the default on x86.",
        sources: &[GUIDE, HUGETLB_DOC],
        judge: default_hugepagesz,
        ..BOOT
    },
    Setting {
        id: "boot.transparent_hugepage",
        name: "transparent_hugepage=",
        reason: "Transparent huge pages are assembled by a kernel thread and at page faults. A fault on the \
                 hot path clears 2 MiB instead of 4 KiB, and merging unmaps pages of running processes.",
        cost: "Processes that do not ask for huge pages use more of the translation cache.",
        impact: Impact::Low,
        effective: "/sys/kernel/mm/transparent_hugepage/enabled shows [never].",
        both: Want::Value("never"),
        sources: &[GUIDE, "kernel Documentation/admin-guide/mm/transhuge.rst"],
        judge: transparent_hugepage,
        ..BOOT
    },
];

/// The command line may name several sizes, each before its own count.
fn hugepagesz(context: &Context<'_>, _: &Setting) -> Judgement {
    judge::on_line(context, |line| {
        let sizes: Vec<&str> = line.all("hugepagesz").map(Option::unwrap_or_default).collect();
        let spelled = sizes.iter().map(|size| format!("hugepagesz={size}")).collect::<Vec<_>>().join(" ");
        match sizes.iter().any(|size| compare::size_bytes(size) == Some(GUIDE_PAGE_BYTES)) {
            true => Judgement::good(spelled),
            false if sizes.is_empty() => Judgement::wrong("not on the command line", ""),
            false => Judgement::wrong(spelled, ""),
        }
    })
}

/// Pages of one size that the command line reserves: the count that follows the size, over all nodes.
fn reserved_on_line(line: &CommandLine, default_bytes: Option<u64>, wanted_bytes: u64) -> Option<u64> {
    let mut size_bytes = default_bytes;
    let mut reserved = None;
    for (name, value) in line.tokens() {
        let value = value.as_deref().unwrap_or_default();
        match name.as_str() {
            "hugepagesz" => size_bytes = compare::size_bytes(value),
            "hugepages" if size_bytes == Some(wanted_bytes) => reserved = count_of_pages(value),
            _ => {}
        }
    }
    reserved
}

/// `6000`, or a count for each node: `0:3000,1:3000`.
fn count_of_pages(value: &str) -> Option<u64> {
    value.split(',').try_fold(0u64, |sum, part| {
        let count = part.rsplit(':').next()?;
        sum.checked_add(count.trim().parse().ok()?)
    })
}

fn hugepages(context: &Context<'_>, setting: &Setting) -> Judgement {
    let Some(line) = judge::command_line(context.host) else { return judge::no_command_line(context.host) };
    let Want::Value(wanted) = setting.want(context.profile) else {
        return Judgement::not_applicable("no count is wanted");
    };
    let wanted: u64 = wanted.parse().unwrap_or_default();
    let default_bytes = context.host.memory.huge_page_default_bytes.known().copied();
    let judgement = match reserved_on_line(line, default_bytes, GUIDE_PAGE_BYTES) {
        None if line.has("hugepages") => Judgement::wrong(
            format!("hugepages={}", line.last("hugepages").unwrap_or_default()),
            "of another size",
        ),
        None => Judgement::wrong("not on the command line", ""),
        Some(count) if count != wanted => Judgement::wrong(format!("hugepages={count}"), ""),
        Some(count) => match pool_of(context, GUIDE_PAGE_BYTES) {
            Some(pool) if pool < wanted => Judgement::not_in_force(
                format!("hugepages={count}, but the pool has {pool}"),
                "the kernel found too little contiguous free memory, or the pool was changed later",
            ),
            Some(pool) => Judgement::good(format!("hugepages={count}, the pool has {pool}")),
            None => Judgement::good(format!("hugepages={count}")),
        },
    };
    judgement.at("/proc/cmdline")
}

/// Pages of one size over all nodes, or of the host's pool if nodes are not readable.
fn pool_of(context: &Context<'_>, size_bytes: u64) -> Option<u64> {
    let pools: Vec<_> =
        context.host.memory.huge_pages.iter().filter(|pool| pool.size_bytes == size_bytes).collect();
    let has_nodes = pools.iter().any(|pool| pool.node.is_some());
    let counted: Vec<_> = pools.iter().filter(|pool| pool.node.is_some() == has_nodes).collect();
    if counted.is_empty() {
        return None;
    }
    counted.iter().try_fold(0u64, |sum, pool| sum.checked_add(*pool.total.known()?))
}

fn default_hugepagesz(context: &Context<'_>, setting: &Setting) -> Judgement {
    let in_force = match &context.host.memory.huge_page_default_bytes {
        Reading::Known(bytes) if *bytes == GUIDE_PAGE_BYTES => {
            judge::ParameterInForce::Yes(format!("the default huge page has {bytes} bytes"))
        }
        Reading::Known(bytes) => judge::ParameterInForce::no(
            format!("the default huge page has {bytes} bytes"),
            "the kernel ignored the size",
        ),
        _ => judge::ParameterInForce::Unseen,
    };
    judge::boot_token_in_force(context, setting, in_force)
}

fn transparent_hugepage(context: &Context<'_>, setting: &Setting) -> Judgement {
    let path = "/sys/kernel/mm/transparent_hugepage/enabled";
    let in_force = match &context.host.memory.thp_enabled {
        Reading::Known(word) if word == "never" => judge::ParameterInForce::Yes(format!("{path} is never")),
        Reading::Known(word) => {
            let because = "transparent huge pages were switched on again after boot";
            judge::ParameterInForce::no(format!("{path} is {word}"), because)
        }
        Reading::Absent if context.host.kernel.version.is_known() => {
            return Judgement::not_applicable(format!("{path} does not exist on this host")).at(path);
        }
        _ => judge::ParameterInForce::Unseen,
    };
    judge::boot_token_in_force(context, setting, in_force)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_follow_the_size_before_them() {
        let of = |line: &str| reserved_on_line(&CommandLine::parse(line), Some(2 << 20), 2 << 20);
        assert_eq!(of("hugepagesz=2MB hugepages=6000"), Some(6000));
        assert_eq!(of("hugepages=7 hugepagesz=1G hugepages=4"), Some(7));
        assert_eq!(of("hugepagesz=1G hugepages=4"), None);
        assert_eq!(of("hugepagesz=2M hugepages=0:3000,1:3000"), Some(6000));
        assert_eq!(of("hugepagesz=2M hugepages=lots"), None);
        assert_eq!(of("hugepages=0:18446744073709551615,1:1"), None);
    }
}
