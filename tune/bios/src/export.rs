//! The requests to send to the service, in order, and the requests that restore the current state.

use super::{
    audit::{custom, is_custom, profile_attribute},
    facts::{Attributes, BiosFacts, Server},
    judge::{self, RowAttribute},
    meaning::shown,
    restore::Restore,
    secrets::is_secret,
    table::{Row, Vendor, WORKLOAD_PROFILE, rows},
    window::{MaintenanceWindow, on_reset},
};
use lowlat_catalogue::CATALOGUE;
use lowlat_host::Profile;
use lowlat_settings::{Risk, Setting};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The reason for which an attribute cannot be changed.
pub(super) const READ_ONLY: &str = "read-only according to the registry";
/// Highest number of times that a forced value forces another one.
const CHAIN_MAX: usize = 8;
/// HPE's profile without power saving; the guide starts from it.
const LOW_LATENCY: &str = "LowLatency";
pub(super) const RESTART: &str = "Restart the server and wait for it; the BIOS applies the change during the \
                                  start. Then save the resources again and audit them, because a service may \
                                  accept a request and drop it.";
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
    /// Further changes that follow from it, according to the registry's dependencies.
    pub follows: Vec<SideEffect>,
    /// The maintenance window in which the service applies it; `None` if at the next restart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<MaintenanceWindow>,
    /// Steps for the user before the next request.
    pub then: &'static str,
}

/// An attribute that changes because another one does.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SideEffect {
    pub attribute: String,
    pub before: Value,
    pub after: Value,
    /// The attribute that it follows.
    pub by: String,
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
    pub server: Server,
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
        let mut draft =
            Draft { facts, profile, accepted_risks, read_only: read_only(facts), left_out: Vec::new() };
        if let Some((attribute, value)) = first_profile(facts, &settings) {
            let change = Attributes::from([(attribute.to_owned(), Value::from(value))]);
            let request = Request { then: EXPORT_ANEW, ..request(facts, &settings, &change) };
            if draft.is_safe(attribute, &request) {
                settings = after(facts, &settings, &change);
                steps.push(request);
            }
        }
        let unlocked = unlock(facts, &settings);
        let mut custom = settings.clone();
        custom.extend(unlocked.clone());
        let mut change = unlocked;
        change.extend(rows().filter_map(|row| draft.proposal(row, &settings, &custom)));
        if !steps.is_empty() {
            change.extend(draft.protections(&settings));
        }
        draft.release(&settings, &mut change);
        for change in in_order(facts, &settings, change) {
            steps.push(request(facts, &settings, &change));
            settings = after(facts, &settings, &change);
        }
        let unknown = facts.registry.is_none() && steps.iter().any(|step| is_of_profile(facts, step));
        // Without a registry nothing is known of what a change of the profile rewrites.
        let end = if unknown { Attributes::new() } else { settings };
        let restore = Restore::plan(facts, &end, &facts.active);
        let mut warnings = facts.warnings.clone();
        warnings.extend(
            restore
                .lost
                .iter()
                .map(|row| format!("A restore cannot bring {} back: {}.", row.attribute, row.why)),
        );
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
            server: facts.server.clone(),
            restore: restore.steps,
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
    read_only: BTreeSet<&'a str>,
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
        let is_unlocked = carrier.names.is_some_and(|names| names.needs_custom);
        if let Some(registry) = &self.facts.registry {
            if self.read_only.contains(carrier.attribute)
                && !(is_unlocked && registry.is_always_read_only(carrier.attribute))
            {
                return Err(READ_ONLY.into());
            }
            if carrier.entry.is_none() {
                return Err("not in the registry".into());
            }
        }
        carrier.to_write(&wanted).map(Some)
    }

    /// True if a request switches off no protection on which security hangs, or its risk is accepted. If not, the
    /// request is left out.
    fn is_safe(&mut self, attribute: &str, request: &Request) -> bool {
        let risk = |effect: &SideEffect| {
            let (row, setting, carrier) = judge::row_of(self.facts, &effect.attribute)?;
            let id = setting.id;
            let is_weak = carrier.meets(&effect.after, &weak_values(row));
            (setting.risk == Risk::Security && is_weak && !self.is_accepted(id)).then(|| {
                let (name, value) = (&effect.attribute, shown(&effect.after));
                (format!("{name} to {value}"), format!("--accept-risk {id}"))
            })
        };
        let (risks, options): (Vec<String>, Vec<String>) = request.follows.iter().filter_map(risk).unzip();
        if !risks.is_empty() {
            let value = shown(&request.body["Attributes"][attribute]);
            let (risks, options) = (risks.join(" and "), options.join(" "));
            let why = format!(
                "{value} is not chosen first: it sets {risks}, which costs security; use {options} to choose it"
            );
            self.leave_out(WORKLOAD_PROFILE, attribute, why);
        }
        risks.is_empty()
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
            let weak = weak_values(row);
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
    judge::row_of(facts, attribute).map(|(row, ..)| row.id)
}

