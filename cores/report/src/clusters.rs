//! Clusters as text: what the kernel does with them, what filling one costs, and the placement to use.

use lowlat_cache::clusters::{
    ClustersMeasurement, ClustersRecord, FillFigures, Filling, KernelView, Spreading, Verdict, kernel_view,
};
use lowlat_host::{
    CpuSet, HostSnapshot, Reading,
    snapshot::{NamedDomain, SchedDomain},
};
use lowlat_text::{
    columns::Table,
    page::{self, Section, columns_table, micro, section, tile},
    text::{YELLOW, add_detail, add_field, add_heading, add_result, add_sentences, add_wrapped, usable},
    units::{clean, duration_fine, plural, size},
    view::{View, ViewPage, verdict},
};
use maud::html;
use std::collections::BTreeMap;

/// Width of the labels of facts.
const LABEL_CHARS: usize = 22;
/// Most groups that a list names.
const GROUPS_MAX: usize = 4;

/// Formats the facts, the judgement, the comparison and the placement.
pub fn clusters_text(record: &ClustersRecord, host: &HostSnapshot, width: usize) -> String {
    let width = usable(width);
    let view = kernel_view(host);
    let mut out = String::new();
    add_result(&mut out, judged(&view), width);
    add_detail(&mut out, &sentences(&view), width);
    out.push('\n');
    for (label, value) in facts(host) {
        add_field(&mut out, label, &clean(&value), LABEL_CHARS, width);
    }
    out.push('\n');
    add_result(&mut out, &compared(record), width);
    add_detail(&mut out, &set_up(record), width);
    let figures = record.figures();
    if !figures.is_empty() {
        out.push('\n');
        out.push_str(&table(record, &figures).text(width));
    }
    add_sentences(&mut out, (YELLOW, "Caveats"), &doubts(record), width);
    let placement = placement(record, host);
    if !placement.is_empty() {
        add_heading(&mut out, "Placement to use");
    }
    for (why, command) in placement {
        add_wrapped(&mut out, why, 2, width);
        add_wrapped(&mut out, &command, 6, width);
    }
    out
}

/// The judgement of the kernel.
pub(super) fn judged(view: &KernelView) -> &'static str {
    match view.spreading {
        Spreading::NoClusters => "This host has no clusters of cores",
        Spreading::Yes => "This kernel spreads load over clusters",
        Spreading::No => "This kernel does not spread load over clusters",
        Spreading::Unknown => "Whether load is spread over clusters is unknown",
    }
}

/// The reason, and what else moves threads.
pub(super) fn sentences(view: &KernelView) -> String {
    std::iter::once(&view.why).chain(&view.notes).cloned().collect::<Vec<_>>().join(" ")
}

/// Returns the facts read from the host, with labels.
pub(super) fn facts(host: &HostSnapshot) -> Vec<(&'static str, String)> {
    let topology = &host.topology;
    let scheduler = &host.scheduler;
    let clusters: Vec<&CpuSet> = topology.clusters.iter().map(|cluster| &cluster.cpus).collect();
    let second: Vec<&CpuSet> = topology.l2s().map(|cache| &cache.cpus).collect();
    let llcs: Vec<&CpuSet> = topology.llcs().into_iter().map(|cache| &cache.cpus).collect();
    let version = match &scheduler.schedstat_version {
        Reading::Known(version) => format!(" (/proc/schedstat version {version})"),
        _ => String::new(),
    };
    vec![
        ("clusters", listed(&clusters)),
        ("second-level caches", listed(&second)),
        ("last-level caches", listed(&llcs)),
        ("CONFIG_SCHED_CLUSTER", option(host, "SCHED_CLUSTER")),
        ("scheduling domains", shown(&scheduler.domains, |domains| spans(domains)) + &version),
        ("domains by name", shown(&scheduler.named_domains, |domains| names(domains))),
        ("CONFIG_SCHED_CACHE", option(host, "SCHED_CACHE")),
        ("cache-aware balancing", shown(&scheduler.llc_balancing, knobs)),
        ("sched_ext", ext(host)),
    ]
}

