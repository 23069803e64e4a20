//! Outcome of an apply or a rollback, and the status of the plan in force, as text.

use crate::audit::grouping::grouped;
use crate::plan::three_way::add_three_way;
use lowlat_host::{CpuSet, Reading, Role};
use lowlat_plan::{
    Plan,
    outcome::{
        ApplyOutcome, Confirmation, Fate, NotRestored, PlanInForce, RebootStatus, Restored, RollbackOutcome,
        StepCount, TuneStatus, UnitStatus,
    },
};
use lowlat_settings::{
    change::{Change, Target},
    judge::first_of,
};
use lowlat_text::text::{
    BOLD, DIM, GREEN, RED, YELLOW, add_field, add_heading, add_notes, add_wrapped, paint, usable,
};
use lowlat_text::units::{clean, plural};
use std::collections::BTreeSet;

/// Width of the label column.
const LABEL: usize = 14;
/// Highest number of entries shown per list.
const SHOWN_MAX: usize = 12;

/// Formats the outcome of applying `plan`, for a terminal of `width` columns.
pub fn apply_text(plan: &Plan, outcome: &ApplyOutcome, width: usize) -> String {
    let width = usable(width);
    let mut out = String::new();
    add_wrapped(&mut out, &apply_headline(outcome), 0, width);
    for fate in [Fate::Unchanged, Fate::Done] {
        add_fate(&mut out, plan, outcome, fate, width);
    }
    add_refused(&mut out, plan, outcome, width);
    if let Some(loader) = &outcome.boot_loader {
        add_field(&mut out, "boot loader", loader, LABEL, width);
    }
    add_field(&mut out, "units", &outcome.units.join(" "), LABEL, width);
    add_notes(&mut out, &outcome.notes, width);
    add_heading(&mut out, "Next");
    add_wrapped(&mut out, &next_step(outcome), 2, width);
    out
}

fn apply_headline(outcome: &ApplyOutcome) -> String {
    let (done, unchanged, refused) =
        (outcome.count(Fate::Done), outcome.count(Fate::Unchanged), outcome.count(Fate::Refused));
    if !outcome.is_changed && refused == 0 {
        return format!("Nothing changed: plan {} is already in force.", outcome.plan_id);
    }
    let refused = if refused == 0 { String::new() } else { format!(", {refused} refused at least in part") };
    format!(
        "Plan {} is in force: {} applied, {unchanged} unchanged{refused}.",
        outcome.plan_id,
        plural(done, "change")
    )
}

fn next_step(outcome: &ApplyOutcome) -> String {
    let verify = if outcome.needs_reboot {
        "Reboot, then run `lowlat tune verify`."
    } else {
        "Run `lowlat tune verify`."
    };
    match outcome.confirm_within_s {
        Some(s) => format!(
            "{verify} Then run `lowlat tune confirm` within {} of {}, or everything is rolled back.",
            span(s),
            if outcome.needs_reboot { "the boot" } else { "now" }
        ),
        None => verify.to_owned(),
    }
}

/// Adds the settings whose changes had this fate, each with the number of its changes.
fn add_fate(out: &mut String, plan: &Plan, outcome: &ApplyOutcome, fate: Fate, width: usize) {
    let of_fate = outcome.changes.iter().filter(|change| change.fate == fate);
    let changes = of_fate.filter_map(|outcome| plan.changes.get(outcome.change));
    let settings = grouped(changes.map(|change| (short_name(change), change)));
    let texts = settings.into_iter().map(|(name, changes)| match changes.len() {
        1 => name,
        count => format!("{name} ({count})"),
    });
    let label = if fate == Fate::Done { "applied" } else { "unchanged" };
    add_field(out, label, &clean(&texts.collect::<Vec<_>>().join(", ")), LABEL, width);
}

/// Returns the setting behind a change, or the file or command line that several settings share.
fn short_name(change: &Change) -> String {
    match &change.target {
        Target::CommandLine { tokens } => {
            format!("command line with {}", plural(tokens.len(), "parameter"))
        }
        Target::OwnedFile { path } => path.clone(),
        _ => change.settings.first().cloned().unwrap_or_default(),
    }
}

fn add_refused(out: &mut String, plan: &Plan, outcome: &ApplyOutcome, width: usize) {
    let refused = outcome.changes.iter().filter(|change| change.fate == Fate::Refused);
    let lines =
        refused.filter_map(|outcome| Some((plan.changes.get(outcome.change)?, outcome.reasons.join("; "))));
    add_reasons(out, "Refused", lines, width);
}

