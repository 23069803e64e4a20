//! The requests to send to the service, in order, and the requests that restore the current state.

use super::{
    audit::{CUSTOM, profile_attribute},
    facts::{Attributes, BiosFacts},
    judge::{self, RowAttribute},
    meaning::shown,
    table::{Row, Vendor, rows},
};
use lowlat_catalogue::CATALOGUE;
use lowlat_host::Profile;
use lowlat_settings::{Risk, Setting};
use serde::Serialize;
use serde_json::{Value, json};

/// HPE's profile without power saving; the guide starts from it.
const LOW_LATENCY: &str = "LowLatency";
pub(super) const RESTART: &str = "Restart the server and wait for it; the BIOS applies the change during the \
                                  start. Then save the resources again and audit them, because a service may \
                                  accept a request and drop it.";
const IF_APPLIED: &str = "Only after all steps were applied: before that the service rejects it, and it is \
                          not needed. Restart the server, because the next request locks these settings \
                          again.";
const EXPORT_ANEW: &str = "Restart the server and wait for it. The profile rewrites settings that depend on \
                           it, so save the resources again and run this again. The next request is based \
                           on what is known before.";

/// One request to the service.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Request {
    pub method: &'static str,
    /// Address on the service; `None` if the files do not contain it.
    pub uri: Option<String>,
    pub body: Value,
    /// Steps for the user before the next request.
    pub then: &'static str,
}

/// A row that differs but is not part of the requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LeftOutRow {
    pub id: String,
    pub attribute: String,
    pub why: String,
}

/// Changes to a server's BIOS settings, and how to restore them.
#[derive(Debug, Clone, Serialize)]
pub struct BiosExport {
    pub document: &'static str,
    /// Version of this document's format.
    pub schema_version: u32,
    pub profile: Profile,
    /// Requests in order; empty if nothing differs.
    pub steps: Vec<Request>,
    /// Rows that differ but are not in the steps.
    pub left_out: Vec<LeftOutRow>,
    /// Requests that restore the settings from the time when the files were saved.
    pub restore: Vec<Request>,
    /// Every attribute from the time when the files were saved, including read-only ones.
    pub snapshot: Attributes,
    pub warnings: Vec<String>,
}

impl BiosExport {
    pub const DOCUMENT: &'static str = "lowlat-bios-requests";
    /// Version of the format. Fields are only added to it.
    pub const SCHEMA_VERSION: u32 = 1;

    /// Creates the requests that make the server match the profile. Rows that weaken security or the handling
    /// of memory errors are included only if their ID is among the accepted risks.
    pub fn of(facts: &BiosFacts, profile: Profile, accepted_risks: &[String]) -> Self {
        let mut settings = facts.after_restart();
        let mut steps = Vec::new();
        let must_switch = first_profile(facts, &settings);
        if let Some((attribute, value)) = must_switch {
            let change = Attributes::from([(attribute.to_owned(), Value::from(value))]);
            steps.push(Request { then: EXPORT_ANEW, ..request(facts, &change) });
            settings.extend(change);
            let forced = facts.effects(&settings).forced;
            settings.extend(forced.into_iter().map(|(name, (value, _))| (name, value)));
        }
        let mut change = Attributes::new();
        let unlocked = unlock(facts, &settings);
        change.extend(unlocked.clone());
        let mut draft = Draft { facts, profile, accepted_risks, left_out: Vec::new() };
        let mut custom = settings.clone();
        custom.extend(unlocked);
        change.extend(rows().filter_map(|row| draft.proposal(row, &settings, &custom)));
        if !steps.is_empty() {
            change.extend(draft.protections(&settings));
        }
        draft.release(&settings, &mut change);
        if !change.is_empty() {
            steps.push(request(facts, &change));
        }
        let mut warnings = facts.warnings.clone();
        let secrets = facts.active.keys().filter(|name| is_secret(name)).count();
        if secrets > 0 {
            warnings.push(format!(
                "Left out of the snapshot: {secrets} {} by name a password or secret.",
                if secrets == 1 { "attribute that is" } else { "attributes that are" },
            ));
        }
        Self {
            document: Self::DOCUMENT,
            schema_version: Self::SCHEMA_VERSION,
            profile,
            restore: restore(facts, &steps),
            steps,
            left_out: draft.left_out,
            snapshot: facts.active.clone().into_iter().filter(|(name, _)| !is_secret(name)).collect(),
            warnings,
        }
    }
}

/// An export in the making.
struct Draft<'a> {
    facts: &'a BiosFacts,
    profile: Profile,
    accepted_risks: &'a [String],
    left_out: Vec<LeftOutRow>,
}

