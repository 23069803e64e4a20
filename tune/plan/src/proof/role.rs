//! The minimal plan as a role file.

use super::{PlanProof, ProofVerdict, ProvenSettings};
use lowlat_host::{CpuSet, IsolateBy, Role};
use lowlat_settings::Catalogue;
use std::fmt::Write;

/// The role file of the minimal plan: `role`, which the proven plan was made for, without the settings that showed no
/// gain. Settings that act only under a load, or that were not measured, stay and are marked.
pub fn minimal_role(proof: &PlanProof, role: &Role, catalogue: Catalogue) -> String {
    let mut out = format!(
        "# The minimal plan of a host, from `lowlat tune prove` of plan {} by {}.\n\
         # A setting that is kept or left out here was measured while all others were on.\n",
        proof.plan_id, proof.measured
    );
    let _ = writeln!(out, "profile = {:?}", role.profile.to_string());
    let cpus = |cpus: &Option<CpuSet>| cpus.as_ref().map(CpuSet::to_list);
    for (key, list) in [("housekeeping", cpus(&role.housekeeping)), ("isolated", cpus(&role.isolated))] {
        let _ = list.map(|list| writeln!(out, "{key} = {list:?}"));
    }
    for (key, ids) in [("nics", &role.nics), ("accept-risk", &role.accepted_risks)] {
        if !ids.is_empty() {
            let _ = writeln!(out, "{key} = {ids:?}");
        }
    }
    for (key, is_set) in [("busy-poll", role.is_busy_polling), ("onload", role.is_using_onload)] {
        if is_set {
            let _ = writeln!(out, "{key} = true");
        }
    }
    if role.isolate_by == IsolateBy::Cpuset {
        out.push_str("isolate-by = \"cpuset\"\n");
    }
    out.push('\n');
    kept(&mut out, proof, catalogue);
    left_out(&mut out, proof, role, catalogue);
    out
}

/// What the minimal plan does with settings, and why.
enum MinimalChoice {
    Keep(String),
    LeaveOut(&'static str),
}

fn choice(proven: &ProvenSettings, catalogue: Catalogue) -> MinimalChoice {
    let mut loads = proven.settings.iter().filter_map(|id| catalogue.find(id)?.needed_load());
    match (proven.verdict, loads.next()) {
        (ProofVerdict::Gain, _) => MinimalChoice::Keep("a gain was shown".into()),
        (ProofVerdict::Trade, _) => {
            MinimalChoice::Keep("one figure gains and another loses; decide yourself".into())
        }
        (ProofVerdict::Unmeasured, _) => MinimalChoice::Keep(format!(
            "not measured ({})",
            proven.unmeasured.as_deref().unwrap_or("no pair counts")
        )),
        (ProofVerdict::Harm, _) => MinimalChoice::LeaveOut("Worse with the setting than without it"),
        (ProofVerdict::NoDifferenceShown, Some(load)) => MinimalChoice::Keep(format!("protects when {load}")),
        (ProofVerdict::NoDifferenceShown, None) => MinimalChoice::LeaveOut("No difference shown"),
    }
}

fn kept(out: &mut String, proof: &PlanProof, catalogue: Catalogue) {
    let mut reasons: Vec<(String, Vec<&str>)> = Vec::new();
    for proven in &proof.settings {
        let MinimalChoice::Keep(why) = choice(proven, catalogue) else { continue };
        let ids = proven.settings.iter().map(String::as_str);
        match reasons.iter_mut().find(|(reason, _)| *reason == why) {
            Some((_, known)) => known.extend(ids),
            None => reasons.push((why, ids.collect())),
        }
    }
    for (why, ids) in reasons {
        let _ = writeln!(out, "# Kept, {why}:");
        for id in ids {
            let _ = writeln!(out, "#   {id}");
        }
    }
}

fn left_out(out: &mut String, proof: &PlanProof, role: &Role, catalogue: Catalogue) {
    let mut lines = String::new();
    for id in &role.left_out {
        let _ = writeln!(lines, "    {id:?}, # The role of the plan leaves it out");
    }
    for proven in &proof.settings {
        let MinimalChoice::LeaveOut(why) = choice(proven, catalogue) else { continue };
        for id in &proven.settings {
            let _ = writeln!(lines, "    {id:?}, # {why}");
        }
    }
    if !lines.is_empty() {
        let _ = write!(out, "leave-out = [\n{lines}]\n");
    }
}