/// Adds changes with their reasons; changes of one setting for one reason share an entry.
fn add_reasons<'a>(
    out: &mut String,
    title: &str,
    lines: impl Iterator<Item = (&'a Change, String)>,
    width: usize,
) {
    let thing = |change: &Change| match &change.target {
        // The setting says it all.
        Target::CommandLine { .. } | Target::OwnedFile { .. } => String::new(),
        target => target.kind().facts().owner,
    };
    let groups = grouped(lines.map(|(change, reason)| ((short_name(change), reason), thing(change))));
    if groups.is_empty() {
        return;
    }
    add_heading(out, title);
    for ((setting, reason), things) in groups {
        out.push_str(&format!("  {}\n", paint(YELLOW, &clean(&setting))));
        let named: Vec<String> = things.into_iter().filter(|thing| !thing.is_empty()).collect();
        let things = if named.is_empty() { named.concat() } else { some_of(&named) + ": " };
        add_wrapped(out, &clean(&format!("{things}{reason}")), 4, width);
    }
}

/// Formats the changes that cannot be made on this host, for the confirmation prompt; empty if all can.
pub fn not_here_text(plan: &Plan, left: &[(usize, String)], notes: &[String], width: usize) -> String {
    let mut out = String::new();
    let lines = left.iter().filter_map(|(at, why)| Some((plan.changes.get(*at)?, why.clone())));
    add_reasons(&mut out, "Cannot be applied on this host", lines, usable(width));
    add_notes(&mut out, notes, usable(width));
    out
}

/// Formats the outcome of a rollback or its preview.
pub fn rollback_text(outcome: &RollbackOutcome, width: usize) -> String {
    let width = usable(width);
    let mut out = String::new();
    add_wrapped(&mut out, &rollback_headline(outcome), 0, width);
    add_restored(&mut out, &outcome.restored, width);
    add_not_restored(&mut out, "Deliberately left unchanged", &outcome.given_up, width);
    if !outcome.conflicts.is_empty() {
        add_heading(&mut out, "Changed since the apply, and left unchanged");
        for three in &outcome.conflicts {
            add_three_way(&mut out, three, width);
        }
        let path = outcome.conflicts.first().map_or("PATH", |three| three.name.as_str());
        let advice = format!(
            "To restore the old state anyway, path by path: lowlat tune rollback --force-path '{}'",
            clean(path)
        );
        add_wrapped(&mut out, &advice, 2, width);
    }
    add_not_restored(&mut out, "Could not be restored; run the rollback again", &outcome.failures, width);
    for directory in &outcome.directories_left {
        let text = format!("lowlat created {directory}, which now contains other files. It is kept.");
        add_wrapped(&mut out, &clean(&text), 2, width);
    }
    add_not_restored(&mut out, "Still on the host; no rollback can undo it", &outcome.remaining, width);
    if let Some(damage) = &outcome.damage {
        add_damage(&mut out, outcome, damage, width);
    }
    add_notes(&mut out, &outcome.notes, width);
    if let Some(plan) = &outcome.in_force {
        add_wrapped(&mut out, &format!("Plan {plan} is in force."), 0, width);
    }
    if outcome.needs_reboot {
        let text = "Reboot to complete the rollback: the kernel still runs with lowlat's command line.";
        add_wrapped(&mut out, text, 0, width);
    }
    if !outcome.is_preview && outcome.is_complete() && outcome.in_force.is_none() {
        out.push_str("Next: lowlat tune plan\n");
    }
    out
}

/// Adds why not everything can be restored, and the next command.
fn add_damage(out: &mut String, outcome: &RollbackOutcome, damage: &str, width: usize) {
    add_heading(out, "The undo log is unreliable");
    add_wrapped(out, &clean(&format!("{damage}.")), 2, width);
    let next = match (outcome.is_preview, outcome.restored.is_empty()) {
        (false, _) => "Everything in its intact records was restored. Check the host for other changes.",
        (true, false) => {
            "Nothing was changed. `lowlat tune rollback --accept-damage` restores the entries above from the intact \
             records and abandons the rest. Restore /var/lib/lowlat from a backup first to restore more."
        }
        (true, true) => {
            "Nothing was changed, and no intact record is left. Restore /var/lib/lowlat from a backup. Or undo the \
             changes manually and run `lowlat tune rollback --accept-damage`."
        }
    };
    add_wrapped(out, next, 2, width);
}

fn rollback_headline(outcome: &RollbackOutcome) -> String {
    let restored = outcome.restored.len();
    let touched = restored + outcome.conflicts.len() + outcome.failures.len() + outcome.given_up.len();
    if outcome.is_of_nothing() {
        return "Nothing to roll back.".to_owned();
    }
    if touched + outcome.unchanged_count + outcome.expired_count == 0 {
        return "Nothing can be restored.".to_owned();
    }
    let mut parts = vec![if outcome.is_preview {
        format!("Would restore: {restored}")
    } else {
        format!("Restored: {restored}")
    }];
    let mut count = |number: usize, what: &str| {
        if number > 0 {
            parts.push(format!("{what}: {number}"));
        }
    };
    count(outcome.unchanged_count, "already restored");
    count(outcome.expired_count, "reset by a reboot");
    count(outcome.conflicts.len(), "changed since and kept");
    count(outcome.failures.len(), "failed");
    format!("{}.", parts.join(", "))
}