/// The attribute of the workload profile, unless it is read-only, as all are on a server in lockdown.
fn changeable_profile(facts: &BiosFacts) -> Option<&str> {
    profile_attribute(facts).filter(|name| !read_only(facts).contains(*name))
}

/// The attributes that the registry marks as read-only, although no other attribute locks them.
pub(super) fn read_only(facts: &BiosFacts) -> BTreeSet<&str> {
    let Some(registry) = &facts.registry else { return BTreeSet::new() };
    let closed = locked(facts, &facts.active);
    // Dell's registries show the present state.
    let is_live = facts.vendor == Some(Vendor::Dell);
    let marked =
        registry.entries.iter().filter(|(_, entry)| entry.is_read_only).map(|(name, _)| name.as_str());
    marked
        .filter(|name| registry.is_always_read_only(name) || is_live && !closed.contains_key(*name))
        .collect()
}

/// The profile to choose before the one that unlocks: HPE's Low Latency, unless it or Custom is already
/// chosen.
fn first_profile<'a>(facts: &'a BiosFacts, settings: &Attributes) -> Option<(&'a str, &'static str)> {
    let attribute = changeable_profile(facts).filter(|_| facts.vendor == Some(Vendor::Hpe))?;
    let value = shown(settings.get(attribute)?);
    let registry = facts.registry.as_ref().and_then(|registry| registry.entries.get(attribute));
    let is_offered = registry.is_none_or(|entry| entry.values.iter().any(|(name, _)| name == LOW_LATENCY));
    (is_offered && value != LOW_LATENCY && !is_custom(facts, settings)).then_some((attribute, LOW_LATENCY))
}

/// The change that unlocks the settings of a profile; empty if they are unlocked.
pub(super) fn unlock(facts: &BiosFacts, settings: &Attributes) -> Attributes {
    match changeable_profile(facts).zip(custom(facts)).filter(|_| !is_custom(facts, settings)) {
        Some((attribute, value)) => Attributes::from([(attribute.to_owned(), value)]),
        None => Attributes::new(),
    }
}

/// The order in which to change the differences manually, as text.
pub(super) fn order(facts: &BiosFacts, settings: &Attributes) -> Vec<String> {
    let Some(attribute) = profile_attribute(facts) else { return Vec::new() };
    let mut order = Vec::new();
    if let Some((_, value)) = first_profile(facts, settings) {
        let change = Attributes::from([(attribute.to_owned(), Value::from(value))]);
        let follows = side_effects(facts, settings, &change);
        let changed: Vec<String> =
            follows.iter().map(|effect| format!("{} = {}", effect.attribute, shown(&effect.after))).collect();
        let changed = if changed.is_empty() { String::new() } else { format!(": {}", changed.join(", ")) };
        order.push(format!(
            "Set {attribute} to {LOW_LATENCY} and restart: it sets a group of settings at once{changed}. (The setup \
             menus need no restart here. Over Redfish a pending value that is overwritten is never applied.)"
        ));
    }
    if let Some(custom) = unlock(facts, settings).get(attribute).map(shown) {
        let next = if facts.vendor == Some(Vendor::Hpe) {
            "Change the others together with it."
        } else {
            "Restart, then change what it unlocks."
        };
        order.push(format!(
            "Set {attribute} to {custom}: it keeps the current values and unlocks each of them. {next}"
        ));
    }
    order
}

