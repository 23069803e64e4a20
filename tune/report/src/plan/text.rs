//! Plan as text: the changes by layer, and what is not planned with the reason.

use crate::audit::grouping::layer_title;
use crate::plan::three_way::add_signed;
use lowlat_host::Reading;
use lowlat_plan::{LeftOut, Plan};
use lowlat_settings::{
    Risk,
    change::{BootToken, Change, Moment, Target, WhyLeftOut},
};
use lowlat_text::text::{BOLD, DIM, RED, YELLOW, add_heading, add_notes, add_wrapped, paint, usable};
use lowlat_text::units::{clean, plural};

/// Highest number of changes shown per setting; a host of a thousand CPUs has as many files.
const SHOWN_MAX: usize = 6;
/// Columns before the text of a change.
const INDENT: usize = 4;

/// Formats a plan for a terminal of `width` columns.
pub fn plan_text(plan: &Plan, width: usize) -> String {
    let width = usable(width);
    let mut out = String::new();
    for text in plan.unsupported.iter().chain([&headline(plan)]) {
        add_wrapped(&mut out, text, 0, width);
    }
    if !plan.hindrances.is_empty() {
        add_heading(&mut out, "Not possible here as it is");
        for line in &plan.hindrances {
            add_wrapped(&mut out, &clean(line), 2, width);
        }
    }
    let mut layer = "";
    let mut rest = plan.changes.as_slice();
    while let Some(first) = rest.first() {
        if first.layer == layer {
            out.push('\n');
        } else {
            layer = &first.layer;
            add_heading(&mut out, layer_title(&clean(layer)));
        }
        let same = rest
            .iter()
            .take_while(|change| {
                change.settings.first() == first.settings.first() && is_file(change) == is_file(first)
            })
            .count();
        let (block, others) = rest.split_at(same.max(1));
        add_block(&mut out, block, width);
        rest = others;
    }
    add_warnings(&mut out, plan, width);
    add_left_out(&mut out, plan, width);
    out
}

fn is_file(change: &Change) -> bool {
    matches!(change.target, Target::OwnedFile { .. })
}

/// Returns "Plan for profile trading: 41 changes for 23 settings. A reboot completes it. Isolated: …".
fn headline(plan: &Plan) -> String {
    if plan.changes.is_empty() {
        return plan
            .checked()
            .not_judged(false, "settings")
            .unwrap_or_else(|| format!("Nothing to change for profile {}.", plan.profile));
    }
    let mut settings: Vec<&String> = plan.changes.iter().flat_map(|change| &change.settings).collect();
    settings.sort_unstable();
    settings.dedup();
    let reboot = if plan.needs_reboot() { "A reboot completes it." } else { "No reboot is needed." };
    let cpus = if plan.isolated.is_empty() {
        String::new()
    } else {
        format!(" Isolated: {:#}. Housekeeping: {:#}.", plan.isolated, plan.housekeeping)
    };
    format!(
        "Plan for profile {}: {} for {}. {reboot}{cpus} Nothing was written.",
        plan.profile,
        plural(plan.changes.len(), "change"),
        plural(settings.len(), "setting"),
    )
}

/// Adds the changes of one setting: its id, its reason, then the old and the new values.
fn add_block(out: &mut String, block: &[Change], width: usize) {
    let Some(first) = block.first() else { return };
    let title = match &first.target {
        Target::CommandLine { tokens } => format!("command line: {}", plural(tokens.len(), "parameter")),
        Target::OwnedFile { path } => clean(path),
        _ => clean(&first.settings.join(", ")),
    };
    out.push_str(&format!("  {}{}\n", paint(BOLD, &title), marks(first)));
    add_wrapped(out, &clean(first_sentence(&first.reason)), INDENT, width);
    if let Target::CommandLine { tokens } = &first.target {
        add_tokens(out, tokens, width);
        add_signed(out, INDENT, '+', &format!("new line: {}", first.after), width);
        return;
    }
    for change in block.iter().take(SHOWN_MAX) {
        add_change(out, change, width);
    }
    if let Some(more) = block.len().checked_sub(SHOWN_MAX).filter(|more| *more > 0) {
        out.push_str(&format!(
            "{:INDENT$}{}\n",
            "",
            paint(DIM, &format!("and {more} more; --json shows all"))
        ));
    }
}

