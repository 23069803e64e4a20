//! Judges every row: in force, pending a restart, controlled by another setting, or missing.

use super::{
    facts::{Attributes, BiosFacts, Server},
    judge::{self, RowAttribute},
    meaning::shown,
    registry::Effects,
    table::{Row, Vendor, WORKLOAD_PROFILE, settings},
};
use lowlat_host::Profile;
use lowlat_settings::{Checked, Impact, Setting};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;

/// Verdict on one BIOS setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BiosVerdict {
    /// The value differs from the wanted one, also after the next restart.
    Differs,
    /// The value differs, and another attribute controls it: changing it alone is rejected or lost.
    Overridden,
    /// As wanted now, but not after the next restart.
    Lost,
    /// The value differs now, but will be as wanted after the next restart.
    Pending,
    /// This server has no attribute for it, or one whose value cannot be read.
    UnknownHere,
    /// This firmware has no value with the wanted meaning.
    NotOffered,
    /// The wanted value depends on a fact that is missing in the files.
    NotJudged,
    /// Another attribute, itself as wanted, leaves it without effect.
    NoEffect,
    /// As wanted, now and after the next restart.
    Good,
    /// The profile has no preference.
    NoOpinion,
}

impl BiosVerdict {
    pub const WORST_FIRST: [Self; 10] = [
        Self::Differs,
        Self::Overridden,
        Self::Lost,
        Self::Pending,
        Self::NotOffered,
        Self::UnknownHere,
        Self::NotJudged,
        Self::NoEffect,
        Self::Good,
        Self::NoOpinion,
    ];

    pub fn word(self) -> &'static str {
        match self {
            Self::Differs => "differs",
            Self::Overridden => "overridden",
            Self::Lost => "will be lost",
            Self::Pending => "pending",
            Self::UnknownHere => "unknown here",
            Self::NotOffered => "not offered",
            Self::NotJudged => "not judged",
            Self::NoEffect => "no effect",
            Self::Good => "as wanted",
            Self::NoOpinion => "no preference",
        }
    }

    /// True if there is nothing to do about it: as wanted, or left open by the profile.
    pub fn is_quiet(self) -> bool {
        matches!(self, Self::NoEffect | Self::Good | Self::NoOpinion)
    }

    /// True if the value differs from the wanted one now or after the next restart.
    pub fn is_difference(self) -> bool {
        matches!(self, Self::Differs | Self::Overridden | Self::Lost | Self::Pending)
    }
}

/// One setting of the BIOS, judged.
#[derive(Debug, Clone, Serialize)]
pub struct BiosFinding {
    pub id: String,
    /// The name in HPE's menus.
    pub name: String,
    /// The attribute for it on this server.
    pub attribute: Option<String>,
    /// The names that were searched for; empty if one was found.
    pub looked_for: Vec<String>,
    pub active: Option<Value>,
    /// The value after the next restart, if different.
    pub pending: Option<Value>,
    /// The wanted values in the catalogue's words; any of them is accepted.
    pub wanted: Vec<String>,
    /// The wanted values as this firmware spells them; empty if unknown.
    pub wanted_here: Vec<String>,
    pub verdict: BiosVerdict,
    /// Reason for the verdict; empty if the values make it clear.
    pub because: String,
    /// Class of harm that the wanted value can do: "security" or "RAS"; `None` if none.
    pub risk: Option<String>,
    /// Cost of the wanted value, from the catalogue.
    pub cost: String,
    /// Problem with the guide's advice; only in profile `guide-57037`.
    pub hazard: String,
    /// Impact of a wrong value.
    pub impact: Impact,
}

/// Number of rows by verdict.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct BiosCounts {
    /// Rows with a preference of the profile and an attribute.
    pub judged: usize,
    /// Number of these that differ now or after the next restart.
    pub differences: usize,
    /// Rows without an attribute, or whose wanted value is unknown.
    pub unknown: usize,
}