fn option(host: &HostSnapshot, name: &str) -> String {
    shown(&host.kernel.config_option(name), |value| value.clone().unwrap_or_else(|| "not set".to_owned()))
}

fn shown<T>(reading: &Reading<T>, known: impl FnOnce(&T) -> String) -> String {
    reading.missing_in_words().unwrap_or_else(|| reading.known().map_or_else(String::new, known))
}

/// "4 of 4 CPUs: 0-3 | 4-7 | 8-11 | 12-15".
fn listed(groups: &[&CpuSet]) -> String {
    if groups.is_empty() {
        return "none".to_owned();
    }
    let mut parts: Vec<String> = groups.iter().take(GROUPS_MAX).map(ToString::to_string).collect();
    if groups.len() > GROUPS_MAX {
        parts.push("...".to_owned());
    }
    let sizes: Vec<usize> = groups.iter().map(|group| group.len()).collect();
    let (least, most) = (sizes.iter().min().copied().unwrap_or(0), sizes.iter().max().copied().unwrap_or(0));
    let each = if least == most { plural(most, "CPU") } else { format!("{least} to {most} CPUs") };
    format!("{} of {each}: {}", groups.len(), parts.join(" | "))
}

/// "CLS 4 of 4 CPUs: …; PKG 1 of 16 CPUs: …".
fn spans(domains: &[SchedDomain]) -> String {
    if domains.is_empty() {
        return "none".to_owned();
    }
    let mut levels: BTreeMap<(u32, &str), Vec<&CpuSet>> = BTreeMap::new();
    for domain in domains {
        levels
            .entry((domain.level, domain.name.as_deref().unwrap_or_default()))
            .or_default()
            .push(&domain.cpus);
    }
    let level = |((_, name), groups): ((u32, &str), Vec<&CpuSet>)| format!("{name} {}", listed(&groups));
    levels.into_iter().map(|entry| level(entry).trim().to_owned()).collect::<Vec<_>>().join("; ")
}

/// "CLS on CPUs 0-15, MC on CPUs 0-15".
fn names(domains: &[NamedDomain]) -> String {
    let one = |domain: &NamedDomain| format!("{} on {:#}", domain.name, domain.cpus);
    if domains.is_empty() {
        "none".to_owned()
    } else {
        domains.iter().map(one).collect::<Vec<_>>().join(", ")
    }
}

fn knobs(files: &BTreeMap<String, Reading<String>>) -> String {
    files.iter().map(|(name, value)| format!("{name} {value}")).collect::<Vec<_>>().join(", ")
}

fn ext(host: &HostSnapshot) -> String {
    let state = host.scheduler.ext_state.to_string();
    host.scheduler.loaded_ext().map_or(state.clone(), |name| format!("{state}, scheduler {name}"))
}

/// Returns the result of the comparison.
pub(super) fn compared(record: &ClustersRecord) -> String {
    let Some(filling) = &record.filling else {
        let of_capture = "What packing costs is measured on the running host only";
        return if record.why_not.is_some() { "Nothing was compared" } else { of_capture }.to_owned();
    };
    let level = filling.level.word();
    if record.rounds.is_empty() {
        return "Nothing was compared".to_owned();
    }
    match record.worst() {
        Some(row) => format!(
            "Filling one {level} before the next makes {} {:.2} times as slow",
            row.job.words(),
            row.factor.median
        ),
        None => format!("No difference shown between filling one {level} before the next and spreading"),
    }
}

