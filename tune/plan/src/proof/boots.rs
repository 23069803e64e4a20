//! A proof over reboots: which parameters of the command line are off in which boot, and what each boot showed.
//!
//! In each round, in random order, the host boots once with all settings on, and once without each of them. A setting's
//! pair is the boot without it and the round's boot with all on.

use super::{FALSE_DISCOVERY_RATE, OnOffPair, PlanProof, ProvenSettings, switch_groups};
use crate::{Plan, drift::stands, spell};
use lowlat_host::{cmdline::CommandLine, paired::pairs_needed};
use lowlat_settings::change::BootToken;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Boots in a row that may fail to show anything, before their setting or the proof is given up.
const FAILED_BOOTS_MAX: u32 = 3;

/// The settings that are off in a boot: their index in [`PlanProof::settings`]; none if all are on.
pub type OffInBoot = Option<usize>;

/// A proof over reboots, as it is kept between them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BootProof {
    pub proof: PlanProof,
    /// Start, in milliseconds since 1970.
    pub started_unix_ms: u64,
    pub budget_ms: u64,
    /// The boots of this round that are left, the next one first.
    left: Vec<OffInBoot>,
    /// The figures of this round's boots, in their order.
    measured: Vec<(OffInBoot, Vec<f64>)>,
    failed_boots: u32,
    /// [`PlanProof::measured`] by jitter: the length from which on interruptions count; none before the first boot.
    pub threshold_ns: Option<u64>,
    /// The boot in which the next one was prepared.
    pub prepared_in: String,
    /// The reason for the end; none while boots are left.
    pub ended_by: Option<String>,
}

impl BootProof {
    /// The proof of a plan's command line; none if the plan has no parameters.
    pub fn of(plan: &Plan, proof: PlanProof, budget: Duration, started_unix_ms: u64) -> Option<Self> {
        let tokens = plan.boot_tokens()?;
        let mut settings: Vec<ProvenSettings> = Vec::new();
        for token in tokens {
            let shown = spell(token).unwrap_or_else(|| format!("no {}", token.name));
            let change = format!("{} -> {shown}", token.before.as_deref().unwrap_or("absent"));
            match settings.iter_mut().find(|known| known.settings == [token.setting.as_str()]) {
                Some(known) => known.changes.push(change),
                None => settings.push(ProvenSettings {
                    settings: vec![token.setting.clone()],
                    changes: vec![change],
                    ..ProvenSettings::default()
                }),
            }
        }
        let is_of_line = |id: &String| tokens.iter().any(|token| token.setting == *id);
        let others = switch_groups(plan).into_iter().filter(|group| !group.settings.iter().any(is_of_line));
        settings.extend(others.map(|group| ProvenSettings {
            unmeasured: Some(
                group.fixed.unwrap_or("`lowlat tune prove` without --reboots measures it").to_owned(),
            ),
            settings: group.settings,
            ..ProvenSettings::default()
        }));
        let budget_ms = u64::try_from(budget.as_millis()).unwrap_or(u64::MAX);
        let mut boots = Self {
            proof: PlanProof { settings, ..proof },
            started_unix_ms,
            budget_ms,
            left: Vec::new(),
            measured: Vec::new(),
            failed_boots: 0,
            threshold_ns: None,
            prepared_in: String::new(),
            ended_by: None,
        };
        boots.start_round();
        Some(boots)
    }

    /// The settings to measure.
    fn groups(&self) -> impl Iterator<Item = usize> {
        let settings = self.proof.settings.iter().enumerate();
        settings.filter(|(_, proven)| proven.unmeasured.is_none()).map(|(at, _)| at)
    }

    fn boots_of_round(&self) -> u32 {
        1 + u32::try_from(self.groups().count()).unwrap_or(u32::MAX - 1)
    }

    /// The fewest rounds that can show a difference.
    pub fn rounds_min(&self) -> u32 {
        let tests = self.groups().count() * self.proof.figures.len();
        u32::try_from(pairs_needed(tests, FALSE_DISCOVERY_RATE)).unwrap_or(u32::MAX)
    }

    /// The fewest boots that can show a difference.
    pub fn boots_min(&self) -> u32 {
        self.rounds_min().saturating_mul(self.boots_of_round())
    }