impl Draft<'_> {
    fn leave_out(&mut self, id: &str, attribute: &str, why: String) {
        self.left_out.push(LeftOutRow { id: id.into(), attribute: attribute.into(), why });
    }

    fn is_accepted(&self, id: &str) -> bool {
        self.accepted_risks.iter().any(|accepted| accepted == id)
    }

    fn wanted(&self, setting: &Setting) -> Option<Vec<String>> {
        judge::wanted_values(setting, self.profile, self.facts.server.processor.as_deref())
    }

    /// The contribution of one row: nothing if it is as wanted or left out, otherwise the attribute with its value.
    /// Locks are evaluated with `custom`, the settings with the profile already Custom.
    fn proposal(&mut self, row: &Row, settings: &Attributes, custom: &Attributes) -> Option<(String, Value)> {
        let setting = CATALOGUE.find(row.id)?;
        let carrier = judge::carrier(self.facts, row, setting)?;
        let now = custom.get(carrier.attribute).unwrap_or(carrier.active);
        match self.value(row, setting, &carrier, now) {
            Ok(value) => {
                let value = value.filter(|value| Some(value) != settings.get(carrier.attribute))?;
                Some((carrier.attribute.to_owned(), value))
            }
            Err(why) => {
                self.leave_out(setting.id, carrier.attribute, why);
                None
            }
        }
    }

    /// The value to write for a row; `None` if it is as wanted, an error with the reason if it is left out.
    fn value(
        &self,
        row: &Row,
        setting: &Setting,
        carrier: &RowAttribute<'_>,
        now: &Value,
    ) -> Result<Option<Value>, String> {
        let Some(wanted) = self.wanted(setting) else {
            return Err("the processor is unknown; add the ComputerSystem resource with --file".into());
        };
        // The step that unlocks may itself be the row, which is then already in the body.
        if wanted.is_empty() || carrier.meets(now, &wanted) {
            return Ok(None);
        }
        if judge::is_weakening(row, &wanted) && !self.is_accepted(setting.id) {
            let is_security = setting.risk == Risk::Security;
            let harm = if is_security { "security" } else { "protection against errors (RAS)" };
            return Err(format!("it costs {harm}; use --accept-risk {} to include it", setting.id));
        }
        if carrier.entry.is_some_and(|entry| entry.is_read_only) {
            return Err("read-only according to the registry".into());
        }
        if self.facts.registry.is_some() && carrier.entry.is_none() {
            return Err("not in the registry".into());
        }
        carrier.to_write(&wanted).map(Some)
    }

    /// Protections that the first profile would weaken without consent, with their current values.
    fn protections(&mut self, settings: &Attributes) -> Attributes {
        let before = self.facts.after_restart();
        let mut kept = Attributes::new();
        for row in rows().filter(|row| !row.weakens.is_empty()) {
            let Some(setting) = CATALOGUE.find(row.id).filter(|_| !self.is_accepted(row.id)) else {
                continue;
            };
            let is_kept = self
                .wanted(setting)
                .is_some_and(|wanted| wanted.is_empty() || judge::is_weakening(row, &wanted));
            let Some(carrier) = judge::carrier(self.facts, row, setting).filter(|_| is_kept) else {
                continue;
            };
            let weak: Vec<String> = row.weakens.iter().map(|weak| (*weak).to_owned()).collect();
            let (Some(old), Some(new)) = (before.get(carrier.attribute), settings.get(carrier.attribute))
            else {
                continue;
            };
            if carrier.meets(new, &weak) && !carrier.meets(old, &weak) {
                kept.insert(carrier.attribute.to_owned(), old.clone());
                let (old, new) = (shown(old), shown(new));
                let why = format!(
                    "the profile of the first step sets it to {new}; the second restores {old}, because its risk is not \
                     accepted"
                );
                self.leave_out(row.id, carrier.attribute, why);
            }
        }
        kept
    }

    /// Removes attributes that others still control after the remaining changes of the body.
    fn release(&mut self, settings: &Attributes, change: &mut Attributes) {
        let mut then = settings.clone();
        then.extend(change.clone());
        for (attribute, holder) in &self.facts.effects(&then).locked {
            if change.remove(attribute).is_some() {
                let value = then.get(holder).map(shown).unwrap_or_default();
                let id = id_of(self.facts, attribute).unwrap_or_default();
                self.leave_out(id, attribute, format!("{holder} = {value} controls it"));
            }
        }
    }
}

pub(super) fn id_of(facts: &BiosFacts, attribute: &str) -> Option<&'static str> {
    let carries = |setting: &Setting, row| {
        judge::carrier(facts, row, setting).is_some_and(|carrier| carrier.attribute == attribute)
    };
    rows().find(|row| CATALOGUE.find(row.id).is_some_and(|setting| carries(setting, row))).map(|row| row.id)
}

