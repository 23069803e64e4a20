//! The audits of one or many servers as a page.

use super::servers::{found, servers, short};
use lowlat_bios::{BiosAudit, BiosFinding, BiosFleet, BiosVerdict, FleetServer};
use lowlat_text::columns::Table;
use lowlat_text::page::{Section, columns_table, data_table, page, section};
use lowlat_text::units::{clean, plural};
use maud::{Markup, html};

const STYLE: &str = include_str!("fleet.css");

/// Builds the page: a row for each server, the settings that differ on most, then the findings on each server.
pub fn bios_fleet_html(fleet: &BiosFleet) -> String {
    let mut sections = vec![Section::new("servers", "Servers", summary(fleet)).with_style(STYLE)];
    if fleet.servers.len() > 1 && !fleet.differences.is_empty() {
        sections.push(Section::new("settings", "Settings", differences(fleet)));
    }
    let read: Vec<(&FleetServer, &BiosAudit)> =
        fleet.servers.iter().filter_map(|server| Some((server, server.audit.as_ref()?))).collect();
    if !read.is_empty() {
        sections.push(Section::new("findings", "Findings", findings(&read)));
    }
    let footer = html! { footer { p { "Written by lowlat bios audit." } } };
    page("BIOS settings", &sections, &footer)
}

fn summary(fleet: &BiosFleet) -> Markup {
    let title =
        format!("BIOS settings of {}, profile {}", plural(fleet.servers.len(), "server"), fleet.profile);
    let failed = fleet.servers.iter().filter_map(|server| Some((server, server.error.as_ref()?)));
    let body = html! {
        (columns_table("Servers", &servers(fleet, usize::MAX)))
        @for (server, error) in failed {
            div class="card" { h3 translate="no" { (clean(&server.address)) } @for line in error.lines() { p translate="no" class="failure" { (clean(line)) } } }
        }
    };
    section("servers", &title, &html! { (found(fleet)) }, &body)
}

fn differences(fleet: &BiosFleet) -> Markup {
    let lead = html! { "Settings that differ from the profile, and on how many servers." };
    let table = Table::of(&fleet.differences)
        .words("setting", 0, |(id, _)| id.clone())
        .figures("servers", 0, |(_, count)| count.to_string())
        .into_columns();
    section("settings", "Settings", &lead, &columns_table("Settings", &table))
}

fn findings(read: &[(&FleetServer, &BiosAudit)]) -> Markup {
    let lead =
        html! { "Settings that differ or could not be checked. Values are those of the server's firmware." };
    let body = html! {
        @for (server, audit) in read {
            details class="document" open[read.len() == 1] {
                summary { h3 translate="no" { (clean(&format!("{}  {}", server.address, short(&audit.server)))) } }
                div class="card flush" {
                    (data_table("Findings", "bios-findings", &["Setting", "Verdict", "Value", "Wanted", "Reason"], &html! {
                        @for finding in shown(audit) { (row(finding)) }
                    }))
                }
                @if !audit.warnings.is_empty() {
                    ul class="warnings" { @for warning in &audit.warnings { li { (clean(warning)) } } }
                }
            }
        }
    };
    section("findings", "Findings", &lead, &body)
}

/// What a reader has to act on, worst first.
fn shown(audit: &BiosAudit) -> impl Iterator<Item = &BiosFinding> {
    let worst = BiosVerdict::WORST_FIRST.into_iter().filter(|verdict| !verdict.is_quiet());
    worst.flat_map(|verdict| audit.findings.iter().filter(move |finding| finding.verdict == verdict))
}

fn row(finding: &BiosFinding) -> Markup {
    let wanted = if finding.wanted_here.is_empty() { &finding.wanted } else { &finding.wanted_here };
    let mut value = finding.active.as_ref().map(lowlat_bios::shown).unwrap_or_default();
    if let Some(pending) = &finding.pending {
        value += &format!(" → {}", lowlat_bios::shown(pending));
    }
    html! {
        tr {
            th scope="row" translate="no" { (finding.id) @if let Some(attribute) = &finding.attribute { br; small { (clean(attribute)) } } }
            td { (finding.verdict.word()) }
            td translate="no" { (clean(&value)) }
            td translate="no" { (clean(&wanted.join(" / "))) }
            td { (clean(&finding.because)) }
        }
    }
}
