//! A fleet as one page: a table of groups of hosts and settings, whose size does not grow with the hosts' documents.

use super::{headline, names, oldest, other_threshold, times};
use lowlat_results::fleet::{Fleet, FleetGroup, FleetWanted};
use lowlat_settings::Verdict;
use lowlat_text::page::{Section, data_table, micro, page, section as page_section, table_below, tile};
use lowlat_text::units::{clean, count, duration, plural, rate};
use lowlat_tune_report::audit::verdict_class;
use maud::{Markup, html};

const STYLE: &str = include_str!("fleet.css");
/// Highest number of rows and columns of the table of groups, of settings, and of noisy hosts.
const GROUPS_MAX: usize = 200;
const COLUMNS_MAX: usize = 40;
const FINDINGS_MAX: usize = 300;
const NOISY_MAX: usize = 50;
/// Names shown before the others are folded.
const NAMES_MAX: usize = 4;

/// Builds the page of a fleet.
pub fn fleet_html(fleet: &Fleet) -> String {
    let mut sections = vec![
        Section::new("summary", "Summary", summary(fleet)).with_style(STYLE),
        Section::new("groups", "Hosts", groups(fleet)),
        Section::new("findings", "Settings", findings(fleet)),
    ];
    if fleet.rate_median.is_some() {
        sections.push(Section::new("noisy", "Interruptions", noisy(fleet)));
    }
    let footer = html! {
        footer { p class="small" {
            "Written by " code { "lowlat report fleet" } ". Hosts are compared by their verdicts, so hosts of different shapes can be alike. "
            "This page loads no external resources."
        } }
    };
    page(&plural(fleet.hosts.len(), "host"), &sections, &footer)
}

fn summary(fleet: &Fleet) -> Markup {
    let mut scores: Vec<u8> = fleet.hosts.iter().filter_map(|host| host.score_percent).collect();
    scores.sort_unstable();
    let score = |of: Option<&u8>| of.map_or_else(|| "–".to_owned(), u8::to_string);
    let range = format!("lowest {}, highest {}", score(scores.first()), score(scores.last()));
    let differing = fleet.hosts.len() - fleet.alike_count();
    let everywhere = fleet.findings.iter().filter(|of| of.fault_count == of.applies_count).count();
    html! {
        section id="summary" class="hero" aria-labelledby="summary-title" {
            p class="eyebrow" { "Fleet" }
            h1 id="summary-title" { (plural(fleet.hosts.len(), "host")) }
            p class="verdict" { (headline(fleet)) }
            @if let Some(text) = oldest(fleet) { p class="muted" { (text) } }
            div class="tiles" {
                (tile("Differ from most", &count(differing as u64), "hosts with another verdict on at least one setting"))
                (tile("Settings at fault", &fleet.findings.len().to_string(), &format!("{everywhere} of them on every host they apply to")))
                (tile("Middle score", &score(scores.get(scores.len() / 2)), &range))
                @if let Some(median) = fleet.rate_median {
                    (tile("Middle rate", &rate(median.per_s), "interruptions per second and CPU"))
                    (tile("Far above it", &count(fleet.noisy.len() as u64), "hosts"))
                }
            }
        }
    }
}

/// Columns: first what hosts differ in, then what is at fault on most of them.
fn columns(fleet: &Fleet) -> Vec<&str> {
    let mut ids: Vec<&str> = Vec::new();
    let differing = fleet.groups.iter().flat_map(|group| group.differs.keys()).map(String::as_str);
    let faults = fleet.findings.iter().map(|of| of.id.as_str());
    for id in differing.chain(faults) {
        if !ids.contains(&id) {
            ids.push(id);
        }
        if ids.len() == COLUMNS_MAX {
            break;
        }
    }
    ids
}

fn groups(fleet: &Fleet) -> Markup {
    let columns = columns(fleet);
    let lead = html! {
        "Hosts with the same verdicts share a row; those that differ from most hosts in most settings come first. "
        "A circle marks a verdict that is not that of most hosts."
    };
    let heads = html! {
        th scope="col" { "Hosts" } th scope="col" class="figure" { "Score" } th scope="col" class="figure" { "To change" }
        @for id in &columns { th scope="col" class="turned" { span { (clean(id)) } } }
    };
    let body = html! {
        ul class="legend fleet-legend" {
            @for verdict in [Verdict::Wrong, Verdict::Unknown, Verdict::Good] {
                li { span class={ "mark v-" (verdict_class(verdict)) } aria-hidden="true" { (mark(verdict)) } (verdict.word()) }
            }
        }
        div class="card flush" {
            (table_below("Hosts and settings", "fleet", &heads, &html! {
                @for group in fleet.groups.iter().take(GROUPS_MAX) { (row(fleet, group, &columns)) }
            }))
            @if fleet.groups.len() > GROUPS_MAX { p class="empty" { (plural(fleet.groups.len() - GROUPS_MAX, "more group")) " are left out." } }
        }
    };
    page_section("groups", "Hosts", &lead, &body)
}

