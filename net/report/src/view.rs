//! Parts of ping-pong on the page of a run.

use super::{html, parts_html, pingpong};
use lowlat_net::pingpong::{PingpongMeasurement, PingpongRecord};
use lowlat_text::page::{Section, micro, tile};
use lowlat_text::units::{clean, count};
use lowlat_text::view::{PageHead, View};
use maud::{Markup, html};

struct PingpongView<'a> {
    is_interrupted: bool,
    record: &'a PingpongRecord,
}

/// View of a ping-pong measurement.
pub fn view(record: &PingpongRecord, is_interrupted: bool) -> Box<dyn View + '_> {
    Box::new(PingpongView { is_interrupted, record })
}

impl View for PingpongView<'_> {
    fn kind(&self) -> &'static str {
        PingpongMeasurement::KIND
    }

    fn sentence(&self) -> Option<String> {
        Some(format!("{}.", pingpong::headline(self.record)))
    }

    fn doubts(&self) -> Vec<String> {
        pingpong::doubts(self.record)
    }

    fn add_summary(&self, out: &mut String, width: usize) {
        out.push_str(&pingpong::pingpong_text(self.record, width));
    }

    fn tiles(&self) -> Markup {
        let Some(size) = pingpong::quoted(self.record) else { return html! {} };
        let at = |quantile: f64| html::time(size.quantile_ns(quantile));
        tile(&format!("Half round trip, {} B", size.size_bytes), &at(0.5), &format!("p99 {}", at(0.99)))
    }

    fn sections(&self) -> Vec<Section> {
        [Some(html::section(self.record)), parts_html::section(self.record)].into_iter().flatten().collect()
    }

    fn head(&self) -> PageHead {
        let record = self.record;
        let sentences = [pingpong::set_up(record), pingpong::control(record)];
        let tiles = html! { (self.tiles()) (round_trips(record)) };
        head("Round trips", self.is_interrupted, &pingpong::headline(record), &sentences, &tiles)
    }

    fn parameters(&self) -> Option<Markup> {
        Some(parameters("Ping-pong", self.record))
    }
}

/// The head of a page: the headline, what else is to be said, then tiles.
pub(super) fn head(
    title: &'static str,
    is_interrupted: bool,
    headline: &str,
    sentences: &[String],
    tiles: &Markup,
) -> PageHead {
    let verdict = html! {
        p class="verdict" { (micro(&clean(headline))) "." }
        @if is_interrupted {
            p class="note" { "The run was interrupted; this page shows its results up to then." }
        }
        @for sentence in sentences { p { (micro(&clean(sentence))) } }
        div class="tiles" { (tiles) }
    };
    PageHead { title, verdict }
}

pub(super) fn parameters(what: &str, record: &PingpongRecord) -> Markup {
    html! {
        (what) ": " code { (clean(&record.command_line)) } ", counter " code { (clean(&record.counter)) } " at "
        (count(record.counter_hz / 1_000_000)) " MHz."
    }
}

fn round_trips(record: &PingpongRecord) -> Markup {
    let all: u64 = record.sizes.iter().map(|size| size.figures.iterations).sum();
    tile("Round trips", &count(all), &format!("in {} sizes", record.sizes.len()))
}
