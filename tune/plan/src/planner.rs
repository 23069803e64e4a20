//! The planner: gathers the proposals of all wrong rows.

use super::{HostMark, LeftOut, Plan, boot_line, partition, stands, warnings};
use lowlat_host::{IsolateBy, Profile, Reading};
use lowlat_settings::{
    Context, Finding, Layer, Risk, Setting, Verdict,
    change::{
        BootToken, Change, Moment, Proposal, ProposedChange, Target, WhyLeftOut, files, grammar, sysctl,
        sysctl::HeldKey, tuned,
    },
    judge_one, same_meaning,
};
use std::collections::BTreeMap;

impl Plan {
    /// Plans a host for the context's profile. The result depends on the arguments only.
    /// A wrong row is among the changes or left out, or both; every other row is left out as good, not
    /// applicable or unknown. `lowlat_version` is the caller's version.
    pub fn of(context: &Context<'_>, lowlat_version: &str) -> Self {
        Self::of_some(context, lowlat_version, |_| true)
    }

    /// Plans a host by some settings alone. The others are neither changed nor listed as left out.
    pub fn of_some(
        context: &Context<'_>,
        lowlat_version: &str,
        is_wanted: impl Fn(&Setting) -> bool,
    ) -> Self {
        let mut gathered = Gathered::default();
        for setting in context.catalogue.settings().filter(|setting| is_wanted(setting)) {
            let finding = judge_one(context, setting);
            if !is_asked_for(context, setting) || context.role.accepts(setting.id) {
                gathered.held.extend(held(context, setting, finding.verdict));
            }
            if finding.verdict.is_fault() {
                gathered.fault(context, setting, &finding);
            } else {
                gathered.leave(setting, why_fine(finding.verdict), &fine_in_words(&finding));
            }
        }
        gathered.finish(context, lowlat_version)
    }
}

#[derive(Debug, Default)]
struct Gathered {
    changes: Vec<Change>,
    /// The index of each target in `changes`, of which a large host has thousands.
    places: BTreeMap<Target, usize>,
    tokens: Vec<BootToken>,
    left_out: Vec<LeftOut>,
    held: Vec<HeldKey>,
}

impl Gathered {
    fn leave(&mut self, setting: &Setting, why: WhyLeftOut, text: &str) {
        self.left_out.push(LeftOut {
            setting: setting.id.to_owned(),
            layer: setting.layer.word().to_owned(),
            why,
            text: text.to_owned(),
        });
    }

    fn fault(&mut self, context: &Context<'_>, setting: &Setting, finding: &Finding) {
        let mut proposal = setting.proposal(context);
        if context.role.isolate_by == IsolateBy::Cpuset {
            partition::instead_of_boot(context, setting, &mut proposal);
        }
        without_what_is_so(context, &mut proposal);
        for (why, text) in &proposal.left_out {
            self.leave(setting, *why, text);
        }
        if proposal.is_empty() {
            if proposal.left_out.is_empty() {
                self.leave(setting, why_without_effect(setting), &stands_without_effect(finding));
            }
            return;
        }
        if is_asked_for(context, setting) && !context.role.accepts(setting.id) {
            let text = if setting.cost.is_empty() { setting.hazard } else { setting.cost };
            self.leave(setting, WhyLeftOut::NotAccepted(setting.risk), text);
            return;
        }
        for token in proposal.tokens {
            self.token(context, setting, token);
        }
        for step in proposal.steps {
            self.step(setting, step);
        }
    }

    /// The first row that names a parameter owns it.
    fn token(&mut self, context: &Context<'_>, setting: &Setting, mut token: BootToken) {
        if self.tokens.iter().any(|other| other.name == token.name) {
            return;
        }
        token.before = boot_line::standing(&context.host.kernel.tokens(), &token.name);
        setting.id.clone_into(&mut token.setting);
        self.tokens.push(token);
    }

    /// Two rows with the same value for one target are one change.
    fn step(&mut self, setting: &Setting, step: ProposedChange) {
        let place = self.places.get(&step.target).copied();
        if let Some(change) = place.and_then(|place| self.changes.get_mut(place)) {
            change.settings.push(setting.id.to_owned());
            change.risk = change.risk.max(setting.risk);
            return;
        }
        self.places.insert(step.target.clone(), self.changes.len());
        self.changes.push(Change {
            settings: vec![setting.id.to_owned()],
            layer: setting.layer.word().to_owned(),
            target: step.target,
            before: step.before,
            after: step.after,
            moment: step.moment,
            reason: setting.reason.to_owned(),
            cost: setting.cost.to_owned(),
            risk: setting.risk,
            sources: setting.sources.iter().map(|source| (*source).to_owned()).collect(),
        });
    }