/// Names of hosts, the first ones only. A host may be called "before", which is not translated.
fn host_names(fleet: &Fleet, places: &[usize], names_max: usize) -> Markup {
    let (first, rest) = places.split_at(places.len().min(names_max));
    html! {
        span translate="no" { (names(fleet, first, names_max)) }
        @if !rest.is_empty() { " and " (count(rest.len() as u64)) " more" }
    }
}

fn row(fleet: &Fleet, group: &FleetGroup, columns: &[&str]) -> Markup {
    let first = group.hosts.first().and_then(|at| fleet.hosts.get(*at));
    let (named, rest) = group.hosts.split_at(group.hosts.len().min(NAMES_MAX));
    html! {
        tr {
            th scope="row" {
                @if group.hosts.len() > 1 { b { (plural(group.hosts.len(), "host")) } " " }
                (host_names(fleet, named, NAMES_MAX))
                @if !rest.is_empty() {
                    details { summary { "and " (count(rest.len() as u64)) " more" } p class="why" { (host_names(fleet, rest, usize::MAX)) } }
                }
            }
            td class="figure" { (first.and_then(|host| host.score_percent).map_or_else(|| "–".to_owned(), |score| score.to_string())) }
            td class="figure" { (group.faults.len()) }
            @for id in columns { (cell(first.and_then(|host| host.verdicts.get(*id)).copied(), id, group.differs.contains_key(*id))) }
        }
    }
}

fn cell(verdict: Option<Verdict>, id: &str, differs: bool) -> Markup {
    let Some(verdict) = verdict else {
        return html! { td class="cell" title={ (clean(id)) ": not applicable" } {} };
    };
    html! {
        td class="cell" title={ (clean(id)) ": " (verdict.word()) } {
            span class={ "mark v-" (verdict_class(verdict)) @if differs { " differs" } } { (mark(verdict)) span class="vh" { (verdict.word()) } }
        }
    }
}

fn mark(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Good => "·",
        Verdict::Unknown => "?",
        Verdict::NotApplicable => "",
        _ => "×",
    }
}

fn findings(fleet: &Fleet) -> Markup {
    let lead =
        html! { "Settings at fault, those on the fewest hosts first: they are the likeliest oversights." };
    let body = html! {
        @if fleet.findings.is_empty() { p class="empty" { "No setting is at fault." } } @else {
            div class="card flush" {
                (data_table("Settings at fault", "fleet tall", &["Setting", ">Hosts", ">Of", "Wanted", "Where"], &html! {
                    @for of in fleet.findings.iter().take(FINDINGS_MAX) {
                        tr {
                            th scope="row" { code { (clean(&of.id)) } }
                            td class="figure" { (count(of.fault_count as u64)) } td class="figure" { (count(of.applies_count as u64)) }
                            td { (wanted(fleet, &of.wanted)) }
                            td { @if of.fault_count == of.applies_count { "everywhere" } @else { (host_names(fleet, &of.hosts, 8)) } }
                        }
                    }
                }))
            }
        }
    };
    page_section("findings", "Settings", &lead, &body)
}

/// The wanted values, with their hosts if there are several values.
fn wanted(fleet: &Fleet, wanted: &[FleetWanted]) -> Markup {
    let list = |wanted: &[FleetWanted]| {
        html! { @for of in wanted { div { (clean(&of.value)) " (" (host_names(fleet, &of.hosts, NAMES_MAX)) ")" } } }
    };
    let (first, rest) = wanted.split_at(wanted.len().min(NAMES_MAX));
    html! {
        @if let [only] = first { (clean(&only.value)) } @else {
            (list(first))
            @if !rest.is_empty() { details { summary { "and " (count(rest.len() as u64)) " more" } (list(rest)) } }
        }
    }
}

fn noisy(fleet: &Fleet) -> Markup {
    let lead =
        html! { "Hosts with more than three times as many interruptions as the middle one, beyond chance." };
    let body = html! {
        @if fleet.noisy.is_empty() { p class="empty" { "None." } } @else {
            div class="card flush" {
                (data_table("Hosts with most interruptions", "fleet", &["Host", ">Per second and CPU", ">Times the middle", ">Longest"], &html! {
                    @for host in fleet.noisy.iter().take(NOISY_MAX).filter_map(|at| fleet.hosts.get(*at)) {
                        tr {
                            th scope="row" translate="no" { (clean(&host.name)) }
                            td class="figure" { (host.rate.map_or_else(String::new, |of| rate(of.per_s))) }
                            td class="figure" { (times(fleet, host).map_or_else(|| "–".to_owned(), rate)) }
                            td class="figure" { (host.length_ns_max.map_or_else(|| "–".to_owned(), |ns| micro(&duration(ns)))) }
                        }
                    }
                }))
                @if fleet.noisy.len() > NOISY_MAX { p class="empty" { (plural(fleet.noisy.len() - NOISY_MAX, "more host")) " are left out." } }
            }
        }
        @if let Some(text) = other_threshold(fleet) { p class="empty" { (text) } }
    };
    page_section("noisy", "Interruptions", &lead, &body)
}
