//! Differences between two hosts as text.

use lowlat_host::diff::Difference;
use lowlat_text::text::{BOLD, DIM, GREEN, RED, paint, usable, wrap};
use lowlat_text::units::clean;

/// Formats each difference in three lines: the path, the first host's value, the second host's value.
pub fn host_diff_text(differences: &[Difference], width: usize) -> String {
    let width = usable(width);
    if differences.is_empty() {
        return "The hosts have no lasting differences.\n".to_owned();
    }
    let mut out = String::new();
    for difference in differences {
        out.push_str(&paint(BOLD, &clean(&difference.path)));
        out.push('\n');
        for (sign, style, value) in [('-', RED, &difference.a), ('+', GREEN, &difference.b)] {
            let text = value.as_deref().map_or_else(|| paint(DIM, "(nothing)"), clean);
            for (at, line) in wrap(&text, width - 4).iter().enumerate() {
                let sign = if at == 0 { sign } else { ' ' };
                out.push_str(&format!("  {} {line}\n", paint(style, &sign.to_string())));
            }
        }
    }
    out.push_str(&format!("\n{}\n", lowlat_text::units::plural(differences.len(), "difference")));
    out
}
