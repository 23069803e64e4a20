//! Findings of the report: what it says, and what the groups of each show here.

use crate::pipeline::{
    MeasuredRow,
    findings::{MeasuredFinding, cpus},
    html::{latency, table},
};
use lowlat_text::page::{micro, section as page_section};
use lowlat_text::units::clean;
use maud::{Markup, html};

/// A chart and a table for each finding.
pub fn section(all: &[MeasuredFinding<'_, '_>]) -> Markup {
    let lead = html! {
        "Groups that differ in nothing but their CPUs. A group is called slower only where all its runs are."
    };
    let body = html! { @for of in all { (one(of)) } };
    page_section("findings", "Findings of the report", &lead, &body)
}

fn one(of: &MeasuredFinding<'_, '_>) -> Markup {
    let (groups, measured) = (of.groups(), of.measured());
    let by_group: Vec<Vec<&MeasuredRow<'_>>> = groups
        .iter()
        .map(|first| measured.iter().copied().filter(|row| row.row.group == first.row.group).collect())
        .collect();
    let said = |row: &MeasuredRow<'_>| format!("{}{}", row.row.group_name, cpus(&row.row.parameters));
    let names: Vec<(char, String)> = groups.iter().map(|row| (row.row.group, said(row))).collect();
    html! {
        div class="cards two checked-finding" {
            div class="card" {
                h3 { (of.title()) }
                p { "The report: " (of.finding.says) "." }
                @if measured.is_empty() { p { "No row of it was measured." } }
                ul class="warnings" { @for sentence in of.sentences() { li { (micro(&clean(&sentence))) } } }
            }
            @if !measured.is_empty() { (latency::finding_chart(&of.title(), &by_group, &names)) }
        }
        (table::table(&of.rows, &of.title()))
    }
}