#[derive(Debug, Clone, Serialize)]
pub struct BiosAudit {
    pub document: &'static str,
    /// Version of this document's format.
    pub schema_version: u32,
    pub profile: Profile,
    pub server: Server,
    /// The vendor of the firmware.
    pub vendor: Option<Vendor>,
    /// The registry that the Bios resource names.
    pub registry: Option<String>,
    /// Number of rows by verdict.
    pub counts: BiosCounts,
    /// One per row, in the order of the guide's menus.
    pub findings: Vec<BiosFinding>,
    /// IDs of the rows on which the profile has a preference, but that servers of this maker or processor do not
    /// have. They are not among the findings.
    pub not_here: Vec<String>,
    /// The order in which to change the differences; empty if it does not matter.
    pub order: Vec<String>,
    pub warnings: Vec<String>,
}

impl BiosCounts {
    /// Counts the rows with a preference that were checked.
    pub fn checked(self) -> Checked {
        Checked { checked: self.judged, unknown: self.unknown }
    }
}

impl BiosAudit {
    pub const DOCUMENT: &'static str = "lowlat bios audit";
    /// Version of the format. Fields are only added to it.
    pub const SCHEMA_VERSION: u32 = 1;

    pub fn of(facts: &BiosFacts, profile: Profile) -> Self {
        let after = facts.after_restart();
        let (effects, present) = (facts.effects(&after), facts.effects(&facts.active));
        let scene =
            BiosScene { facts, profile, after, effects, present, read_only: super::export::read_only(facts) };
        let processor = judge::processor(facts);
        let (mut findings, mut not_here) = (Vec::new(), Vec::new());
        for (row, setting) in settings() {
            let finding = scene.finding(row, setting);
            let may_exist = !judge::is_of_another_maker(setting, processor) && !finding.looked_for.is_empty();
            if finding.attribute.is_some() || may_exist {
                findings.push(finding);
            } else if finding.verdict != BiosVerdict::NoOpinion {
                not_here.push(finding.id);
            }
        }
        let count = |test: &dyn Fn(BiosVerdict) -> bool| findings.iter().filter(|f| test(f.verdict)).count();
        let is_judged = |verdict: BiosVerdict| {
            verdict.is_difference() || matches!(verdict, BiosVerdict::Good | BiosVerdict::NoEffect)
        };
        Self {
            document: Self::DOCUMENT,
            schema_version: Self::SCHEMA_VERSION,
            profile,
            server: facts.server.clone(),
            vendor: facts.vendor,
            registry: facts.registry_name.clone(),
            counts: BiosCounts {
                judged: count(&is_judged),
                differences: count(&BiosVerdict::is_difference),
                unknown: count(&|verdict| {
                    matches!(verdict, BiosVerdict::UnknownHere | BiosVerdict::NotJudged)
                }),
            },
            order: super::export::order(facts, &scene.after),
            findings,
            not_here,
            warnings: facts.warnings.iter().cloned().chain(low_latency(facts, profile)).collect(),
        }
    }
}

/// The guide's first choice (section 3.2.1). It tunes single settings only if this profile is not enough.
fn low_latency(facts: &BiosFacts, profile: Profile) -> Option<String> {
    let value = shown(facts.active.get(profile_attribute(facts)?)?);
    if profile != Profile::Guide57037 || facts.vendor != Some(Vendor::Hpe) || is_custom(facts, &facts.active)
    {
        return None;
    }
    let first = if value == LOW_LATENCY {
        "The server has workload profile Low Latency: measure it with `lowlat jitter`."
    } else {
        "Choose workload profile Low Latency first, and measure with `lowlat jitter`."
    };
    Some(format!(
        "{first} If that suffices, stay there (guide section 3.2.1). The other differences are for servers where it does \
         not (section 3.2.2)."
    ))
}