/// A request in the service's format: HPE and the standard both use `Attributes`. The apply time "at the next
/// reset" is included only if the service supports it.
pub(super) fn request(facts: &BiosFacts, before: &Attributes, attributes: &Attributes) -> Request {
    let mut body = json!({ "Attributes": attributes });
    if facts.apply_times.has_reset() {
        body["@Redfish.SettingsApplyTime"] = on_reset();
    }
    let follows = side_effects(facts, before, attributes);
    let uri = facts.settings_uri.clone();
    Request { method: "PATCH", uri, body, follows, window: None, then: RESTART }
}

/// What a change makes of other attributes, and these of further ones, beyond what the settings before it made of
/// them.
fn side_effects(facts: &BiosFacts, before: &Attributes, change: &Attributes) -> Vec<SideEffect> {
    let mut then = before.clone();
    then.extend(change.clone());
    let unforced = then.clone();
    let old = facts.effects(before).forced;
    let mut by = BTreeMap::new();
    for _ in 0..CHAIN_MAX {
        let forced = facts.effects(&then).forced.into_iter().filter(|(name, of)| old.get(name) != Some(of));
        let is_new =
            |(name, (value, _)): &(String, (Value, String))| then.get(name).is_some_and(|now| now != value);
        let new: Vec<_> = forced.filter(is_new).collect();
        if new.is_empty() {
            break;
        }
        for (name, (value, holder)) in new {
            then.insert(name.clone(), value);
            by.insert(name, holder);
        }
    }
    let effect = |(attribute, by): (String, String)| {
        let (before, after) = (unforced.get(&attribute)?.clone(), then.get(&attribute)?.clone());
        (before != after).then_some(SideEffect { attribute, before, after, by })
    };
    by.into_iter().filter_map(effect).collect()
}

/// The settings after a change.
pub(super) fn after(facts: &BiosFacts, before: &Attributes, change: &Attributes) -> Attributes {
    let mut settings = before.clone();
    settings.extend(change.clone());
    let follows = side_effects(facts, before, change);
    settings.extend(follows.into_iter().map(|effect| (effect.attribute, effect.after)));
    settings
}

fn is_of_profile(facts: &BiosFacts, request: &Request) -> bool {
    profile_attribute(facts).is_some_and(|name| request.body["Attributes"].get(name).is_some())
}

/// The attributes that these settings lock, by the registry or, without one, by what the vendor documents, each with
/// the one that locks it.
pub(super) fn locked(facts: &BiosFacts, settings: &Attributes) -> BTreeMap<String, String> {
    let mut locked = facts.effects(settings).locked;
    let Some(profile) = profile_attribute(facts) else { return locked };
    if is_custom(facts, settings) {
        return locked;
    }
    let entry = |name: &str| facts.registry.as_ref().and_then(|registry| registry.entries.get(name));
    let is_closed =
        |name: &&str| facts.registry.is_none() || entry(name).is_some_and(|entry| entry.is_read_only);
    let documented = rows().flat_map(|row| judge::names(facts, row)).filter(|names| names.needs_custom);
    let found = documented.filter_map(|names| judge::find(facts, names)).map(|(name, _)| name);
    for name in found.filter(is_closed) {
        locked.entry(name.to_owned()).or_insert_with(|| profile.to_owned());
    }
    locked
}

/// Splits a change into requests. HPE's controllers accept a profile together with what it unlocks; with others
/// the profile, or what else locks an attribute, comes first.
fn in_order(facts: &BiosFacts, settings: &Attributes, change: Attributes) -> Vec<Attributes> {
    let closed = locked(facts, settings);
    let is_first = |name: &String| facts.vendor == Some(Vendor::Hpe) || !closed.contains_key(name);
    let (first, later): (Attributes, Attributes) = change.into_iter().partition(|(name, _)| is_first(name));
    [first, later].into_iter().filter(|change| !change.is_empty()).collect()
}

/// The values of a row that do harm.
fn weak_values(row: &Row) -> Vec<String> {
    row.weakens.iter().map(|weak| (*weak).to_owned()).collect()
}
