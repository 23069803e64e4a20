//! Source of the causes, lost data, cost of tracing.

use crate::causes::words;
use lowlat_jitter::{CauseSource, JitterCauses, JitterRecord};
use lowlat_text::page::micro;
use maud::{Markup, html};

pub fn card(record: &JitterRecord, causes: &JitterCauses) -> Markup {
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