/// The profile to choose before the one that unlocks: HPE's Low Latency, unless it or Custom is already
/// chosen.
fn first_profile<'a>(facts: &'a BiosFacts, settings: &Attributes) -> Option<(&'a str, &'static str)> {
    let attribute = profile_attribute(facts).filter(|_| facts.vendor == Some(Vendor::Hpe))?;
    let value = shown(settings.get(attribute)?);
    let registry = facts.registry.as_ref().and_then(|registry| registry.entries.get(attribute));
    let is_offered = registry.is_none_or(|entry| entry.values.iter().any(|(name, _)| name == LOW_LATENCY));
    (is_offered && value != LOW_LATENCY && value != CUSTOM).then_some((attribute, LOW_LATENCY))
}

/// The change that unlocks the settings of a profile; empty if they are unlocked.
fn unlock(facts: &BiosFacts, settings: &Attributes) -> Attributes {
    let Some(attribute) = profile_attribute(facts) else { return Attributes::new() };
    match settings.get(attribute) {
        Some(value) if shown(value) != CUSTOM => {
            Attributes::from([(attribute.to_owned(), Value::from(CUSTOM))])
        }
        _ => Attributes::new(),
    }
}

/// The order in which to change the differences manually, as text.
pub(super) fn order(facts: &BiosFacts, settings: &Attributes) -> Vec<String> {
    let Some(attribute) = profile_attribute(facts) else { return Vec::new() };
    let mut order = Vec::new();
    if first_profile(facts, settings).is_some() {
        order.push(format!(
            "Set {attribute} to {LOW_LATENCY} and restart: it sets a group of settings at once. (The setup \
             menus need no restart here. Over Redfish a pending value that is overwritten is never applied.)"
        ));
    }
    if !unlock(facts, settings).is_empty() {
        order.push(format!(
            "Set {attribute} to {CUSTOM}: it keeps the current values and unlocks each of them. Change the \
             others together with it."
        ));
    }
    order
}

/// The body in the service's format: HPE and the standard both use `Attributes`. The apply time "at the next
/// reset" is included only if the service supports it.
fn request(facts: &BiosFacts, attributes: &Attributes) -> Request {
    let mut body = json!({ "Attributes": attributes });
    if let (true, Some(members)) = (facts.takes_apply_time, body.as_object_mut()) {
        members.insert("@Redfish.SettingsApplyTime".into(), json!({ "ApplyTime": "OnReset" }));
    }
    Request { method: "PATCH", uri: facts.settings_uri.clone(), body, then: RESTART }
}

/// The restore requests. First the settings that the steps changed and the old settings lock, while they are
/// unlocked. Then the old profile, which sets what it controls. Then, after a restart, the remaining settings
/// without the locked ones, which a service rejects.
fn restore(facts: &BiosFacts, steps_there: &[Request]) -> Vec<Request> {
    let effects = facts.effects(&facts.active);
    let profile = profile_attribute(facts);
    let old = profile.and_then(|attribute| facts.active.get_key_value(attribute));
    let documented = rows().flat_map(|row| judge::names(facts, row)).filter(|name| name.needs_custom);
    let held_by_document: Vec<&str> = match old {
        Some((_, value)) if facts.registry.is_none() && shown(value) != CUSTOM => {
            documented.map(|name| name.attribute).collect()
        }
        _ => Vec::new(),
    };
    let entry = |name: &str| facts.registry.as_ref().and_then(|registry| registry.entries.get(name));
    let is_writable = |(name, value): &(&String, &Value)| {
        !value.is_null()
            && !is_secret(name)
            && !entry(name).is_some_and(|entry| entry.is_read_only)
            && !effects.locked.contains_key(*name)
            && !held_by_document.contains(&name.as_str())
    };
    let mut rest: Attributes =
        facts.active.iter().filter(is_writable).map(|(name, value)| (name.clone(), value.clone())).collect();
    let is_changed =
        |name: &String| steps_there.iter().any(|step| step.body["Attributes"].get(name).is_some());
    let held: Attributes = facts
        .active
        .iter()
        .filter(|(name, _)| effects.locked.contains_key(*name) && is_changed(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let mut steps = Vec::new();
    if !held.is_empty() {
        steps.push(Request { then: IF_APPLIED, ..request(facts, &held) });
    }
    if let Some((attribute, value)) = old.filter(|(_, value)| shown(value) != CUSTOM) {
        rest.remove(attribute);
        steps.push(request(facts, &Attributes::from([(attribute.clone(), value.clone())])));
    }
    steps.push(request(facts, &rest));
    steps
}

/// True for attributes whose values are passwords, hashes of them and similar, which no file may contain.
pub(super) fn is_secret(attribute: &str) -> bool {
    let attribute = attribute.to_ascii_lowercase();
    ["password", "secret", "passphrase"].iter().any(|word| attribute.contains(word))
}
