//! Another tool's configuration as a plan, judged, for the terminal.

use anstyle::Style;
use lowlat_host::Reading;
use lowlat_plan::import::{Effect, Import, Judged};
use lowlat_text::text::{BOLD, DIM, GREEN, RED, add_wrapped, cut, paint, usable, wrap};
use lowlat_text::units::{clean, plural};

/// Width of the column of verdicts.
const LABEL: usize = 10;
/// The end of a target's name that is a parameter of the command line.
const ON_THE_LINE: &str = " on the command line";
/// Longest present value shown, in characters.
const PRESENT_CHARS_MAX: usize = 40;

/// Style and word of a request, and the heading of those like it.
const KINDS: [(Style, &str, &str); 3] = [
    (RED, "differs", "Differs from the profile"),
    (GREEN, "agrees", "As the profile wants"),
    (DIM, "unjudged", "Not in the catalogue, or not on this host"),
];

fn kind(one: &Judged) -> (Style, &'static str, &'static str) {
    match one.effect {
        Effect::Differs { .. } => KINDS[0],
        Effect::Agrees { .. } => KINDS[1],
        Effect::Unjudged => KINDS[2],
    }
}

/// Formats what the file `name` asks for: first what differs from the profile, then what agrees, then the rest.
pub fn import_text(import: &Import, name: &str, profile: &str, width: usize) -> String {
    let width = usable(width);
    let mut out = String::new();
    let judged = import.judged().count();
    let verdict = match (judged, import.harmful().count()) {
        (0, _) => "none of them can be judged".to_owned(),
        (judged, harmful) => {
            let differ = match harmful {
                0 => "none differs".to_owned(),
                1 => "1 differs".to_owned(),
                many => format!("{many} differ"),
            };
            format!("{judged} can be judged; {differ} from profile {profile}")
        }
    };
    let head = format!(
        "{} for {}: {}, {verdict}.",
        clean(name),
        import.tool.name(),
        plural(import.requests.len(), "value")
    );
    let head = match import.invalid().count() {
        0 => head,
        1 => format!("{head} 1 value cannot be parsed."),
        many => format!("{head} {many} values cannot be parsed."),
    };
    add_wrapped(&mut out, &paint(BOLD, &head), 0, width + paint(BOLD, "").len());
    let sum = format!(
        "{} of this host differ from the profile now; {} would if the file were in force.",
        plural(import.faults_now, "setting"),
        import.faults_then
    );
    add_wrapped(&mut out, &sum, 0, width);
    for (style, word, title) in KINDS {
        let members: Vec<&Judged> = import.requests.iter().filter(|one| kind(one).1 == word).collect();
        if members.is_empty() {
            continue;
        }
        out.push_str(&format!("\n{}\n", paint(BOLD, title)));
        for one in members {
            add_one(&mut out, one, (style, word), width);
        }
    }
    for (is_invalid, title) in [(true, "Cannot be parsed"), (false, "Left out")] {
        let parts: Vec<_> = import.unread.iter().filter(|part| part.is_invalid == is_invalid).collect();
        if parts.is_empty() {
            continue;
        }
        out.push_str(&format!("\n{}\n", paint(BOLD, title)));
        for part in parts {
            add_wrapped(&mut out, &format!("{}: {}", clean(&part.place), clean(&part.why)), 2, width);
        }
    }
    out
}

fn add_one(out: &mut String, one: &Judged, (style, word): (Style, &str), width: usize) {
    let present = match &one.present {
        _ if one.is_present => "the host has it".to_owned(),
        Reading::Known(now) => format!("now {}", cut(&clean(now), PRESENT_CHARS_MAX)),
        Reading::Absent if one.target.ends_with(ON_THE_LINE) => "not set now".to_owned(),
        Reading::Absent => "no present value found".to_owned(),
        Reading::Denied => "only root can read it".to_owned(),
        Reading::Unparsable(_) => "its present value is unclear".to_owned(),
    };
    let value = if one.value.is_empty() { "removed".to_owned() } else { clean(&one.value) };
    // A parameter of the command line says its name itself.
    let text = match one.target.strip_suffix(ON_THE_LINE) {
        Some(_) if !one.value.is_empty() => format!("{value} on the command line ({present})"),
        _ => format!("{} = {value} ({present})", clean(&one.target)),
    };
    for (at, line) in wrap(&text, width.saturating_sub(LABEL + 2)).iter().enumerate() {
        let label = if at == 0 { word } else { "" };
        out.push_str(&format!("  {}{line}\n", paint(style, &format!("{label:LABEL$}"))));
    }
    if let Effect::Differs { settings } = &one.effect {
        for wrong in settings {
            let wanted = if wrong.wanted.is_empty() { "something else" } else { &wrong.wanted };
            let text = format!("{}: wanted {}", clean(&wrong.id), clean(wanted));
            add_wrapped(out, &text, LABEL + 4, width);
        }
    }
}
