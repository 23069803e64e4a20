//! Verification as text: the headline, the rows that are not held with their culprits, and the counts.

use crate::audit::grouping::{grouped, layer_title, listed};
use anstyle::Style;
use lowlat_host::{CpuSet, Reading};
use lowlat_plan::verify::{Culprit, Headline, Outcome, Row, Standing, TickLoad, TickProof, Verification};
use lowlat_text::text::{
    BOLD, DIM, GREEN, RED, YELLOW, add_heading, add_notes, add_painted, add_wrapped, paint, usable, wrap,
};
use lowlat_text::units::{clean, count, duration, plural};

/// Width of the standing column: the longest word and two spaces.
const STANDING_WIDTH: usize = 13;
const INDENT: usize = 2;
/// Highest number of names in one entry.
const NAMED_MAX: usize = 4;

/// Options of a verification's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VerificationTextOptions<'a> {
    /// True to show rows that are held too.
    pub show_all: bool,
    pub width: usize,
    /// Time of the apply, for display; empty if unknown.
    pub applied: &'a str,
}

/// Formats the headline, every row that is not held with its culprit, and the counts.
pub fn verification_text(verification: &Verification, options: &VerificationTextOptions<'_>) -> String {
    let width = usable(options.width);
    let mut out = String::new();
    add_wrapped(&mut out, &clean(&subject(verification, options.applied)), 0, width);
    for line in headline(verification) {
        let line = clean(&line);
        // Wrapping collapses double spaces.
        let lines = if line.chars().count() <= width { vec![line] } else { wrap(&line, width) };
        for line in lines {
            out.push_str(&paint(BOLD, &line));
            out.push('\n');
        }
    }
    add_rows(&mut out, &verification.rows, options.show_all, width);
    if !verification.warnings.is_empty() {
        add_heading(&mut out, "Warnings");
        add_notes(&mut out, &verification.warnings, width);
    }
    out.push('\n');
    add_painted(&mut out, outcome_style(verification.outcome()), &verdict(verification), 0, width);
    out
}

/// Formats one line for each row that is not held, for logs; empty if there are none.
pub fn verification_lines(verification: &Verification) -> String {
    let is_reported = |row: &&Row| row.standing.is_fault() || row.standing == Standing::Pending;
    let mut out = String::new();
    for row in verification.rows.iter().filter(is_reported) {
        let by = row.by.as_ref().map_or_else(String::new, |by| format!("; by {}", culprit(by)));
        let note = if row.note.is_empty() { String::new() } else { format!("; {}", row.note) };
        let line = format!("{} {}: {}{by}{note}", row.standing.word(), row.what, values(row));
        out.push_str(&clean(&line));
        out.push('\n');
    }
    out
}

fn subject(verification: &Verification, applied: &str) -> String {
    let boots = (&verification.applied_boot_id, &verification.boot_id);
    let boot = match boots {
        (Reading::Known(applied), Reading::Known(now)) if applied == now => "in this boot",
        (Reading::Known(_), Reading::Known(_)) => "in an earlier boot",
        _ => "",
    };
    let applied = match (applied, boot) {
        ("", "") => String::new(),
        ("", boot) => format!(", applied {boot}"),
        (when, "") => format!(", applied {when}"),
        (when, boot) => format!(", applied {when}, {boot}"),
    };
    format!("Plan {} of profile {}{applied}.", verification.plan_id, verification.profile)
}

fn set(cpus: &Reading<CpuSet>) -> String {
    shown(&cpus.as_ref().map(CpuSet::to_list), "unreadable")
}

/// Returns the most important lines: isolation, interrupts, ticks.
fn headline(verification: &Verification) -> Vec<String> {
    let Headline {
        isolated,
        nohz_full,
        irqs_movable,
        irqs_inside,
        irqs_moving,
        irqs_managed,
        irqs_managed_on_isolated,
    } = &verification.headline;
    let mut lines = vec![format!("isolated {}  nohz_full {}", set(isolated), set(nohz_full))];
    if irqs_movable + irqs_managed > 0 && !verification.housekeeping.is_empty() {
        let moving = match irqs_moving {
            0 => String::new(),
            1 => ", 1 moves when it next fires".to_owned(),
            count => format!(", {count} move when they next fire"),
        };
        let reach = match irqs_managed_on_isolated {
            0 => "none of them reaches".to_owned(),
            1 => "1 of them reaches".to_owned(),
            count => format!("{count} of them reach"),
        };
        let managed = match irqs_managed {
            0 => String::new(),
            _ => format!(" ({irqs_managed} managed by the kernel, {reach} isolated CPUs)"),
        };
        lines.push(format!(
            "IRQs: {irqs_inside} of {irqs_movable} movable inside {}{moving}{managed}",
            verification.housekeeping
        ));
    }
    lines.extend(verification.ticks.as_ref().and_then(ticks));
    lines
}

/// Returns "ticks: at most 2 in 1.00 s on 14 isolated CPUs (14 under a spinning thread); housekeeping up to 251".
fn ticks(proof: &TickProof) -> Option<String> {
    let most = proof.cpus.iter().filter_map(|cpu| cpu.ticks.known()).max()?;
    let loads = [TickLoad::Spinner, TickLoad::BusyTask, TickLoad::Idle].into_iter().filter_map(|load| {
        let cpus = proof.cpus.iter().filter(|cpu| cpu.load == load).count();
        (cpus > 0).then(|| format!("{cpus} {}", load.word()))
    });
    let house = match &proof.housekeeping_ticks_max {
        Reading::Known(ticks) => format!("; housekeeping up to {}", count(*ticks)),
        _ => String::new(),
    };
    Some(format!(
        "ticks: at most {} in {} on {} ({}){house}",
        count(*most),
        duration(proof.window_ns),
        plural(proof.cpus.len(), "isolated CPU"),
        loads.collect::<Vec<_>>().join(", "),
    ))
}

