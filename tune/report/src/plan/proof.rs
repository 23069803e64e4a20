//! Proofs of plans as text and as a page.

use lowlat_host::paired::PairedShift;
use lowlat_plan::proof::{FALSE_DISCOVERY_RATE, PlanProof, ProofUnit, ProofVerdict};
use lowlat_text::article::Article;
use lowlat_text::columns::Table;
use lowlat_text::page::written_by;
use lowlat_text::units::{duration_fine, plural, span};

/// A proof for a terminal.
pub fn proof_text(proof: &PlanProof, width: usize) -> String {
    article(proof).to_text(width)
}

/// The page of a proof.
pub fn proof_html(proof: &PlanProof) -> String {
    article(proof).page(&written_by(&proof.lowlat_version, "tune prove", &proof.started_at))
}

fn article(proof: &PlanProof) -> Article {
    Article::new("prove", "What each setting is worth here", headline(proof))
        .detail(set_up(proof))
        .detail(if proof.is_interrupted {
            "The proof was interrupted; verdicts rest on the rounds until then."
        } else {
            ""
        })
        .titled_table("Gain: worse without the setting", rows(&shown(proof, ProofVerdict::Gain)))
        .titled_table("Harm: better without the setting", rows(&shown(proof, ProofVerdict::Harm)))
        .titled_table("Trade: one figure gains, another loses", rows(&shown(proof, ProofVerdict::Trade)))
        .titled_table("No difference shown", rows(&shown(proof, ProofVerdict::NoDifferenceShown)))
        .sentences("Not measured", unmeasured(proof))
        .sentences("Disturbed", disturbed(proof))
        .doubts("Not as before", proof.not_restored.clone())
}

/// "Of 26 settings: gain 2, harm 1, trade 0, no difference shown 14, not measured 9." Settings that are switched together
/// count as one.
fn headline(proof: &PlanProof) -> String {
    let count = |verdict| proof.with(verdict).count();
    format!(
        "Of {}: gain {}, harm {}, trade {}, no difference shown {}, not measured {}.",
        plural(proof.settings.len(), "setting"),
        count(ProofVerdict::Gain),
        count(ProofVerdict::Harm),
        count(ProofVerdict::Trade),
        count(ProofVerdict::NoDifferenceShown),
        count(ProofVerdict::Unmeasured)
    )
}

fn set_up(proof: &PlanProof) -> String {
    let (rounds, slice) = (plural(proof.rounds, "round"), span(proof.slice_ms.saturating_mul(1_000_000)));
    let how = match proof.boots {
        0 => format!(
            "{rounds} with the setting on and off for {slice} each, in random order, while all others were on."
        ),
        boots => format!(
            "{rounds} of boots in random order, one with all settings on and one without each of them; {} in all.",
            plural(boots, "boot")
        ),
    };
    format!(
        "Plan {} of profile {}, by {}: {how} {:.0} % of all gains and harms shown are expected to be false.",
        proof.plan_id,
        proof.profile,
        proof.measured,
        FALSE_DISCOVERY_RATE * 100.0
    )
}

/// One figure of settings.
struct ShiftRow<'a> {
    settings: String,
    figure: &'a str,
    unit: ProofUnit,
    shift: &'a PairedShift,
}

fn shown(proof: &PlanProof, verdict: ProofVerdict) -> Vec<ShiftRow<'_>> {
    proof
        .with(verdict)
        .flat_map(|proven| {
            proof.figures.iter().zip(&proven.shifts).enumerate().map(|(at, (figure, shift))| ShiftRow {
                settings: if at == 0 { proven.settings.join(" ") } else { String::new() },
                figure: &figure.name,
                unit: figure.unit,
                shift,
            })
        })
        .collect()
}

fn rows<'a>(rows: &'a [ShiftRow<'a>]) -> Table<'a, ShiftRow<'a>> {
    Table::of(rows)
        .words("setting", 0, |row| row.settings.clone())
        .words("figure", 0, |row| row.figure.to_owned())
        .figures("off minus on", 1, |row| amount(row.shift.shift, row.unit))
        .figures("95 % interval", 0, |row| {
            format!("{} .. {}", amount(row.shift.low, row.unit), amount(row.shift.high, row.unit))
        })
        .figures("rounds", 2, |row| row.shift.pairs.to_string())
}

/// "+12.3 us/s".
fn amount(value: f64, unit: ProofUnit) -> String {
    let sign = if value < 0.0 { "-" } else { "+" };
    match unit {
        ProofUnit::Number => format!("{value:+.3}"),
        ProofUnit::Ns => format!("{sign}{}", duration_fine(value.abs())),
        ProofUnit::NsPerS => format!("{sign}{}/s", duration_fine(value.abs())),
    }
}

/// The reasons, with the settings of each.
fn unmeasured(proof: &PlanProof) -> Vec<String> {
    let mut reasons: Vec<(&str, Vec<String>)> = Vec::new();
    for proven in proof.with(ProofVerdict::Unmeasured) {
        let why = proven.unmeasured.as_deref().unwrap_or("no pair counts");
        let name = proven.settings.join(" ");
        match reasons.iter_mut().find(|(reason, _)| *reason == why) {
            Some((_, names)) => names.push(name),
            None => reasons.push((why, vec![name])),
        }
    }
    reasons.into_iter().map(|(why, names)| format!("{}: {why}.", names.join(", "))).collect()
}

fn disturbed(proof: &PlanProof) -> Vec<String> {
    let disturbed =
        proof.settings.iter().filter(|proven| proven.disturbed_pairs > 0 && !proven.pairs.is_empty());
    disturbed
        .map(|proven| {
            format!(
                "{}: {} of {} do not count, because another program set it meanwhile.",
                proven.settings.join(" "),
                proven.disturbed_pairs,
                plural(proven.rounds(), "pair")
            )
        })
        .collect()
}
