//! Checks that planning on this host could have made a saved plan. A plan is a file: a user who can write it
//! must not be able to make lowlat, which runs as root, write anything outside the catalogue.

use super::{Plan, boot_line, partition, planner};
use lowlat_host::{
    Allocation, CpuSet, HostSnapshot, IsolateBy, Reading, Role, RoleSource,
    cmdline::{CommandLine, same_name, split},
};
use lowlat_settings::{
    Catalogue, Context, Verdict,
    change::{BootToken, Change, Moment, Target, cache, sysctl, sysctl::HeldKey, tuned},
};
use std::{
    collections::{BTreeMap, HashMap},
    mem::{Discriminant, discriminant},
};

impl Plan {
    /// The changes that planning here would not make, one line each; empty for an unmodified plan that
    /// lowlat made for this host.
    /// The host is planned again with the plan's CPUs, profile, accepted risks and old values. So a plan
    /// still fits if a part of it is already in effect, or if unrelated rows have changed. Interrupts and
    /// kernel threads that no longer exist must have a value that others of their kind get.
    pub fn foreign_changes(&self, host: &HostSnapshot, catalogue: Catalogue) -> Vec<String> {
        let online = &host.topology.online;
        let known = |cpus: &CpuSet| cpus.difference(online).is_empty();
        if !known(&self.housekeeping)
            || !known(&self.isolated)
            || !self.housekeeping.is_disjoint(&self.isolated)
        {
            return vec![format!(
                "CPUs: housekeeping {} and isolated {}, expected separate sets of the online CPUs {online}",
                self.housekeeping, self.isolated
            )];
        }
        let host = self.host_as_found(host);
        let mut foreign: Vec<RequestedValue<'_>> = self.changes.iter().flat_map(asked).collect();
        // The plan does not record the role's interfaces: those in use, or any.
        let all_nics = host.nics.iter().map(|nic| nic.name.clone()).collect();
        for nics in [Vec::new(), all_nics] {
            if foreign.is_empty() {
                break;
            }
            let role = self.role_of_changes(nics);
            let allocation = Allocation::choose(&host, &role);
            let context = Context {
                host: &host,
                role: &role,
                allocation: &allocation,
                profile: self.profile,
                catalogue,
            };
            let planned = Planned::of(&context, self);
            foreign.retain(|asked| !planned.has(asked));
        }
        foreign.iter().map(in_words).collect()
    }

    /// The plan's role, as far as its changes show it.
    pub(crate) fn role_of_changes(&self, nics: Vec<String>) -> Role {
        let of_tokens = self.changes.iter().flat_map(|change| change.target.boot_tokens());
        let named = self.changes.iter().flat_map(|change| change.settings.iter().cloned());
        let of = |id: &'static str| {
            self.changes.iter().filter(move |change| change.settings.iter().any(|own| own == id))
        };
        Role {
            profile: self.profile,
            housekeeping: Some(self.housekeeping.clone()),
            isolated: Some(self.isolated.clone()),
            nics,
            accepted_risks: named.chain(of_tokens.map(|token| token.setting.clone())).collect(),
            left_out: Vec::new(),
            // lowlat plans these only if the role requests them.
            is_busy_polling: of("nic.irq_suspend_timeout").any(|change| change.after != "0"),
            is_using_onload: of("nic.onload_queues").next().is_some(),
            is_partitioning_cache: of(cache::SETTING).next().is_some(),
            isolate_by: if self.changes.iter().any(partition::is_partition) {
                IsolateBy::Cpuset
            } else {
                IsolateBy::Boot
            },
            source: RoleSource::InForce,
        }
    }

    /// The host with the old values wherever the plan is already in effect.
    fn host_as_found(&self, host: &HostSnapshot) -> HostSnapshot {
        let mut host = host.clone();
        for change in &self.changes {
            if let Target::CommandLine { tokens } = &change.target {
                line_as_found(&mut host, tokens);
            } else if let Reading::Known(before) = &change.before {
                change.target.kind().revert(&mut host, before, &change.after);
            }
        }
        host
    }
}

/// One requested value of a plan.
#[derive(Debug, Clone, Copy)]
enum RequestedValue<'a> {
    Change(&'a Change),
    Token(&'a BootToken),
}

fn asked(change: &Change) -> Vec<RequestedValue<'_>> {
    match &change.target {
        Target::CommandLine { tokens } => tokens.iter().map(RequestedValue::Token).collect(),
        _ => vec![RequestedValue::Change(change)],
    }
}