/// The server's state, against which every row is judged.
struct BiosScene<'a> {
    facts: &'a BiosFacts,
    profile: Profile,
    after: Attributes,
    /// The effects of the settings after the next restart, and of those in force.
    effects: Effects,
    present: Effects,
    read_only: BTreeSet<&'a str>,
}

impl BiosScene<'_> {
    fn finding(&self, row: &Row, setting: &'static Setting) -> BiosFinding {
        let wanted = judge::wanted_values(setting, self.profile, self.facts.server.processor.as_deref());
        let carrier = judge::carrier(self.facts, row, setting);
        let (verdict, because) = match (&wanted, &carrier) {
            (Some(wanted), _) if wanted.is_empty() => (BiosVerdict::NoOpinion, String::new()),
            (_, None) => (BiosVerdict::UnknownHere, self.not_found(row)),
            (None, _) => (BiosVerdict::NotJudged, NO_PROCESSOR.to_owned()),
            (Some(wanted), Some(carrier)) => self.verdict(carrier, wanted),
        };
        let wanted = wanted.unwrap_or_default();
        let is_found = carrier.is_some();
        let looked_for = judge::words(self.facts, row).into_iter().map(str::to_owned);
        let pending = carrier.as_ref().and_then(|c| self.after.get(c.attribute).filter(|v| *v != c.active));
        let is_guide = self.profile == Profile::Guide57037;
        BiosFinding {
            id: setting.id.into(),
            name: setting.name.into(),
            attribute: carrier.as_ref().map(|carrier| carrier.attribute.to_owned()),
            looked_for: if is_found { Vec::new() } else { looked_for.collect() },
            active: carrier.as_ref().map(|carrier| carrier.active.clone()),
            pending: pending.cloned(),
            wanted_here: carrier.as_ref().map(|carrier| carrier.spelled(&wanted)).unwrap_or_default(),
            risk: judge::is_weakening(row, &wanted).then(|| setting.risk.word().to_owned()),
            wanted,
            verdict,
            because,
            cost: setting.cost.into(),
            hazard: if is_guide { setting.hazard.into() } else { String::new() },
            impact: setting.impact,
        }
    }

    fn not_found(&self, row: &Row) -> String {
        let names = judge::words(self.facts, row);
        let unreadable = names.iter().find_map(|name| self.facts.unreadable.get_key_value(*name));
        if let Some((name, found)) = unreadable {
            return format!("the value of {name} cannot be read: found {found}");
        }
        format!("none of these attributes exists: {}", names.join(", "))
    }

    fn verdict(&self, carrier: &RowAttribute<'_>, wanted: &[String]) -> (BiosVerdict, String) {
        if let Some(offered) = carrier.offers_others(wanted) {
            let offered: Vec<String> = offered.into_iter().take(12).collect();
            return (BiosVerdict::NotOffered, format!("this BIOS offers {}", offered.join(", ")));
        }
        let after = self.after.get(carrier.attribute).unwrap_or(carrier.active);
        let (is_good, will_be) = (carrier.meets(carrier.active, wanted), carrier.meets(after, wanted));
        let forced = self.effects.forced.get(carrier.attribute);
        // What a setting in force makes of another shows in the value; only what a pending one will make of it
        // does not.
        let is_new = forced != self.present.forced.get(carrier.attribute);
        if let Some((value, holder)) = forced.filter(|(value, _)| !carrier.meets(value, wanted))
            && (is_new || !is_good)
        {
            let because = format!("{} makes it {}", self.by(holder), shown(value));
            return (if is_good { BiosVerdict::Lost } else { BiosVerdict::Overridden }, because);
        }
        let is_forced_good = forced.is_some() && is_new;
        let holder = self.holder(carrier);
        let refused = self.facts.refused.get(carrier.attribute);
        let refusal = refused.map(|id| format!("its last change was rejected: {id}")).unwrap_or_default();
        match (is_good, will_be || is_forced_good, holder) {
            (true, true, _) => (BiosVerdict::Good, String::new()),
            (true, false, _) => (BiosVerdict::Lost, String::new()),
            (false, true, Some(holder)) if !is_forced_good => (
                BiosVerdict::Overridden,
                format!("the pending change will be dropped: {} controls it", self.by(&holder)),
            ),
            (false, true, _) => (BiosVerdict::Pending, self.until(refusal)),
            (false, false, Some(holder)) if self.is_as_wanted(&holder) => {
                (BiosVerdict::NoEffect, format!("{}, which is as wanted", self.by(&holder)))
            }
            (false, false, Some(holder)) => {
                (BiosVerdict::Overridden, format!("{} controls it", self.by(&holder)))
            }
            (false, false, None) if refusal.is_empty() && self.read_only.contains(carrier.attribute) => {
                (BiosVerdict::Differs, super::export::READ_ONLY.to_owned())
            }
            (false, false, None) => (BiosVerdict::Differs, refusal),
        }
    }

    /// The reason of a pending change: a refusal, or the window for which it waits.
    fn until(&self, refusal: String) -> String {
        match &self.facts.window {
            Some(window) if refusal.is_empty() => {
                format!("until the maintenance window of {window}")
            }
            _ => refusal,
        }
    }

    /// "SysProfile = Custom", as it will be after the restart.
    fn by(&self, attribute: &str) -> String {
        format!("{attribute} = {}", self.after.get(attribute).map(shown).unwrap_or_default())
    }

    /// True if the attribute has a value, after the restart, that the profile asks for.
    fn is_as_wanted(&self, attribute: &str) -> bool {
        let Some((_, setting, carrier)) = judge::row_of(self.facts, attribute) else { return false };
        let wanted = judge::wanted_values(setting, self.profile, self.facts.server.processor.as_deref());
        wanted.zip(self.after.get(attribute)).is_some_and(|(wanted, value)| carrier.meets(value, &wanted))
    }

    /// The attribute that prevents this one from being changed.
    fn holder(&self, carrier: &RowAttribute<'_>) -> Option<String> {
        if let Some(holder) = self.effects.locked.get(carrier.attribute) {
            return Some(holder.clone());
        }
        let is_documented = carrier.names.is_some_and(|names| names.needs_custom);
        let is_locked =
            self.facts.registry.is_none() || carrier.entry.is_some_and(|entry| entry.is_read_only);
        let profile = profile_attribute(self.facts)?;
        (is_documented && is_locked && !is_custom(self.facts, &self.after)).then(|| profile.to_owned())
    }
}

