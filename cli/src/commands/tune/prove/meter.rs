//! Measurements of a proof: jitter, or a command.

use super::{TuneProveArgs, span_of};
use anyhow::{Context as _, ensure};
use lowlat_host_run::Root;
use lowlat_jitter_run::jitter::{self, JitterOptions};
use lowlat_plan::{
    Plan,
    proof::{ProofFigure, ProofSchedule, ProofUnit},
};
use std::{
    process::{Command, Stdio},
    sync::atomic::AtomicBool,
    time::{Duration, Instant},
};

/// What is measured.
pub(super) enum ProofMeter<'a> {
    Jitter { root: Box<Root>, options: Box<JitterOptions> },
    Command { words: &'a [String], figures: &'a [String] },
}

impl<'a> ProofMeter<'a> {
    pub(super) fn new(arguments: &'a TuneProveArgs, plan: &Plan) -> anyhow::Result<Self> {
        if arguments.command.is_empty() {
            let cpus = arguments.cpus.clone().unwrap_or_else(|| plan.isolated.clone());
            ensure!(
                !cpus.is_empty(),
                "cannot prove by jitter: the plan isolates no CPU\nhint: name CPUs with --cpus"
            );
            let root = Root::open(&arguments.host.root)?;
            ensure!(
                root.is_live(),
                "cannot measure jitter of {}\nhint: a command can be measured: put it after `--`",
                root.label()
            );
            let options = JitterOptions::new(cpus, Duration::from_secs(1));
            options.check(&root)?;
            return Ok(Self::Jitter { root: Box::new(root), options: Box::new(options) });
        }
        Ok(Self::Command { words: &arguments.command, figures: &arguments.figure })
    }

    /// Runs a command twice: how long it takes is not known before, and the first run loads its files.
    pub(super) fn time_command(&self) -> anyhow::Result<Option<Duration>> {
        let Self::Command { words, figures } = self else { return Ok(None) };
        let mut took = Vec::new();
        for _ in 0..2 {
            let began = Instant::now();
            of_command(words, figures)?;
            took.push(began.elapsed());
        }
        Ok(took.into_iter().min())
    }

    /// Lets jitter be measured for this long each time, and count interruptions from this length on.
    pub(super) fn set_jitter(&mut self, duration: Duration, threshold_ns: Option<u64>) {
        if let Self::Jitter { options, .. } = self {
            options.duration = duration;
            options.threshold_ns = threshold_ns;
        }
    }

    /// The length from which on interruptions count; none before the first measurement, and for a command.
    pub(super) fn threshold_ns(&self) -> Option<u64> {
        match self {
            Self::Jitter { options, .. } => options.threshold_ns,
            Self::Command { .. } => None,
        }
    }

    pub(super) fn schedule(&mut self, budget: Duration, groups: usize) -> anyhow::Result<ProofSchedule> {
        let fixed = self.time_command()?;
        let schedule = ProofSchedule::within(budget, groups, self.figures().len(), fixed).map_err(|enough| {
            let enough = span_of(enough);
            anyhow::anyhow!("cannot show a difference of {groups} groups of settings in so little time\nhint: --budget {enough}")
        })?;
        self.set_jitter(schedule.slice, None);
        Ok(schedule)
    }

    pub(super) fn measure(&mut self, stop: &AtomicBool) -> anyhow::Result<Vec<f64>> {
        match self {
            Self::Jitter { root, options } => {
                let record = jitter::run(root, options, stop, &|_| (), None)?;
                // Later measurements count from the same length on.
                options.threshold_ns = Some(record.threshold_ns);
                let sum =
                    |of: fn(&lowlat_jitter::JitterCpu) -> u64| record.cpus.iter().map(of).sum::<u64>() as f64;
                let share = sum(|cpu| cpu.interruption_ns_total) / sum(|cpu| cpu.runtime_ns).max(1.0);
                let longest = record.cpus.iter().map(|cpu| cpu.interruption_ns_max).max().unwrap_or(0);
                Ok(vec![share * 1e9, longest as f64])
            }
            Self::Command { words, figures } => of_command(words, figures),
        }
    }

    pub(super) fn figures(&self) -> Vec<ProofFigure> {
        let figure = |name: &str, unit| ProofFigure { name: name.to_owned(), unit };
        match self {
            Self::Jitter { .. } => {
                vec![figure("time taken", ProofUnit::NsPerS), figure("longest", ProofUnit::Ns)]
            }
            Self::Command { figures: [], .. } => vec![figure("number printed", ProofUnit::Number)],
            Self::Command { figures, .. } => {
                let unit = |name: &str| if name.ends_with("_ns") { ProofUnit::Ns } else { ProofUnit::Number };
                figures.iter().map(|name| figure(name, unit(name))).collect()
            }
        }
    }

    pub(super) fn in_words(&self) -> String {
        match self {
            Self::Jitter { options, .. } => format!("jitter of {:#}", options.cpus),
            Self::Command { words, .. } => format!("`{}`", words.join(" ")),
        }
    }
}

/// Runs the user's command once.
fn of_command(words: &[String], figures: &[String]) -> anyhow::Result<Vec<f64>> {
    let (program, rest) = words.split_first().context("the command is empty")?;
    let output = Command::new(program).args(rest).stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let output = output.with_context(|| format!("cannot run {program}"))?;
    ensure!(output.status.success(), "{program} failed: {}", output.status);
    let text = String::from_utf8_lossy(&output.stdout);
    if figures.is_empty() {
        let last = text.trim_end().lines().last().unwrap_or_default();
        let number = last.trim().parse().ok().filter(|number: &f64| number.is_finite());
        return Ok(vec![number.with_context(|| {
            format!("the last line that {program} printed is no number: {last:?}\nhint: if it prints JSON, name its numbers with --figure")
        })?]);
    }
    let json: serde_json::Value = serde_json::from_str(&text)
        .with_context(|| format!("cannot parse what {program} printed as JSON"))?;
    let number = |pointer: &String| {
        json.pointer(pointer)
            .and_then(serde_json::Value::as_f64)
            .with_context(|| format!("{program} printed no number at {pointer}"))
    };
    figures.iter().map(number).collect()
}
