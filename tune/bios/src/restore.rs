//! The requests that bring a server back to saved settings, and what no request can bring back.

use super::{
    audit::profile_attribute,
    change::is_same,
    export::{LeftOutRow, RESTART, Request, after, id_of, locked, read_only, request, unlock},
    facts::{Attributes, BiosFacts},
    meaning::shown,
    secrets::is_secret,
};
use std::collections::BTreeMap;

const IF_APPLIED: &str = "Only after all steps were applied: before that the service rejects it, and it is \
                          not needed. Restart the server, because the next request locks these settings \
                          again.";
/// Highest number of requests.
const STEPS_MAX: usize = 16;

/// A way back to saved settings.
pub(super) struct Restore {
    pub steps: Vec<Request>,
    /// Settings that stay different, each with what locks or forces it.
    pub lost: Vec<LeftOutRow>,
    /// Values that only the BIOS computes and that differ.
    pub computed: Vec<LeftOutRow>,
}

impl Restore {
    /// Plans the requests from the settings `now` to others.
    pub fn plan(facts: &BiosFacts, now: &Attributes, target: &Attributes) -> Self {
        let computed = read_only(facts);
        let kept = target.iter().filter(|(name, value)| !value.is_null() && !is_secret(name));
        let kept = kept.map(|(name, value)| (name.clone(), value.clone()));
        let (computed, wanted): (Attributes, Attributes) =
            kept.partition(|(name, _)| computed.contains(name.as_str()));
        let way = Way { facts, wanted, then: locked(facts, target), forced: forced(facts, target) };
        let mut state = now.clone();
        let mut steps = Vec::new();
        while steps.len() < STEPS_MAX
            && let Some((change, then)) = way.next(&state)
        {
            steps.push(Request { then, ..request(facts, &state, &change) });
            state = after(facts, &state, &change);
        }
        let of_bios = |(name, value): (String, _)| {
            let is = state.get(&name).map(shown)?;
            let why = format!("it was {}, is {is}, and the BIOS computes it", shown(&value));
            Some(LeftOutRow { id: String::new(), attribute: name, why })
        };
        let computed = differing(&computed, &state).into_iter().filter_map(of_bios).collect();
        Self { steps, lost: way.lost(&state), computed }
    }
}

/// The values that settings force on attributes, each with the attribute that does.
fn forced(facts: &BiosFacts, settings: &Attributes) -> BTreeMap<String, (String, String)> {
    let forced = facts.effects(settings).forced;
    forced.into_iter().map(|(name, (value, by))| (name, (shown(&value), by))).collect()
}

fn differing(wanted: &Attributes, state: &Attributes) -> Attributes {
    let differs = |name: &String, value| state.get(name).is_none_or(|now| !is_same(now, value));
    let differing = wanted.iter().filter(|(name, value)| differs(name, value));
    differing.map(|(name, value)| (name.clone(), value.clone())).collect()
}

struct Way<'a> {
    facts: &'a BiosFacts,
    wanted: Attributes,
    /// What the wanted settings lock and force, each with the attribute that does.
    then: BTreeMap<String, String>,
    forced: BTreeMap<String, (String, String)>,
}

impl Way<'_> {
    /// The next change. First, while they are unlocked, the settings that the wanted ones lock. Then the profile alone,
    /// which sets what it controls. Then, after a restart, whatever is unlocked.
    fn next(&self, state: &Attributes) -> Option<(Attributes, &'static str)> {
        let closed = locked(self.facts, state);
        let is_open = |name: &String| !closed.contains_key(name);
        let (held, rest): (Attributes, Attributes) =
            differing(&self.wanted, state).into_iter().partition(|(name, _)| self.then.contains_key(name));
        // What the wanted settings force follows them.
        let held: Attributes = held.into_iter().filter(|(name, _)| !self.forced.contains_key(name)).collect();
        let profile = profile_attribute(self.facts).and_then(|name| rest.get_key_value(name));
        let custom = unlock(self.facts, state);
        if profile.is_some() && !held.keys().all(is_open) && !custom.is_empty() {
            return Some((custom, IF_APPLIED));
        }
        let held: Attributes = held.into_iter().filter(|(name, _)| is_open(name)).collect();
        if !held.is_empty() {
            return Some((held, IF_APPLIED));
        }
        if let Some((name, value)) = profile {
            return Some((Attributes::from([(name.clone(), value.clone())]), RESTART));
        }
        let rest: Attributes = rest.into_iter().filter(|(name, _)| is_open(name)).collect();
        (!rest.is_empty()).then_some((rest, RESTART))
    }

    /// What differs at the end of the way.
    fn lost(&self, state: &Attributes) -> Vec<LeftOutRow> {
        let (closed, forced) = (locked(self.facts, state), forced(self.facts, state));
        let by = |holder: &String| format!("{holder} = {}", state.get(holder).map(shown).unwrap_or_default());
        let row = |(name, value): (String, _)| {
            let was = shown(&value);
            let is = state.get(&name).map_or_else(|| "unknown".to_owned(), shown);
            let why = match (forced.get(&name), closed.get(&name)) {
                (Some((value, holder)), _) if *value == is => {
                    format!("it was {was}, and {} makes it {is}", by(holder))
                }
                (_, Some(holder)) => format!("it was {was}, stays {is}, and {} locks it", by(holder)),
                _ => format!("it was {was}, stays {is}"),
            };
            LeftOutRow { id: id_of(self.facts, &name).unwrap_or_default().into(), attribute: name, why }
        };
        differing(&self.wanted, state).into_iter().map(row).collect()
    }
}