/// Adds the restored objects by part of the plan; long lists are cut.
fn add_restored(out: &mut String, restored: &[Restored], width: usize) {
    let mut seen = BTreeSet::new();
    let titled = restored.iter().map(|one| (part_title(&one.plan), one.name.as_str()));
    for (title, names) in grouped(titled.filter(|one| seen.insert(*one))) {
        let names: Vec<String> = names.into_iter().map(clean).collect();
        add_field(out, title, &some_of(&names), LABEL, width);
    }
}

fn some_of(names: &[String]) -> String {
    first_of(names, SHOWN_MAX, [", ", ", and "])
}

/// Returns the title of a part of a plan, by its id in the undo log.
fn part_title(log_id: &str) -> &'static str {
    let part = log_id.split_once('/').map_or("", |(_, part)| part);
    match part.split('.').next().unwrap_or(part) {
        "run" => "run time",
        "files" => "files",
        "boot" => "boot loader",
        "loader" => "boot menu",
        "persist" => "units",
        "confirm" => "dead-man",
        "tuned" => "TuneD",
        "queues" => "queues",
        part if part.starts_with("boot-") => "run time",
        _ => "other",
    }
}

fn add_not_restored(out: &mut String, title: &str, all: &[NotRestored], width: usize) {
    if all.is_empty() {
        return;
    }
    add_heading(out, title);
    for NotRestored { name, reason } in all.iter().take(SHOWN_MAX) {
        add_wrapped(out, &clean(&format!("{name}: {reason}")), 2, width);
    }
    if let Some(more) = all.len().checked_sub(SHOWN_MAX).filter(|more| *more > 0) {
        out.push_str(&format!("  {}\n", paint(DIM, &format!("and {more} more; --json shows all"))));
    }
}

/// Formats the status of the plan in force. `since` is the time of the apply.
pub fn status_text(status: &TuneStatus, since: &str, width: usize) -> String {
    let width = usable(width);
    let mut out = String::new();
    match &status.in_force {
        Reading::Known(plan) => add_plan(&mut out, status, plan, since, width),
        Reading::Absent if status.reboot == RebootStatus::PendingRollback => {
            let text = "No plan is in force. The kernel keeps the reverted parameters until the reboot.";
            add_wrapped(&mut out, text, 0, width);
        }
        Reading::Absent => out.push_str("No plan is in force.\n"),
        _ => {
            let text = "The plan in force is readable by root only. Run this command with sudo.";
            add_wrapped(&mut out, text, 0, width);
        }
    }
    add_units(&mut out, &status.units, width);
    add_steps(&mut out, &status.steps, width);
    add_log(&mut out, status, width);
    out
}

/// Returns the requirements of a role besides its profile.
fn role(role: &Role) -> String {
    let cpus = |cpus: &Option<CpuSet>| cpus.as_ref().map_or_else(|| "none".to_owned(), CpuSet::to_list);
    let mut text = format!("housekeeping {}, isolated {}", cpus(&role.housekeeping), cpus(&role.isolated));
    if !role.nics.is_empty() {
        text += &format!("; interfaces {}", role.nics.join(", "));
    }
    if !role.accepted_risks.is_empty() {
        text += &format!("; accepts the risks of {}", role.accepted_risks.join(", "));
    }
    text
}

