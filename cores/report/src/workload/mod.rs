//! Measurements of workloads as terminal text and HTML. Pure: no I/O, no clock.
//!
//! Terminal texts contain ANSI colours; the caller prints them through a stream that strips colours if the output is
//! not a terminal. Every text from a host is first cleaned of control characters.
mod article;
mod between;
mod compare;
mod html;
mod run;
mod words;

pub use between::{changes_headline, changes_html, changes_table};
pub use html::view as workload_view;

use lowlat_text::columns;
use lowlat_text::text::{
    BOLD, GREEN, YELLOW, add_detail, add_result, add_sentences, add_wrapped, paint, usable,
};
use lowlat_text::units::clean;
use lowlat_workload::{Purpose, Verdict, WorkloadRecord, verdict};
use words::{caveats, how, not_measured};

/// A workload of this version.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Listed {
    pub name: &'static str,
    /// Description of what a copy does.
    pub about: &'static str,
    /// The counted unit: "round trips".
    pub unit: &'static str,
    /// Reason that it cannot run here; `None` if it can.
    pub why_not: Option<String>,
}

/// Formats a record: figures, a comparison, or the article's tables. `has_clusters`: whether cores of the host share
/// second-level caches.
pub fn workload_text(record: &WorkloadRecord, has_clusters: bool, width: usize) -> String {
    let width = usable(width);
    let how = how(record);
    let (details, tables) = match record.purpose {
        Purpose::Run => (vec![how], columns::table(run::table(record), width)),
        Purpose::Compare => {
            let details = compare::sides(record).into_iter().chain([how]).collect();
            (details, columns::table(compare::table(record), width))
        }
        Purpose::Article => {
            let details = vec![article::SOURCE.to_owned(), how, article::LEGEND.to_owned()];
            (details, article::tables(record, has_clusters, width))
        }
    };
    let mut out = String::new();
    add_result(&mut out, &headline(record), width);
    for detail in details {
        add_detail(&mut out, &detail, width);
    }
    if !tables.is_empty() {
        out.push('\n');
        out.push_str(&tables);
    }
    add_sentences(&mut out, (YELLOW, "Not measured"), &not_measured(record), width);
    add_sentences(&mut out, (YELLOW, "Caveats"), &caveats(record), width);
    out
}

/// True if a record has anything to show: a figure, a ratio of what was counted, or a row of the article's tables.
pub fn has_result(record: &WorkloadRecord) -> bool {
    match record.purpose {
        Purpose::Run => !run::measured(record).is_empty(),
        Purpose::Compare => {
            compare::pairs(record).iter().any(|pair| verdict(&pair.ratio) != Verdict::NothingCounted)
        }
        Purpose::Article => article::gains(record).iter().any(|(_, explained)| !explained.is_empty()),
    }
}

/// The result in one sentence, without a full stop.
fn headline(record: &WorkloadRecord) -> String {
    match record.purpose {
        Purpose::Run => run::headline(record),
        Purpose::Compare => compare::headline(record),
        Purpose::Article => article::headline(record),
    }
}

/// Formats the workloads, each with what it does and whether it can run here.
pub fn list_text(all: &[Listed], width: usize) -> String {
    let width = usable(width);
    let mut out = String::new();
    for one in all {
        let state = if one.why_not.is_none() { paint(GREEN, "can run") } else { paint(YELLOW, "cannot run") };
        out.push_str(&format!("{}  {state}\n", paint(BOLD, &format!("{:<18}", one.name))));
        add_wrapped(&mut out, &format!("{}; counts {}", one.about, one.unit), 2, width);
        if let Some(why) = &one.why_not {
            add_wrapped(&mut out, &clean(why), 2, width);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_workload_says_whether_it_can_run() {
        let one = |name, why_not: Option<&str>| Listed {
            name,
            about: "does something",
            unit: "operations",
            why_not: why_not.map(str::to_owned),
        };
        let text = list_text(&[one("pipe", None), one("nginx", Some("wrk is not installed"))], 80);
        let text = anstream::adapter::strip_str(&text).to_string();
        assert!(text.contains("pipe                can run\n"), "{text}");
        assert!(
            text.contains("cannot run\n  does something; counts operations\n  wrk is not installed\n"),
            "{text}"
        );
    }
}
