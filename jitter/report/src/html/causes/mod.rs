//! Causes of interruptions: shares of time, remedies, the longest interruptions with their timelines.

mod counters;
mod flame;
mod groups;
mod senders;
mod shares;
mod stacked;
mod table;
mod worst;

pub use shares::bar as shares_bar;

use crate::causes::{CauseFamily, label, words};
use crate::figures::Jitter;
use crate::figures::JitterRun;
use lowlat_jitter::{Cause, CauseSource, JitterCauses, JitterRecord};
use lowlat_text::page::{micro, section as page_section};
use maud::{Markup, html};

/// Returns whether the page has the section: causes were traced.
pub fn is_shown(jitter: Option<&Jitter<'_>>) -> bool {
    let causes = jitter.and_then(|jitter| jitter.record.causes.as_ref());
    causes.is_some_and(|causes| causes.source != CauseSource::Off || !causes.reason.is_empty())
}

/// Builds everything known about causes; nothing if they were not traced.
pub fn section(run: &JitterRun<'_>, jitter: Option<&Jitter<'_>>) -> Markup {
    let Some(jitter) = jitter.filter(|jitter| is_shown(Some(jitter))) else { return html! {} };
    let Some(causes) = &jitter.record.causes else { return html! {} };
    let lead = html! { (micro(&words::source(causes))) };
    let body = html! {
        @match causes.source {
            CauseSource::Trace => {
                // The page of `lowlat jitter` shows the bar in its head.
                @if !run.is_own { (shares::card(jitter)) }
                (table::card(run, jitter))
                @if !jitter.study.senders.is_empty() { (senders::card(run, &jitter.study.senders)) }
                (stacked::card(run, jitter, causes))
                (worst::cards(run, jitter))
                @if let Some(groups) = &causes.groups { (groups::card(groups)) }
                (source_card(jitter.record, causes))
            }
            CauseSource::Counters => {
                (counters::card(jitter, causes))
                (source_card(jitter.record, causes))
            }
            CauseSource::Off => p class="empty" { "This run has no causes." }
        }
    };
    page_section("causes", "Causes", &lead, &body)
}

/// Builds the card on the source of the causes, lost data and the cost of tracing.
fn source_card(record: &JitterRecord, causes: &JitterCauses) -> Markup {
    let mut sentences = Vec::new();
    if causes.source == CauseSource::Trace {
        sentences.push(words::looked_at(record, causes));
    }
    let lost = words::lost(causes);
    let has_lost = !lost.is_empty();
    sentences.extend(lost);
    if causes.source == CauseSource::Trace && !has_lost {
        sentences.push("No data was lost.".to_owned());
    }
    sentences.extend(words::smi(causes));
    sentences.extend(words::cost(record));
    html! {
        @if !sentences.is_empty() {
            div class="card" {
                h3 { "How causes were found" }
                ul class="sentences" { @for sentence in sentences { li { (micro(&sentence)) } } }
            }
        }
    }
}

/// Formats a cause with the colour of its family.
pub fn cause(of: &Cause) -> Markup {
    html! { span class={ "swatch f-" (CauseFamily::of(of).class()) } {} (label(of)) }
}

/// Builds a legend of the families in use, with a note each.
fn legend(notes: &[(CauseFamily, String)]) -> Markup {
    html! {
        ul class="legend" {
            @for (family, note) in notes {
                li { span class={ "swatch f-" (family.class()) } {} (family.word()) @if !note.is_empty() { " " b { (note) } } }
            }
        }
    }
}
