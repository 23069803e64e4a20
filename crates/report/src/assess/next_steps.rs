//! Last lines of `assess`: the most valuable changes and the next steps.

use super::measurements;
use lowlat_result::ResultDocument;
use lowlat_settings::Finding;
use lowlat_text::text::{add_field, add_heading, usable};
use lowlat_text::units::{clean, duration};
use std::cmp::Reverse;

/// Highest number of changes shown.
const CHANGES_MAX: usize = 3;

/// Formats the most valuable changes, the page and the command that shows all changes.
pub fn next_steps(document: &ResultDocument, page: &str, plan_command: &str, width: usize) -> String {
    let width = usable(width);
    let mut out = String::new();
    let changes = worth_most(document);
    let labels = changes.iter().map(|(finding, _)| finding.id.chars().count() + 2).max().unwrap_or(0);
    if !changes.is_empty() {
        add_heading(
            &mut out,
            if changes.len() == 1 { "Most valuable change" } else { "Most valuable changes" },
        );
    }
    for (finding, lost_ns) in &changes {
        let mut parts = Vec::new();
        if *lost_ns > 0 {
            parts.push(format!("removes the causes of {} of interruptions in this run", duration(*lost_ns)));
        } else {
            parts.push(format!("{} impact", finding.impact.word()));
        }
        if finding.needs_reboot {
            parts.push("needs a reboot".to_owned());
        }
        add_field(&mut out, &clean(&finding.id), &clean(&parts.join(", ")), labels, width);
    }
    add_heading(&mut out, "Next");
    add_field(&mut out, "1.", &format!("Open {} in a browser.", clean(page)), 4, width);
    if !changes.is_empty() {
        add_field(&mut out, "2.", &format!("Run {} to see every change.", clean(plan_command)), 4, width);
    }
    out
}

/// Returns the faults, first those whose causes took most time in this run, then those with the largest impact.
fn worth_most(document: &ResultDocument) -> Vec<(&Finding, u64)> {
    let views = measurements::views(document);
    let savings: Vec<(&str, u64)> = views.iter().flat_map(|view| view.savings()).collect();
    let lost_ns =
        |id: &str| savings.iter().filter(|(setting, _)| *setting == id).map(|(_, ns)| ns).sum::<u64>();
    let mut changes: Vec<(&Finding, u64)> =
        document.audit.faults().map(|finding| (finding, lost_ns(&finding.id))).collect();
    changes.sort_by_key(|(finding, ns)| (Reverse(*ns), Reverse(finding.weight()), finding.rank()));
    changes.truncate(CHANGES_MAX);
    changes
}