/// Adds the rows by layer; rows that differ only in their names share an entry.
fn add_rows(out: &mut String, rows: &[Row], show_all: bool, width: usize) {
    let is_shown = |row: &&Row| show_all || row.standing != Standing::Held || !row.note.is_empty();
    let mut layer = "";
    let alike = rows.iter().filter(is_shown).map(|row| {
        let Row { settings, layer, planned, observed, standing, by, note, .. } = row;
        ((settings, layer, planned, observed, standing, by, note), row)
    });
    let mut said = "";
    for (_, group) in &grouped(alike) {
        let Some(first) = group.first() else { continue };
        if first.layer != layer {
            layer = &first.layer;
            said = "";
            add_heading(out, title(&clean(layer)));
        }
        add_group(out, first, group, said, width);
        said = &first.note;
    }
}

fn title(layer: &str) -> &str {
    match layer {
        "headline" => "Isolation",
        "ticks" => "Ticks of the isolated CPUs",
        other => layer_title(other),
    }
}

/// Adds an entry. `said` is the note of the previous entry; an equal note is not repeated.
fn add_group(out: &mut String, first: &Row, group: &[&Row], said: &str, width: usize) {
    let mut names: Vec<String> = group.iter().take(NAMED_MAX).map(|row| row.what.clone()).collect();
    if group.len() > NAMED_MAX {
        names.push(format!("{} more; --json lists all", group.len() - NAMED_MAX));
    }
    let beside = INDENT + STANDING_WIDTH;
    let word = paint(style(first.standing), &format!("{:STANDING_WIDTH$}", first.standing.word()));
    for (at, line) in wrap(&clean(&names.join(", ")), width.saturating_sub(beside)).iter().enumerate() {
        if at == 0 {
            out.push_str(&format!("{:INDENT$}{word}{line}\n", ""));
        } else {
            out.push_str(&format!("{:beside$}{line}\n", ""));
        }
    }
    let by = first.by.as_ref().map_or_else(String::new, |by| format!("by {}", culprit(by)));
    let note = if first.note == said { "" } else { &first.note };
    for text in [values(first), by, note.to_owned()] {
        if !text.is_empty() {
            add_wrapped(out, &clean(&text), beside, width);
        }
    }
}

/// Returns the observed and the planned value. For an unreadable one, the note gives the reason.
fn values(row: &Row) -> String {
    match row.standing {
        Standing::Held => shown(&row.observed, "unparsable"),
        Standing::Gone | Standing::Unreadable => format!("planned {}", row.planned),
        _ => format!("{}; planned {}", shown(&row.observed, "unparsable"), row.planned),
    }
}

fn shown(observed: &Reading<String>, unparsable: &str) -> String {
    match observed {
        Reading::Known(text) if text.is_empty() => "none".to_owned(),
        Reading::Known(text) => text.clone(),
        Reading::Absent => "absent".to_owned(),
        Reading::Denied => "denied".to_owned(),
        Reading::Unparsable(_) => unparsable.to_owned(),
    }
}

/// Returns the culprit, such as "/etc/sysctl.d/zz.conf:3: vm.swappiness = 60".
fn culprit(by: &Culprit) -> String {
    let line = by.line.map_or_else(String::new, |line| format!(":{line}"));
    match by.name.as_str() {
        "unknown" => format!("an unknown cause ({})", by.does),
        name if by.line.is_some() => format!("{name}{line}: {}", by.does),
        name => format!("{name}, which {}", by.does),
    }
}

fn style(standing: Standing) -> Style {
    match standing {
        Standing::Overridden | Standing::Lost => RED,
        Standing::Refused | Standing::Ineffective | Standing::Unreadable => YELLOW.bold(),
        Standing::Pending | Standing::MovesLater => YELLOW,
        Standing::Gone => DIM,
        Standing::Held => GREEN,
    }
}

fn outcome_style(outcome: Outcome) -> Style {
    match outcome {
        Outcome::Held => GREEN,
        Outcome::Pending => YELLOW,
        Outcome::NotHeld => RED,
    }
}

/// Returns the verdict, such as "Not held: 3 of 87 rows (2 overridden, 1 lost)."
fn verdict(verification: &Verification) -> String {
    let counts = &verification.counts;
    let listed = |is_meant: fn(Standing) -> bool| {
        let meant = Standing::WORST_FIRST.into_iter().filter(|standing| is_meant(*standing));
        listed(meant.map(|standing| (counts.count(standing), standing.word())))
    };
    let rows = plural(counts.rows() as usize, "row");
    match verification.outcome() {
        Outcome::Held => match listed(|standing| matches!(standing, Standing::MovesLater | Standing::Gone)) {
            others if others.is_empty() => format!("All {rows} are held."),
            others => format!("All {rows} are held, including {others}."),
        },
        Outcome::Pending => format!(
            "{} of {rows} {} for the reboot. All others are held.",
            counts.pending,
            if counts.pending == 1 { "waits" } else { "wait" }
        ),
        Outcome::NotHeld if verification.is_of_other_host && counts.not_held() == 0 => {
            format!("Not held: the plan was made for another host, although {rows} hold here.")
        }
        Outcome::NotHeld => {
            let pending = match counts.pending {
                0 => String::new(),
                1 => " 1 more waits for the reboot.".to_owned(),
                pending => format!(" {pending} more wait for the reboot."),
            };
            format!("Not held: {} of {rows} ({}).{pending}", counts.not_held(), listed(Standing::is_fault))
        }
    }
}