/// Returns the moment and the risk of a change, such as "  [now and at boot; risk: RAS]".
fn marks(change: &Change) -> String {
    let mut marks = Vec::new();
    match (&change.target, change.moment) {
        (Target::CommandLine { .. }, _) => marks.push(paint(YELLOW, "reboot")),
        (_, Moment::AtBoot) => marks.push("at boot".to_owned()),
        (_, Moment::Now) => marks.push("now".to_owned()),
        (_, Moment::NowAndAtBoot) => marks.push("now and at boot".to_owned()),
    }
    if !matches!(change.risk, Risk::None) {
        marks.push(paint(RED, &format!("risk: {}", change.risk.word())));
    }
    format!("  [{}]", marks.join("; "))
}

fn first_sentence(text: &str) -> &str {
    text.find(". ").map_or(text, |at| &text[..=at])
}

fn add_tokens(out: &mut String, tokens: &[BootToken], width: usize) {
    for token in tokens {
        out.push_str(&format!("{:INDENT$}{}\n", "", paint(DIM, &clean(&token.setting))));
        if let Some(before) = &token.before {
            add_signed(out, INDENT, '-', before, width);
        }
        if let Some(value) = &token.value {
            let spelled =
                if value.is_empty() { token.name.clone() } else { format!("{}={value}", token.name) };
            add_signed(out, INDENT, '+', &spelled, width);
        }
    }
}

fn add_change(out: &mut String, change: &Change, width: usize) {
    if is_file(change) {
        for line in change.before.text().lines() {
            add_signed(out, INDENT, '-', line, width);
        }
        for line in change.after.lines() {
            add_signed(out, INDENT, '+', line, width);
        }
        return;
    }
    let kind = change.target.kind();
    let before = match &change.before {
        Reading::Known(text) => text.clone(),
        other => other.missing_in_words().map_or_else(String::new, |words| format!("({words})")),
    };
    let label = format!("{}{}", kind.facts().name, kind.facts().separator);
    let or_none = |text: &str| if text.is_empty() { "none".to_owned() } else { text.to_owned() };
    add_signed(out, INDENT, '-', &format!("{label}{}", or_none(&before)), width);
    add_signed(out, INDENT, '+', &format!("{label}{}", or_none(&change.after)), width);
}

fn add_warnings(out: &mut String, plan: &Plan, width: usize) {
    if plan.warnings.is_empty() {
        return;
    }
    add_heading(out, "Before you apply");
    add_notes(out, &plan.warnings, width);
}

/// Adds the faults for which nothing is planned, by kind of reason, and counts the other settings.
fn add_left_out(out: &mut String, plan: &Plan, width: usize) {
    let mut why: Option<WhyLeftOut> = None;
    let faults = plan.left_out.iter().filter(|left| left.why.is_of_fault());
    for left in faults {
        if why.map(title) != Some(title(left.why)) {
            add_heading(out, &format!("Not planned: {}", title(left.why)));
            if matches!(left.why, WhyLeftOut::NotAccepted(_)) {
                let advice = "Accept one with --accept-risk ID, or with accept-risk in the role file.";
                add_wrapped(out, advice, 2, width);
            }
            why = Some(left.why);
        }
        let risk = match left.why {
            WhyLeftOut::NotAccepted(risk) => paint(RED, &format!("  [risk: {}]", risk.word())),
            _ => String::new(),
        };
        out.push_str(&format!("  {}{risk}\n", clean(&left.setting)));
        add_wrapped(out, &clean(&left.text), INDENT, width);
    }
    out.push('\n');
    add_wrapped(out, &counts(&plan.left_out), 0, width);
}

fn title(why: WhyLeftOut) -> &'static str {
    match why {
        WhyLeftOut::NotAccepted(_) => "risk not accepted",
        WhyLeftOut::Harmful => "more harm than benefit",
        WhyLeftOut::YourChoice => "your choice",
        WhyLeftOut::ByAnother => "follows from another change",
        WhyLeftOut::Kernel => "unsupported by this kernel",
        WhyLeftOut::Firmware => "set in the firmware",
        WhyLeftOut::Hardware => "hardware, or outside this host",
        WhyLeftOut::StateOfTheMoment => "temporary state",
        WhyLeftOut::Unfit => "unexpected name or value on this host",
        WhyLeftOut::Unknown => "could not be checked",
        WhyLeftOut::NotApplicable => "does not apply",
        WhyLeftOut::Good => "good",
    }
}

fn counts(left_out: &[LeftOut]) -> String {
    let count = |why: WhyLeftOut| left_out.iter().filter(|left| left.why == why).count();
    format!(
        "Of the other settings, {} good, {} do not apply, and {} could not be checked (`lowlat audit` shows why).",
        match count(WhyLeftOut::Good) {
            1 => "1 is".to_owned(),
            number => format!("{number} are"),
        },
        count(WhyLeftOut::NotApplicable),
        count(WhyLeftOut::Unknown)
    )
}
