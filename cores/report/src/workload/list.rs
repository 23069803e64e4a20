//! The workloads of this version.

use lowlat_text::text::{BOLD, GREEN, YELLOW, add_wrapped, paint, usable};
use lowlat_text::units::clean;

#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Listed {
    pub name: &'static str,
    /// Description of what a copy does.
    pub about: &'static str,
    /// The counted unit: "round trips".
    pub unit: &'static str,
    /// Reason that it cannot run here; `None` if it can.
    pub why_not: Option<String>,
}

/// Formats the workloads, each with what it does and whether it can run here.
pub fn list_text(all: &[Listed], width: usize) -> String {
    let width = usable(width);
    let mut out = String::new();
    for one in all {
        let state = if one.why_not.is_none() { paint(GREEN, "can run") } else { paint(YELLOW, "cannot run") };
        out.push_str(&format!("{}  {state}\n", paint(BOLD, &format!("{:<18}", one.name))));
        add_wrapped(&mut out, &format!("{}; counts {}", one.about, one.unit), 2, width);
        if let Some(why) = &one.why_not {
            add_wrapped(&mut out, &clean(why), 2, width);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_says_whether_it_can_run() {
        let one = |name, why_not: Option<&str>| Listed {
            name,
            about: "does something",
            unit: "operations",
            why_not: why_not.map(str::to_owned),
        };
        let text = list_text(&[one("pipe", None), one("nginx", Some("wrk is not installed"))], 80);
        let text = anstream::adapter::strip_str(&text).to_string();
        assert!(text.contains("pipe                can run\n"), "{text}");
        assert!(
            text.contains("cannot run\n  does something; counts operations\n  wrk is not installed\n"),
            "{text}"
        );
    }
}