    fn start_round(&mut self) {
        self.left = self.groups().map(Some).chain([None]).collect();
        // Another order in each round, and the same after an interruption.
        fastrand::Rng::with_seed(self.started_unix_ms.wrapping_add(self.proof.rounds.into()))
            .shuffle(&mut self.left);
        self.measured.clear();
    }

    /// The boot that comes next, or is running.
    pub fn next(&self) -> OffInBoot {
        self.left.first().copied().flatten()
    }

    /// The ids of the settings that are off in a boot.
    pub fn off(&self, off: OffInBoot) -> &[String] {
        off.and_then(|at| self.proof.settings.get(at)).map_or(&[], |proven| &proven.settings)
    }

    /// The parameters of the plan that a boot has.
    pub fn tokens_on(&self, plan: &Plan, off: OffInBoot) -> Vec<BootToken> {
        let tokens = plan.boot_tokens().unwrap_or_default().iter();
        tokens.filter(|token| !self.off(off).contains(&token.setting)).cloned().collect()
    }

    /// True if a command line is that of a boot.
    pub fn is_line_of(&self, plan: &Plan, line: &CommandLine, off: OffInBoot) -> bool {
        let mut tokens = plan.boot_tokens().unwrap_or_default().iter();
        tokens.all(|token| stands(line, token) != self.off(off).contains(&token.setting))
    }

    /// Records the figures of the running boot.
    pub fn record(&mut self, figures: Vec<f64>) {
        let off = self.next();
        self.measured.push((off, figures));
        self.proof.boots += 1;
        self.failed_boots = 0;
        self.go_on();
    }

    /// Records that the running boot showed nothing.
    pub fn fail(&mut self, why: &str) {
        self.failed_boots += 1;
        if self.failed_boots < FAILED_BOOTS_MAX {
            return;
        }
        self.failed_boots = 0;
        match self.next().and_then(|at| self.proof.settings.get_mut(at)) {
            Some(proven) => {
                proven.unmeasured = Some(format!("boots without it cannot be measured: {why}"));
                self.go_on();
            }
            None => self.end(format!("boots with all settings cannot be measured: {why}")),
        }
    }

    fn go_on(&mut self) {
        self.left.drain(..1.min(self.left.len()));
        if !self.left.is_empty() {
            return;
        }
        self.take_pairs();
        self.proof.rounds += 1;
        if self.boots_of_round() > 1 {
            self.start_round();
        } else {
            self.end("no setting is left to measure".to_owned());
        }
    }

    /// Pairs the boots of this round. A setting without its boot, or in a round without all on, has no pair.
    fn take_pairs(&mut self) {
        let measured = std::mem::take(&mut self.measured);
        let Some(place) = measured.iter().position(|(off, _)| off.is_none()) else { return };
        let on = measured[place].1.clone();
        for (at, (off, figures)) in measured.into_iter().enumerate() {
            if let Some(proven) = off.and_then(|off| self.proof.settings.get_mut(off)) {
                proven.pairs.push(OnOffPair { on: on.clone(), off: figures, is_on_first: place < at });
            }
        }
    }

    /// Ends the proof if its time is over, or cannot be enough.
    pub fn watch_time(&mut self, now_unix_ms: u64) {
        if self.proof.boots == 0 || self.ended_by.is_some() {
            return;
        }
        let took_ms = now_unix_ms.saturating_sub(self.started_unix_ms);
        let boot_ms = took_ms / u64::from(self.proof.boots);
        let needed_ms = boot_ms.saturating_mul(self.boots_min().into());
        if took_ms.saturating_add(boot_ms) > self.budget_ms {
            self.end("the budget is used up".to_owned());
        } else if self.proof.rounds == 1
            && self.left.len() == self.boots_of_round() as usize
            && needed_ms > self.budget_ms
        {
            self.end(format!(
                "a boot takes {} s, and {} boots are needed: --budget {}m",
                boot_ms / 1000,
                self.boots_min(),
                needed_ms.div_ceil(60_000)
            ));
        }
    }

    /// Ends the proof. It is interrupted if its rounds can show nothing yet.
    pub fn end(&mut self, why: String) {
        self.take_pairs();
        self.proof.is_interrupted = self.proof.rounds < self.rounds_min();
        self.ended_by = Some(why);
    }

    /// The expected end, in milliseconds since 1970.
    pub fn expected_end_unix_ms(&self) -> u64 {
        self.started_unix_ms.saturating_add(self.budget_ms)
    }
}
