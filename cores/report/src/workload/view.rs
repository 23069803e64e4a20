//! Workloads on the page of a run.

use crate::workload::{
    article, compare, headline, html, run,
    words::{caveats, how, per_second, ratio},
    workload_text,
};
use lowlat_host::HostSnapshot;
use lowlat_text::page::{Section, micro, tile};
use lowlat_text::units::clean;
use lowlat_text::view::{PageHead, View};
use lowlat_workload::{Purpose, WorkloadMeasurement, WorkloadRecord};
use maud::{Markup, html};

const TILES_MAX: usize = 6;

struct WorkloadView<'a> {
    host: &'a HostSnapshot,
    record: &'a WorkloadRecord,
}

/// View of workloads.
pub fn view<'a>(record: &'a WorkloadRecord, host: &'a HostSnapshot) -> Box<dyn View + 'a> {
    Box::new(WorkloadView { host, record })
}

impl WorkloadView<'_> {
    fn has_clusters(&self) -> bool {
        !self.host.topology.clusters.is_empty()
    }
}

impl View for WorkloadView<'_> {
    fn kind(&self) -> &'static str {
        WorkloadMeasurement::KIND
    }

    fn sentence(&self) -> Option<String> {
        Some(format!("{}.", headline(self.record)))
    }

    fn doubts(&self) -> Vec<String> {
        caveats(self.record)
    }

    fn add_summary(&self, out: &mut String, width: usize) {
        out.push_str(&workload_text(self.record, self.has_clusters(), width));
    }

    fn tiles(&self) -> Markup {
        let record = self.record;
        html! { @for (label, value, note) in tiles(record).into_iter().take(TILES_MAX) { (tile(&label, &value, &note)) } }
    }

    fn sections(&self) -> Vec<Section> {
        vec![html::section(self.record, self.has_clusters())]
    }

    fn head(&self) -> PageHead {
        let record = self.record;
        let verdict = html! {
            p class="verdict" { (micro(&clean(&headline(record)))) "." }
            @if record.purpose == Purpose::Compare { @for side in compare::sides(record) { p { (clean(&side)) } } }
            @if record.purpose == Purpose::Article { p { (article::SOURCE) } }
            p { (micro(&how(record))) }
            div class="tiles" { (self.tiles()) }
        };
        PageHead { title: "Workloads", verdict }
    }

    fn parameters(&self) -> Option<Markup> {
        let record = self.record;
        Some(html! { "Workloads: " (record.rounds) " rounds of " (record.cells.len()) " rows." })
    }
}

/// Label, value and note of each tile.
fn tiles(record: &WorkloadRecord) -> Vec<(String, String, String)> {
    match record.purpose {
        Purpose::Run => run::measured(record)
            .into_iter()
            .filter_map(|place| {
                let cell = record.cells.get(place)?;
                let rate = per_second(record.rate(place)?.median);
                Some((clean(&cell.workload), rate, format!("{}/s, {}", clean(&cell.unit), cell.setting)))
            })
            .collect(),
        Purpose::Compare => compare::pairs(record)
            .into_iter()
            .filter_map(|pair| {
                let cell = record.cells.get(pair.a)?;
                Some((clean(&cell.workload), ratio(&pair.ratio), "B / A".to_owned()))
            })
            .collect(),
        Purpose::Article => article::gains(record)
            .into_iter()
            .filter_map(|(gain, explained)| {
                let best = article::best(&explained)?;
                let value = article::share(best.share);
                Some((gain.key.to_owned(), value, format!("of the published {}", gain.text)))
            })
            .collect(),
    }
}
