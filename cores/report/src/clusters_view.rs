//! Clusters on the page of a run.

use super::clusters;
use lowlat_cache::clusters::{ClustersMeasurement, ClustersRecord, kernel_view};
use lowlat_host::HostSnapshot;
use lowlat_text::page::{Section, columns_table, facts, micro, section, tile};
use lowlat_text::units::clean;
use lowlat_text::view::{PageHead, View};
use maud::{Markup, html};

struct ClustersView<'a> {
    host: &'a HostSnapshot,
    record: &'a ClustersRecord,
}

/// View of comparison of packed and spread copies.
pub fn view<'a>(record: &'a ClustersRecord, host: &'a HostSnapshot) -> Box<dyn View + 'a> {
    Box::new(ClustersView { host, record })
}

impl View for ClustersView<'_> {
    fn kind(&self) -> &'static str {
        ClustersMeasurement::KIND
    }

    fn sentence(&self) -> Option<String> {
        let view = kernel_view(self.host);
        Some(format!("{}. {}.", clusters::judged(&view), clusters::compared(self.record)))
    }

    fn doubts(&self) -> Vec<String> {
        clusters::doubts(self.record)
    }

    fn add_summary(&self, out: &mut String, width: usize) {
        out.push_str(&clusters::clusters_text(self.record, self.host, width));
    }

    fn tiles(&self) -> Markup {
        let record = self.record;
        html! {
            @for row in record.figures() {
                (tile(row.job.words(), &format!("{:.2}", row.factor.median), "packed by spread"))
            }
        }
    }

    fn sections(&self) -> Vec<Section> {
        let record = self.record;
        let host = self.host;
        let view = kernel_view(host);
        let figures = record.figures();
        let lead = html! { (micro(&clusters::sentences(&view))) };
        let body = html! {
            (facts(clusters::facts(host)))
            p { b { (clusters::compared(record)) "." } " " (micro(&clusters::set_up(record))) }
            @if !figures.is_empty() {
                (columns_table("Packed and spread copies", &clusters::table(record, &figures).into_columns()))
            }
            @for doubt in clusters::doubts(record) { p { (micro(&clean(&doubt))) } }
            @for (why, command) in clusters::placement(record, host) {
                p { (why) }
                pre { (command) }
            }
        };
        vec![Section::new("clusters", "Clusters", section("clusters", clusters::judged(&view), &lead, &body))]
    }

    fn head(&self) -> PageHead {
        let record = self.record;
        let verdict = html! {
            p class="verdict" { (micro(&clusters::compared(record))) "." }
            p { (micro(&clusters::set_up(record))) }
            div class="tiles" { (self.tiles()) }
        };
        PageHead { title: "Clusters", verdict }
    }

    fn parameters(&self) -> Option<Markup> {
        let filling = self.record.filling.as_ref()?;
        Some(html! { "Clusters: " (filling.copies) " copies to a " (filling.level.word()) "." })
    }
}
