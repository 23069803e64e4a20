//! Parts of a search for a waiting mode on the page of a run.

use super::{commands, doubts, headline, interval, left_out, meets, percent, set_up, table, time};
use crate::{
    chart::{ChartColumn, chart},
    html::STYLE,
    view::head,
};
use lowlat_net::choose::{ChoiceRecord, ChoiceStudy, ModeStudy, NetChoiceMeasurement};
use lowlat_text::page::{Section, columns_table, micro, note, section, tile};
use lowlat_text::units::{clean, span};
use lowlat_text::view::{PageHead, View};
use maud::{Markup, html};

struct ChoiceView<'a>(&'a ChoiceRecord);

/// View of a search.
pub fn view(record: &ChoiceRecord) -> Box<dyn View + '_> {
    Box::new(ChoiceView(record))
}

impl View for ChoiceView<'_> {
    fn kind(&self) -> &'static str {
        NetChoiceMeasurement::KIND
    }

    fn sentence(&self) -> Option<String> {
        Some(format!("{}.", headline(self.0, &ChoiceStudy::of(self.0))))
    }

    fn doubts(&self) -> Vec<String> {
        doubts(self.0, &ChoiceStudy::of(self.0))
    }

    fn add_summary(&self, out: &mut String, width: usize) {
        out.push_str(&super::net_choice_text(self.0, width));
    }

    fn tiles(&self) -> Markup {
        let study = ChoiceStudy::of(self.0);
        let Some(of) = study.choice.and_then(|choice| study.modes.get(choice.place)) else { return html! {} };
        html! {
            (tile("Mode", &of.mode.to_string(), &meets(of)))
            (tile("p99", &micro(&time(of.p99_ns)), &micro(&interval(of.p99_ns))))
            (tile("CPU of the server", &percent(of.server_share), &format!("client {}", percent(of.client_share))))
        }
    }

    fn sections(&self) -> Vec<Section> {
        vec![body(self.0)]
    }

    fn head(&self) -> PageHead {
        let headline = headline(self.0, &ChoiceStudy::of(self.0));
        head("Choice of a waiting mode", false, &headline, &[set_up(self.0)], &self.tiles())
    }
}

fn body(record: &ChoiceRecord) -> Section {
    let study = ChoiceStudy::of(record);
    let lead = html! {
        "Every mode in turn. A mode meets the goal if the whole 95 % intervals of its p99 and of its share of a CPU do."
    };
    let body = html! {
        (note("Caveats", &doubts(record, &study)))
        figure tabindex="0" class="card" {
            figcaption { h3 { "By mode" } p { "Dot: median. Bar: interval of p99. Line: the goal of " (micro(&span(record.goal.p99_ns))) "." } }
            (chart(&marks(&study), Some(record.goal.p99_ns as f64), "p50 and p99 by mode; the figures are in the table below"))
        }
        (columns_table("Waiting modes", &table(record, &study)))
        div class="card" {
            @for (label, command) in commands(record, &study) { p { (label) ": " code { (clean(&command)) } } }
        }
        @let left_out = left_out(record);
        @if !left_out.is_empty() {
            div class="note" {
                p { b { "Not available" } }
                ul class="sentences" { @for line in &left_out { li { (clean(line)) } } }
            }
        }
    };
    Section::new("choose", "Waiting modes", section("choose", "Waiting modes", &lead, &body))
        .with_style(STYLE)
}

pub(super) fn measured(study: &ChoiceStudy) -> impl Iterator<Item = (usize, &ModeStudy)> {
    study.modes.iter().enumerate().filter(|(_, of)| of.p50_ns.is_some() || of.p99_ns.is_some())
}

fn marks(study: &ChoiceStudy) -> Vec<ChartColumn> {
    let mark = |(_, of): (usize, &ModeStudy)| ChartColumn {
        label: of.mode.to_string(),
        title: format!("{}: p50 {}, p99 {}", of.mode, micro(&time(of.p50_ns)), micro(&interval(of.p99_ns))),
        dots: of.p50_ns.map(|of| of.median).into_iter().collect(),
        bar: of.p99_ns.map(|of| (of.low, of.high)),
        whole: None,
    };
    measured(study).map(mark).collect()
}