    fn finish(mut self, context: &Context<'_>, lowlat_version: &str) -> Plan {
        let mut warnings = Vec::new();
        if let Some((file, warning)) = sysctl::file(context, &self.changes, &self.held) {
            self.changes.push(file);
            warnings.extend(warning);
        }
        if let Some(file) = tuned::file(context, &self.changes, &self.held) {
            self.changes.push(file);
        }
        if let Some((file, notes)) = partition::slice(context, &self.changes) {
            self.changes.push(file);
            warnings.extend(notes);
        }
        if !self.tokens.is_empty() {
            self.changes.push(command_line(context, self.tokens));
        }
        self.changes.sort_by_key(|change| layer_place(&change.layer));
        self.left_out.sort_by_key(|left| (left.why, layer_place(&left.layer)));
        warnings.extend(warnings::of(context, &self.changes));
        Plan {
            document: Plan::DOCUMENT.to_owned(),
            schema_version: Plan::SCHEMA_VERSION,
            lowlat_version: lowlat_version.to_owned(),
            profile: context.profile,
            host: HostMark::of(context.host),
            boot_id: if context.host.origin.is_redacted {
                Reading::Absent
            } else {
                context.host.kernel.boot_id.clone()
            },
            housekeeping: context.allocation.housekeeping.clone(),
            isolated: context.allocation.isolated.clone(),
            role: Some(context.role.clone()),
            changes: self.changes,
            left_out: self.left_out,
            warnings,
            unsupported: context.host.kernel.unsupported(),
            hindrances: Vec::new(),
        }
    }
}

/// All parameters as one change of the command line.
fn command_line(context: &Context<'_>, tokens: Vec<BootToken>) -> Change {
    let line = context.host.kernel.tokens();
    let after = boot_line::merge(&line, &tokens);
    let rows = || tokens.iter().filter_map(|token| context.catalogue.find(&token.setting));
    let mut settings: Vec<String> = tokens.iter().map(|token| token.setting.clone()).collect();
    settings.dedup();
    let mut sources: Vec<String> = rows().flat_map(|row| row.sources).map(|s| (*s).to_owned()).collect();
    sources.sort_unstable();
    sources.dedup();
    let costs: Vec<&str> = rows().map(|row| row.cost).filter(|cost| !cost.is_empty()).collect();
    Change {
        settings,
        layer: Layer::Boot.word().to_owned(),
        before: Reading::Known(line.raw().to_owned()),
        after,
        moment: Moment::AtBoot,
        reason: "The kernel reads these parameters at boot only. Each row has its reason.".to_owned(),
        cost: costs.join(" "),
        risk: rows().map(|row| row.risk).max().unwrap_or(Risk::None),
        sources,
        target: Target::CommandLine { tokens },
    }
}

/// Drops changes that are already in effect: parameters on the line and present values.
fn without_what_is_so(context: &Context<'_>, proposal: &mut Proposal) {
    let line = context.host.kernel.tokens();
    proposal.tokens.retain(|token| !stands(&line, token));
    proposal.steps.retain(|step| step.before.known().is_none_or(|before| *before != step.after));
}

/// The key of a row of guide 57037 that needs no change. The guide's file contains all its keys: defaults differ between
/// kernels, and other programs set some.
pub(super) fn held(context: &Context<'_>, setting: &Setting, verdict: Verdict) -> Option<HeldKey> {
    if context.profile != Profile::Guide57037 || setting.layer != Layer::Sysctl || !verdict.counts() {
        return None;
    }
    let value = files::value(context, setting)?;
    let present = context.host.sysctl(setting.name);
    let is_so = verdict == Verdict::Good || same_meaning(present.known()?, &value);
    let fits = is_so && grammar::is_sysctl(setting.name, &value);
    fits.then(|| HeldKey { key: setting.name.to_owned(), value })
}

/// True if a risk needs acceptance. Risks for hardware reports, protection and evidence always do. Risks that can stop
/// a host or a service do unless profile `trading` has the same value.
pub(super) fn is_asked_for(context: &Context<'_>, setting: &Setting) -> bool {
    match setting.risk {
        Risk::None | Risk::Power => false,
        Risk::Ras | Risk::Security | Risk::Compliance => true,
        Risk::Availability => {
            let of = |profile| files::value(&Context { profile, ..*context }, setting);
            match (of(Profile::Trading), of(context.profile)) {
                (Some(ours), Some(wanted)) => !same_meaning(&ours, &wanted),
                _ => context.profile != Profile::Trading,
            }
        }
    }
}

fn why_fine(verdict: Verdict) -> WhyLeftOut {
    match verdict {
        Verdict::Good => WhyLeftOut::Good,
        Verdict::NotApplicable => WhyLeftOut::NotApplicable,
        _ => WhyLeftOut::Unknown,
    }
}

fn fine_in_words(finding: &Finding) -> String {
    match (finding.observed.as_str(), finding.because.as_str()) {
        ("", because) => because.to_owned(),
        (observed, "") => observed.to_owned(),
        (observed, because) => format!("{observed}: {because}"),
    }
}

/// Services and their files are outside the kernel, so the kernel cannot be the reason.
fn why_without_effect(setting: &Setting) -> WhyLeftOut {
    match setting.layer {
        Layer::Service => WhyLeftOut::YourChoice,
        _ => WhyLeftOut::Kernel,
    }
}

fn stands_without_effect(finding: &Finding) -> String {
    let why = if finding.because.is_empty() { &finding.observed } else { &finding.because };
    format!("no writable value would change it: {why}")
}

fn layer_place(word: &str) -> usize {
    Layer::ALL.iter().position(|layer| layer.word() == word).unwrap_or(usize::MAX)
}
