//! The profiles as text.

use lowlat_host::Reading;
use lowlat_text::text::{BOLD, GREEN, YELLOW, add_field, add_wrapped, paint, usable};
use lowlat_text::units::clean;
use serde::Serialize;

/// A profile and its state on this host.
#[derive(Debug, Serialize)]
pub struct ProfileLine {
    pub name: &'static str,
    pub purpose: &'static str,
    /// True if a plan of this profile is in force; absent if there is no plan, or in a capture.
    pub is_in_force: Reading<bool>,
    /// True if it is used unless another is named.
    pub is_default: bool,
    /// True if it is made for the host's processor.
    pub suits_processor: Reading<bool>,
}

/// Formats the profiles, with TuneD's active profile below them if there is one.
pub fn profiles_text(
    profiles: &[ProfileLine],
    tuned: Option<&str>,
    is_capture: bool,
    width: usize,
) -> String {
    let width = usable(width);
    let mut out = String::new();
    for profile in profiles {
        let mut marks = Vec::new();
        if profile.is_in_force == Reading::Known(true) {
            marks.push(paint(GREEN, "in force"));
        }
        if profile.is_default {
            marks.push("default".to_owned());
        }
        match profile.suits_processor {
            Reading::Known(true) => {}
            Reading::Known(false) => marks.push(paint(YELLOW, "not made for this processor")),
            _ => marks.push("processor unknown".to_owned()),
        }
        let marks = if marks.is_empty() { String::new() } else { format!("  {}", marks.join(", ")) };
        out.push_str(&format!("{}{marks}\n", paint(BOLD, profile.name)));
        add_wrapped(&mut out, profile.purpose, 2, width);
    }
    out.push('\n');
    if is_capture {
        out.push_str("A capture does not contain the plan in force.\n");
    } else if profiles.iter().all(|profile| profile.is_in_force == Reading::Absent) {
        out.push_str("No plan is in force.\n");
    } else if profiles.iter().any(|profile| matches!(profile.is_in_force, Reading::Denied)) {
        out.push_str("Only root can read which plan is in force.\n");
    }
    if let Some(tuned) = tuned.filter(|tuned| !tuned.is_empty()) {
        add_wrapped(&mut out, &format!("TuneD runs with its profile {}.", clean(tuned)), 0, width);
    }
    add_field(&mut out, "Next", "lowlat tune plan --profile NAME", 6, width);
    out
}
