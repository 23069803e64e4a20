//! Shares of the time of all interruptions: one bar of families.

use crate::causes::{CauseFamily, by_family, words};
use crate::figures::Jitter;
use crate::html::causes::legend;
use lowlat_jitter::JitterCauses;
use lowlat_text::page::micro;
use lowlat_text::units::{duration, percent};
use maud::{Markup, html};

/// Builds the card with the bar and the explained share.
pub fn card(jitter: &Jitter<'_>) -> Markup {
    html! {
        figure tabindex="0" class="card" {
            figcaption {
                h3 { "Where the time went" }
                p { "The time of all interruptions on all measured CPUs, by cause." }
            }
            (jitter.record.causes.as_ref().map(bar).unwrap_or_default())
            @if let Some(shares) = &jitter.study.shares {
                dl class="shares" {
                    @for (word, share) in words::shares(shares) {
                        div { dt { (word) } dd { (micro(&percent(share * 100.0))) } }
                    }
                }
            }
        }
    }
}

/// Draws a bar of families, with their shares in the legend.
pub fn bar(causes: &JitterCauses) -> Markup {
    let mut sums = [0u64; CauseFamily::ALL.len()];
    for cpu in &causes.cpus {
        for (sum, ns) in sums.iter_mut().zip(by_family(cpu)) {
            *sum = sum.saturating_add(ns);
        }
    }
    let total = sums.iter().fold(0u64, |sum, ns| sum.saturating_add(*ns));
    if total == 0 {
        return html! { p class="empty" { "No interruption has a known cause." } };
    }
    let seen: Vec<(CauseFamily, u64)> =
        CauseFamily::ALL.into_iter().zip(sums).filter(|(_, ns)| *ns > 0).collect();
    let share = |ns: u64| ns as f64 / total as f64 * 100.0;
    let starts = seen.iter().scan(0.0, |sum, (_, ns)| {
        let start = *sum;
        *sum += share(*ns);
        Some(start)
    });
    let notes: Vec<(CauseFamily, String)> =
        seen.iter().map(|(family, ns)| (*family, micro(&percent(share(*ns))))).collect();
    html! {
        svg class="share-bar" viewBox="0 0 100 1" preserveAspectRatio="none" role="img" aria-label="Shares of the interruption time; the list below has the figures" {
            @for ((family, ns), start) in seen.iter().zip(starts) {
                rect class={ "f-" (family.class()) } x=(format!("{start:.3}")) y="0" width=(format!("{:.3}", share(*ns))) height="1" {
                    title { (family.word()) ": " (micro(&duration(*ns))) ", " (micro(&percent(share(*ns)))) }
                }
            }
        }
        (legend(&notes))
    }
}