fn line_as_found(host: &mut HostSnapshot, tokens: &[BootToken]) {
    let line = host.kernel.tokens();
    if !tokens.iter().any(|token| super::stands(&line, token)) {
        return;
    }
    let is_planned =
        |word: &&str| tokens.iter().any(|token| same_name(boot_line::name_of(word), &token.name));
    let mut words: Vec<&str> = split(line.raw()).into_iter().filter(|word| !is_planned(word)).collect();
    words.extend(tokens.iter().filter_map(|token| token.before.as_deref()));
    host.kernel.command_line = Reading::Known(CommandLine::parse(&words.join(" ")));
}

/// The result of planning, sorted for searching.
struct Planned<'a> {
    host: &'a HostSnapshot,
    after: BTreeMap<Target, (String, Moment)>,
    tokens: Vec<BootToken>,
    /// The values of interrupts and kernel threads, by kind and name.
    named: HashMap<Named, Vec<String>>,
}

/// Targets whose numbers differ between boots, by variant.
type Named = (Discriminant<Target>, String);

fn named(target: &Target) -> Option<Named> {
    target.kind().lasting().map(|lasting| (discriminant(target), lasting.name))
}

impl<'a> Planned<'a> {
    fn of(context: &Context<'a>, plan: &Plan) -> Self {
        let again = Plan::of(context, &plan.lowlat_version);
        let mut planned =
            Self { host: context.host, after: BTreeMap::new(), tokens: Vec::new(), named: HashMap::new() };
        for change in again.changes {
            if let Some(name) = named(&change.target) {
                planned.named.entry(name).or_default().push(change.after);
            } else if let Target::CommandLine { tokens } = change.target {
                planned.tokens = tokens;
            } else {
                planned.after.insert(change.target, (change.after, change.moment));
            }
        }
        // These files contain values of other changes, so their content follows from the plan. The planner
        // writes them in the catalogue's order.
        let place = |change: &Change| {
            let id = change.settings.first();
            context.catalogue.settings().position(|setting| id.is_some_and(|id| id == setting.id))
        };
        let mut changes = plan.changes.clone();
        changes.sort_by_cached_key(place);
        // Keys that needed no change are only in the files.
        let is_in_file = |held: &HeldKey| {
            let line = format!("{} = {}", held.key, held.value);
            plan.changes.iter().any(|change| change.after.lines().any(|other| other == line))
        };
        let held = context.catalogue.settings().filter_map(|row| planner::held(context, row, Verdict::Good));
        let held: Vec<HeldKey> = held.filter(is_in_file).collect();
        let files = sysctl::file(context, &changes, &held).map(|(file, _)| file);
        let slice = partition::slice(context, &changes).map(|(file, _)| file);
        for file in files.into_iter().chain(tuned::file(context, &changes, &held)).chain(slice) {
            planned.after.insert(file.target, (file.after, file.moment));
        }
        planned
    }

    fn has(&self, asked: &RequestedValue<'_>) -> bool {
        let change = match asked {
            RequestedValue::Change(change) => change,
            RequestedValue::Token(token) => {
                let essence =
                    |token: &BootToken| (token.setting.clone(), token.name.clone(), token.value.clone());
                return self.tokens.iter().any(|known| essence(known) == essence(token));
            }
        };
        let Some(name) = named(&change.target) else {
            let planned = self.after.get(&change.target);
            return planned.is_some_and(|(after, moment)| *after == change.after && *moment == change.moment);
        };
        match self.named.get(&name) {
            Some(values) => values.contains(&change.after),
            None => !self.is_here(change) && self.is_usual(name.0, &change.after),
        }
    }

    /// True if the host has an interrupt or a thread with the change's name.
    fn is_here(&self, change: &Change) -> bool {
        change.target.kind().lasting().is_some_and(|lasting| (lasting.is_on)(self.host, &lasting.name))
    }

    /// True if planning gives this value to another target of the same kind.
    fn is_usual(&self, kind: Discriminant<Target>, after: &str) -> bool {
        self.named.iter().any(|((of, _), values)| *of == kind && values.iter().any(|value| value == after))
    }
}

/// Maximum number of characters of a shown value.
const SHOWN_CHARS_MAX: usize = 80;

fn in_words(asked: &RequestedValue<'_>) -> String {
    let cut = |text: &str| -> String {
        let mut shown: String = text.chars().take(SHOWN_CHARS_MAX).collect();
        if shown.len() < text.len() {
            shown.push('…');
        }
        shown.escape_debug().to_string()
    };
    match asked {
        RequestedValue::Token(token) => {
            format!("boot parameter {}", cut(&boot_line::spell(token).unwrap_or_default()))
        }
        RequestedValue::Change(change) => {
            format!("{} = \"{}\"", cut(&change.target.kind().facts().name), cut(&change.after))
        }
    }
}