/// Describes the comparison that was made.
pub(super) fn set_up(record: &ClustersRecord) -> String {
    if let Some(why) = &record.why_not {
        return why.clone();
    }
    let Some(filling) = &record.filling else { return String::new() };
    format!(
        "{} of each job in one {level}, against one in each of {}. Each has {} of its own{}. Medians of {}, both in turn.",
        if filling.copies == 1 { "1 copy".to_owned() } else { format!("{} copies", filling.copies) },
        plural(filling.copies, level(filling)),
        size(filling.set_bytes),
        filling.cache_bytes.map_or_else(String::new, |bytes| format!(
            ", and the {} share {}",
            parts(filling),
            size(bytes)
        )),
        plural(record.rounds.len(), "round"),
        level = level(filling),
    )
}

fn level(filling: &Filling) -> &'static str {
    filling.level.word()
}

fn parts(filling: &Filling) -> &'static str {
    if filling.level == lowlat_cache::clusters::Level::Core { "siblings" } else { "cores" }
}

pub(super) fn table<'a>(record: &ClustersRecord, figures: &'a [FillFigures]) -> Table<'a, FillFigures> {
    let is_interval = record.rounds.len() >= lowlat_host::statistics::MedianInterval::ROUNDS_MIN as usize;
    Table::of(figures)
        .words("a step of", 0, |row| row.job.words().to_owned())
        .figures("packed", 1, |row| duration_fine(row.packed_ns))
        .figures("spread", 1, |row| duration_fine(row.spread_ns))
        .figures("factor", 0, |row| format!("{:.2}", row.factor.median))
        .figures(if is_interval { "95 %" } else { "range" }, 0, |row| {
            format!("{:.2}-{:.2}", row.factor.low, row.factor.high)
        })
        .words("verdict", 2, |row| words(row.verdict()).to_owned())
}

fn words(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::PackingCosts => "packed is slower",
        Verdict::PackingGains => "packed is faster",
        Verdict::NoDifference => "no difference shown",
    }
}

/// Returns the reasons why the figures are doubtful.
pub(super) fn doubts(record: &ClustersRecord) -> Vec<String> {
    let mut doubts = record.warnings.clone();
    let control = record.figures().into_iter().find(|row| !row.job.needs_cache());
    if let Some(control) = control.filter(|row| row.verdict() != Verdict::NoDifference) {
        doubts.push(format!(
            "The control, which needs no cache, takes {:.2} times as long packed: that part of each factor is not the cache's.",
            control.factor.median
        ));
    }
    doubts
}

/// Commands, each after the reason for it.
pub(super) fn placement(record: &ClustersRecord, host: &HostSnapshot) -> Vec<(&'static str, String)> {
    let groups = match &record.filling {
        Some(filling) => filling.groups.len(),
        None => host.topology.clusters.len(),
    };
    if groups < 2 {
        return Vec::new();
    }
    let why = match record.worst() {
        Some(_) => "Copies with data of their own, one to each before a second in any:",
        None if record.rounds.is_empty() => {
            "Copies with data of their own (the cost of packing was not measured):"
        }
        None => "Copies with data of their own (no cost of packing was shown):",
    };
    vec![
        (why, format!("lowlat run --place cluster-spread {groups} -- CMD")),
        (
            "Threads that share data, such as those of a pipeline:",
            "lowlat run --place cluster-pack -- CMD".to_owned(),
        ),
    ]
}

/// Returns the view of a comparison of packed and spread copies.
pub fn view<'a>(record: &'a ClustersRecord, host: &'a HostSnapshot) -> View<'a> {
    let sentence = format!("{}. {}.", judged(&kernel_view(host)), compared(record));
    View {
        kind: ClustersMeasurement::KIND,
        sentence: Some(sentence),
        doubts: doubts(record),
        add_summary: Box::new(|out, width| out.push_str(&clusters_text(record, host, width))),
        page: Box::new(|| {
            let tiles = html! {
                @for row in record.figures() {
                    (tile(row.job.words(), &format!("{:.2}", row.factor.median), "packed by spread"))
                }
            };
            ViewPage {
                title: "Clusters",
                verdict: verdict(&compared(record), false, &[set_up(record)], &tiles),
                tiles,
                sections: vec![body(record, host)],
                parameters: record.filling.as_ref().map(
                    |filling| html! { "Clusters: " (filling.copies) " copies to a " (filling.level.word()) "." },
                ),
            }
        }),
    }
}

