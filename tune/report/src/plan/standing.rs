//! The state of a host in a few lines.

use lowlat_host::Reading;
use lowlat_text::{
    text::{BOLD, GREEN, YELLOW, add_field, add_wrapped, paint, usable},
    units::{clean, plural},
};
use serde::Serialize;

/// The state of a host, as far as it is known without a measurement.
#[derive(Debug)]
pub struct Standing {
    /// The plan in force; absent if there is none.
    pub in_force: Reading<PlanState>,
    /// The latest document of `lowlat assess` in the current directory.
    pub assessed: Option<Assessed>,
}

/// State of the plan in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlanState {
    /// It was applied in part, or its undo log is damaged.
    Incomplete,
    /// It was made for another host, whose copy this one is.
    OfOtherHost,
    /// It is rolled back unless it is confirmed.
    Unconfirmed,
    /// It is complete after the next reboot.
    WaitsForReboot,
    /// Its command line must be set manually.
    Refused,
    /// This number of values is not held.
    Drifted(u32),
    Held,
}

/// A document of `lowlat assess`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assessed {
    pub file: String,
    /// Start of the run (RFC 3339).
    pub started_at: String,
    /// Its score, if any setting counted.
    pub score_percent: Option<u8>,
}

/// The next command if the plan in force needs a look.
const STATUS: &str = "sudo lowlat tune status";

/// Formats the standing and the next command.
pub fn standing_text(standing: &Standing, width: usize) -> String {
    let width = usable(width);
    let warn = |text: &str, next| (paint(YELLOW, text), next);
    let (plan, next) = match &standing.in_force {
        Reading::Known(PlanState::Incomplete) => warn("The plan was not applied completely.", STATUS),
        Reading::Known(PlanState::OfOtherHost) => {
            warn("The plan in force was made for the host whose copy this one is.", STATUS)
        }
        Reading::Known(PlanState::Unconfirmed) => warn(
            "The plan in force is rolled back unless you confirm it.",
            "sudo lowlat tune verify && sudo lowlat tune confirm",
        ),
        Reading::Known(PlanState::WaitsForReboot) => {
            warn("The plan in force waits for a reboot.", "sudo reboot")
        }
        Reading::Known(PlanState::Refused) => {
            warn("The command line of the plan in force was refused: set it manually.", STATUS)
        }
        Reading::Known(PlanState::Drifted(count)) => warn(
            &format!("Drifted: {} not as the plan in force wants.", is_are(*count)),
            "sudo lowlat tune verify",
        ),
        Reading::Known(PlanState::Held) => {
            (paint(GREEN, "The plan in force is held."), "sudo lowlat jitter --gate 'max<10us'")
        }
        Reading::Denied => ("Only root can read which plan is in force.".to_owned(), STATUS),
        Reading::Unparsable(why) => {
            warn(&format!("The plan in force cannot be read: {}.", clean(&why.to_string())), STATUS)
        }
        Reading::Absent if standing.assessed.is_some() => {
            ("No plan is in force.".to_owned(), "lowlat tune plan")
        }
        Reading::Absent => ("No plan is in force.".to_owned(), "sudo lowlat assess"),
    };
    let assessed = standing.assessed.as_ref().map_or_else(
        || "Not assessed: there is no result of `lowlat assess` in this directory.".to_owned(),
        |assessed| {
            let score =
                assessed.score_percent.map_or_else(String::new, |score| format!("score {score} of 100, "));
            let (at, file) = (clean(&assessed.started_at), clean(&assessed.file));
            format!("Assessed at {at}: {score}{file}.")
        },
    );
    let mut out =
        format!("{}\n\n", paint(BOLD, "lowlat: from a stock Linux server to a proven low-latency host"));
    add_wrapped(&mut out, &assessed, 0, width);
    out.push_str(&format!("{plan}\n\nNext  {next}\nHelp  lowlat --help\n"));
    out
}

/// "1 value is", "3 values are".
fn is_are(count: u32) -> String {
    format!("{} {}", plural(count as usize, "value"), if count == 1 { "is" } else { "are" })
}

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

#[cfg(test)]
mod tests {
    use super::*;

    fn text(in_force: Reading<PlanState>, assessed: bool) -> String {
        let assessed = assessed.then(|| Assessed {
            file: "lowlat-result.json".into(),
            started_at: "2026-11-24T10:00:00Z".into(),
            score_percent: Some(46),
        });
        anstream::adapter::strip_str(&standing_text(&Standing { in_force, assessed }, 80)).to_string()
    }

    #[test]
    fn each_state_names_its_own_next_command() {
        let next = |in_force, assessed| {
            let text = text(in_force, assessed);
            text.lines().find_map(|line| line.strip_prefix("Next  ")).unwrap().to_owned()
        };
        assert_eq!(next(Reading::Absent, false), "sudo lowlat assess");
        assert_eq!(next(Reading::Absent, true), "lowlat tune plan");
        assert_eq!(next(Reading::Known(PlanState::WaitsForReboot), true), "sudo reboot");
        assert_eq!(next(Reading::Known(PlanState::Refused), true), "sudo lowlat tune status");
        assert_eq!(next(Reading::Known(PlanState::OfOtherHost), true), "sudo lowlat tune status");
        assert_eq!(next(Reading::Known(PlanState::Drifted(3)), true), "sudo lowlat tune verify");
        assert_eq!(next(Reading::Known(PlanState::Held), true), "sudo lowlat jitter --gate 'max<10us'");
        assert_eq!(next(Reading::Denied, false), "sudo lowlat tune status");
    }

    #[test]
    fn the_text_says_what_was_found() {
        let drifted = text(Reading::Known(PlanState::Drifted(1)), true);
        assert!(drifted.contains("Drifted: 1 value is not as the plan in force wants."), "{drifted}");
        assert!(drifted.contains("Assessed at 2026-11-24T10:00:00Z: score 46 of 100, lowlat-result.json."));
        assert!(text(Reading::Absent, false).contains("Not assessed"));
    }
}
