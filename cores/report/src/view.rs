//! Latencies between cores on the page of a run.

use super::{c2c, html};
use lowlat_cache::c2c::{C2cMeasurement, C2cRecord};
use lowlat_host::HostSnapshot;
use lowlat_text::page::{Section, micro, tile};
use lowlat_text::units::{count, duration_fine};
use lowlat_text::view::{PageHead, View};
use maud::{Markup, html};

struct C2cView<'a> {
    host: &'a HostSnapshot,
    record: &'a C2cRecord,
}

/// View of latencies between cores.
pub fn view<'a>(record: &'a C2cRecord, host: &'a HostSnapshot) -> Box<dyn View + 'a> {
    Box::new(C2cView { host, record })
}

impl View for C2cView<'_> {
    fn kind(&self) -> &'static str {
        C2cMeasurement::KIND
    }

    fn sentence(&self) -> Option<String> {
        Some(format!("{}.", c2c::headline(self.record)))
    }

    fn doubts(&self) -> Vec<String> {
        c2c::doubts(self.record)
    }

    fn add_summary(&self, out: &mut String, width: usize) {
        out.push_str(&c2c::c2c_text(self.record, &self.host.topology, width));
    }

    fn tiles(&self) -> Markup {
        let record = self.record;
        let topology = &self.host.topology;
        html! {
            @for (place, level) in record.levels.iter().enumerate() {
                (tile(&c2c::name(record, topology, place), &micro(&duration_fine(level.median_ns)),
                    &format!("{} pairs measured", count(level.pairs))))
            }
        }
    }

    fn sections(&self) -> Vec<Section> {
        vec![html::section(self.record, &self.host.topology)]
    }

    fn head(&self) -> PageHead {
        let record = self.record;
        let verdict = html! {
            p class="verdict" { (micro(&c2c::headline(record))) "." }
            p { (micro(&c2c::set_up(record))) }
            div class="tiles" { (self.tiles()) }
        };
        PageHead { title: "Latency between cores", verdict }
    }

    fn parameters(&self) -> Option<Markup> {
        let record = self.record;
        Some(html! { "Cores: CPUs " (record.cpus) ", method " code { (record.method) } "." })
    }
}