fn add_plan(out: &mut String, status: &TuneStatus, plan: &PlanInForce, since: &str, width: usize) {
    let complete = if plan.is_complete { paint(GREEN, "in force") } else { paint(RED, "partly in force") };
    out.push_str(&format!("Plan {} is {complete}.\n", paint(BOLD, &clean(&plan.plan_id))));
    let mut field = |label: &str, text: &str| add_field(out, label, &clean(text), LABEL, width);
    if plan.is_of_other_host {
        field(
            "another host",
            "it was made for the host whose copy this one is, and is not applied at boot: keep it with `lowlat tune adopt`, \
             or take it back with `lowlat tune rollback`",
        );
    }
    if !plan.is_complete {
        field("interrupted", "finish with `lowlat tune apply`, or revert with `lowlat tune rollback`");
    }
    field("profile", &format!("{}, {}", plan.profile, plural(plan.change_count, "change")));
    field("role", &role(&plan.role));
    let ago = plan.age_s.map_or_else(
        || "the clock has been set back since".to_owned(),
        |seconds| format!("{} ago", span(seconds)),
    );
    let boot = if plan.is_of_this_boot { "in this boot" } else { "in an earlier boot" };
    field("since", &format!("{since} ({ago}), {boot}"));
    let is_line = |target: &Target| matches!(target, Target::CommandLine { .. });
    let of_line = plan.refused.iter().find(|refusal| is_line(&refusal.target));
    match of_line.filter(|_| status.reboot == RebootStatus::Refused) {
        Some(refusal) => field("command line", &format!("refused: {}", refusal.reason)),
        None => field("command line", reboot_words(status.reboot)),
    }
    match plan.refused.iter().filter(|refusal| !is_line(&refusal.target)).count() {
        0 => {}
        others => field(
            "refused",
            &format!("{}: `lowlat tune verify` shows the reasons", plural(others, "other change")),
        ),
    }
    field("confirmation", &confirmation_words(plan, status.reboot));
    if !plan.earlier.is_empty() {
        field(
            "earlier plans",
            &format!("{} (`lowlat tune rollback --to ID` returns to one)", plan.earlier.join(", ")),
        );
    }
}

fn reboot_words(reboot: RebootStatus) -> &'static str {
    match reboot {
        RebootStatus::NotNeeded => "not changed by the plan",
        RebootStatus::Pending => "waits for the reboot",
        RebootStatus::PendingRollback => "reverted; in effect until the reboot",
        RebootStatus::Done => "in effect",
        RebootStatus::Ineffective => "parameters are missing since the reboot: run `lowlat tune verify`",
        RebootStatus::Refused => "refused",
        RebootStatus::Unknown => "unknown",
    }
}

fn confirmation_words(plan: &PlanInForce, reboot: RebootStatus) -> String {
    let Confirmation::Waiting { within_s, left_s } = plan.confirmation else {
        return "none needed".to_owned();
    };
    match (left_s, reboot) {
        (Some(left), _) => {
            format!("{} left: run `lowlat tune confirm`, or everything is rolled back", span(left))
        }
        (None, RebootStatus::Pending) => {
            format!("not needed until the reboot; then within {}", span(within_s))
        }
        (None, _) => format!("needed within {} of the boot; its timer is not running", span(within_s)),
    }
}

/// Formats a time span with its two largest units: "9 min 30 s".
fn span(seconds: u64) -> String {
    let units = [(86_400, "d"), (3_600, "h"), (60, "min"), (1, "s")];
    let mut parts = Vec::new();
    let mut rest = seconds;
    for (length, unit) in units {
        if rest >= length {
            parts.push(format!("{} {unit}", rest / length));
            rest %= length;
        }
    }
    if parts.is_empty() {
        return "0 s".to_owned();
    }
    parts.truncate(2);
    parts.join(" ")
}

fn add_units(out: &mut String, units: &[UnitStatus], width: usize) {
    let words = |unit: &UnitStatus| match (&unit.is_there, unit.is_enabled) {
        (Reading::Known(_), true) => Some(format!("{} enabled", unit.name)),
        (Reading::Known(_), false) => Some(format!("{} not enabled", unit.name)),
        (Reading::Absent, _) => None,
        (other, _) => Some(format!("{} {}", unit.name, other.missing_in_words().unwrap_or_default())),
    };
    let texts: Vec<String> = units.iter().filter_map(words).collect();
    let text = if texts.is_empty() { "none".to_owned() } else { texts.join(", ") };
    add_field(out, "units", &text, LABEL, width);
}

fn add_steps(out: &mut String, steps: &Reading<Vec<StepCount>>, width: usize) {
    let Reading::Known(counts) = steps else {
        add_field(out, "steps", "the undo log is readable by root only", LABEL, width);
        return;
    };
    let parts = grouped(counts.iter().map(|count| (part_title(&count.plan), count.count)));
    let text = |(title, counts): &(&str, Vec<usize>)| format!("{title} {}", counts.iter().sum::<usize>());
    let texts: Vec<String> = parts.iter().map(text).collect();
    let text = if texts.is_empty() { "none in force".to_owned() } else { texts.join(", ") };
    add_field(out, "steps", &text, LABEL, width);
}

fn add_log(out: &mut String, status: &TuneStatus, width: usize) {
    if !status.unfinished.is_empty() {
        let text = format!("{}: started but not finished", status.unfinished.join(", "));
        add_field(out, "unfinished", &clean(&text), LABEL, width);
    }
    if let Some(torn) = &status.torn {
        add_field(out, "log", &clean(&format!("{torn} (harmless)")), LABEL, width);
    }
    if let Some(damage) = &status.damage {
        let text = format!("{damage}; `lowlat tune rollback --dry-run` shows what can still be restored");
        add_field(out, "log", &clean(&text), LABEL, width);
    }
}