fn body(record: &ClustersRecord, host: &HostSnapshot) -> Section {
    let view = kernel_view(host);
    let figures = record.figures();
    let lead = html! { (micro(&sentences(&view))) };
    let body = html! {
        (page::facts(facts(host)))
        p { b { (compared(record)) "." } " " (micro(&set_up(record))) }
        @if !figures.is_empty() {
            (columns_table("Packed and spread copies", &table(record, &figures).into_columns()))
        }
        @for doubt in doubts(record) { p { (micro(&clean(&doubt))) } }
        @for (why, command) in placement(record, host) {
            p { (why) }
            pre { (command) }
        }
    };
    Section::new("clusters", "Clusters", section("clusters", judged(&view), &lead, &body))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowlat_cache::clusters::{FillRound, FillTime, Job, Level, Side};
    use lowlat_host::topology::Group;

    fn set(list: &str) -> CpuSet {
        CpuSet::parse_list(list).unwrap()
    }

    fn host() -> HostSnapshot {
        let mut host = HostSnapshot::default();
        host.topology.online = CpuSet::first(16);
        host.topology.clusters =
            ["0-3", "4-7", "8-11", "12-15"].map(|list| Group { id: 0, cpus: set(list) }).into();
        host.kernel.config = Reading::Known(BTreeMap::from([("SCHED_CLUSTER".to_owned(), "y".to_owned())]));
        let domain =
            |level, name: &str, list: &str| SchedDomain { level, name: Some(name.into()), cpus: set(list) };
        host.scheduler.schedstat_version = Reading::Known(17);
        host.scheduler.domains =
            Reading::Known(vec![domain(0, "CLS", "0-3"), domain(0, "CLS", "4-7"), domain(1, "PKG", "0-15")]);
        host.scheduler.ext_state = Reading::Denied;
        host
    }

    fn record(packed_ns: f64) -> ClustersRecord {
        let times = |job| {
            [(Side::Packed, packed_ns), (Side::Spread, 4.0)].map(|(side, step_ns)| FillTime {
                job,
                side,
                step_ns,
            })
        };
        let round =
            FillRound { times: Job::ALL.into_iter().flat_map(times).collect(), ..FillRound::default() };
        let filling = Filling {
            level: Level::Cluster,
            groups: host().topology.clusters.into_iter().map(|cluster| cluster.cpus).collect(),
            copies: 4,
            cache_bytes: Some(4 << 20),
            set_bytes: 3 << 20,
        };
        ClustersRecord { filling: Some(filling), rounds: vec![round; 8], ..ClustersRecord::default() }
    }

    fn text(record: &ClustersRecord, host: &HostSnapshot) -> String {
        anstream::adapter::strip_str(&clusters_text(record, host, 80)).to_string()
    }

    #[test]
    fn clusters_at_80_columns() {
        insta::assert_snapshot!(text(&record(8.4), &host()));
    }

    #[test]
    fn no_difference_and_no_comparison_are_said() {
        let equal = text(&record(4.0), &host());
        assert!(equal.contains("No difference shown between filling one cluster"), "{equal}");
        assert!(equal.contains("no cost of packing was shown"), "{equal}");
        let none =
            ClustersRecord { why_not: Some("CPU 0 leaves no choice.".into()), ..ClustersRecord::default() };
        let nothing = text(&none, &HostSnapshot::default());
        assert!(
            nothing.contains("This host has no clusters") && nothing.contains("CPU 0 leaves no choice."),
            "{nothing}"
        );
        assert!(!nothing.contains("lowlat run"), "{nothing}");
    }
}
