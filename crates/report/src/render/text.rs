//! Documents as terminal text.

use super::Named;
use crate::assess::summary::summary;
use crate::jitter::terminal::{JitterTextOptions, jitter_text};
use crate::shared::document::is_own_run;
use lowlat_jitter::JitterMeasurement;
use lowlat_text::text::{BOLD, paint, usable};
use lowlat_text::units::clean;

/// Formats documents for a terminal of this width, each as the command that measured it prints it.
pub fn documents_text(documents: &[Named<'_>], width: usize) -> String {
    let width = usable(width);
    let mut out = String::new();
    for (at, (name, document)) in documents.iter().enumerate() {
        if documents.len() > 1 {
            let gap = if at > 0 { "\n\n" } else { "" };
            out.push_str(&format!("{gap}{}\n\n", paint(BOLD, &format!("== {}", clean(name)))));
        }
        out.push_str(&if is_own_run(document, JitterMeasurement::KIND) {
            jitter_text(document, JitterTextOptions { show_all: false, width })
        } else {
            summary(document, width)
        });
    }
    out
}