/// The value of the workload profile that unlocks the settings that depend on it.
pub(super) const CUSTOM: &str = "Custom";
/// The value of the workload profile that the guide tries first.
const LOW_LATENCY: &str = "LowLatency";
const NO_PROCESSOR: &str =
    "depends on the processor; add the ComputerSystem resource (/redfish/v1/Systems/ID) with --file";

/// The attribute of the workload profile on this server.
pub(super) fn profile_attribute(facts: &BiosFacts) -> Option<&str> {
    let (row, _) = settings().find(|(row, _)| row.id == WORKLOAD_PROFILE)?;
    judge::names(facts, row).into_iter().find_map(|names| judge::find(facts, names)).map(|found| found.0)
}

/// The value of the profile that unlocks single settings, as this server spells it.
pub(super) fn custom(facts: &BiosFacts) -> Option<Value> {
    let (row, setting) = settings().find(|(row, _)| row.id == WORKLOAD_PROFILE)?;
    judge::carrier(facts, row, setting)?.to_write(&[CUSTOM.to_owned()]).ok()
}

/// True if these settings leave single ones unlocked: their profile is the one for that, or there is none.
pub(super) fn is_custom(facts: &BiosFacts, settings: &Attributes) -> bool {
    let profile = profile_attribute(facts).and_then(|name| settings.get(name));
    profile.zip(custom(facts)).is_none_or(|(value, custom)| *value == custom)
}
