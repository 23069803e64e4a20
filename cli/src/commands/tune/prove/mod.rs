//! `lowlat tune prove`: measures what each setting of a plan is worth on this host.

mod boots;
mod meter;

use super::{ask, check_ids};
use crate::{
    arguments, choose,
    commands::{
        completions, help,
        outputs::{OutputArgs, Outputs},
    },
    documents,
    exit::Exit,
    host::HostArgs,
    output,
    progress::Progress,
    results::PreparedFile,
    signals,
};
use anyhow::{Context as _, ensure};
use clap::Args;
use jiff::Timestamp;
use lowlat_catalogue::CATALOGUE;
use lowlat_host::CpuSet;
use lowlat_host_run::Root;
use lowlat_plan::{
    Plan,
    proof::{PlanProof, ProofSchedule, ProvenSettings, minimal_role, switch_groups},
};
use lowlat_tune_report::{proof_html, proof_text};
use lowlat_tune_run::flow::{
    self, ApplyOptions, Measuring, PlanFrom, Ready, RollbackRequest, Site, Switchboard,
};
use meter::ProofMeter;
use std::{
    io::Read as _,
    os::unix::process::CommandExt as _,
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::{atomic::Ordering, mpsc},
    thread,
    time::{Duration, Instant},
};

/// Time beyond twice the budget after which the guard restores the host.
const GUARD_SLACK: Duration = Duration::from_secs(120);

/// Measure what each run-time setting is worth here, by switching it off and on; the host is as before afterwards
#[derive(Debug, Args)]
#[command(after_help = help("The plan in force is proven, or else the run-time part of the plan that this command applies and rolls back. \
    Parameters of the kernel command line are proven by --reboots.\n\n\
    In each round, in another order, each setting is switched off while all others are on, through the undo log, and measured \
    in both positions in random order. A guard process restores the host if this one ends in any way or takes too long. Of \
    all gains and harms shown, 5 % are expected to be false.\n\n\
    With --reboots, the command line of the plan in force is proven: in each round the host boots once with all of its \
    parameters and once without those of each setting, in random order, until the budget is used up. lowlat-prove.service \
    measures each boot, prepares the next one, and goes on after a reboot at any moment. At the end the files are written and \
    the whole plan boots again.\n\n\
    A command is run once for each measurement. It prints JSON, of which --figure names the numbers, or the last line of its \
    output is a number; less is better.\n\n\
    Exit codes: 0 all rounds, and the host is as before; 1 interrupted, or something could not be restored; 2 error.", &[
    ("sudo lowlat tune prove --budget 1h --report proof.html", "Prove by the jitter of the isolated CPUs, and write the page."),
    ("sudo lowlat tune prove --minimal-role minimal.toml", "Write the settings that are worth it as a role for `lowlat tune apply --role`."),
    ("sudo lowlat tune prove --reboots --budget 8h --result proof.json", "Prove the kernel command line over a night."),
    ("sudo lowlat tune prove --figure /stages/t2o/p50_ns -- lowlat pipeline run --duration 5s --json", "Prove by tick to order."),
]))]
pub struct TuneProveArgs {
    #[command(flatten)]
    host: HostArgs,
    /// Accept the risk of this setting; repeatable
    #[arg(long, value_name = "ID", add = completions::settings())]
    accept_risk: Vec<String>,
    /// Longest time of all measurements
    #[arg(long, value_name = "TIME", default_value = "30m", value_parser = arguments::duration)]
    budget: Duration,
    /// Prove the parameters of the kernel command line of the plan in force, by rebooting between measurements
    #[arg(long, group = "over_reboots")]
    reboots: bool,
    /// End a proof over reboots, and keep what it has shown
    #[arg(long, conflicts_with_all = ["reboots", "command", "cpus"])]
    cancel: bool,
    /// Pause after each boot, before the measurement
    #[arg(long, value_name = "TIME", default_value = "1m", value_parser = arguments::duration, requires = "over_reboots")]
    settle: Duration,
    /// Measure these CPUs [default: the isolated ones of the plan]
    #[arg(long, value_name = "LIST", value_parser = arguments::cpus, conflicts_with = "command")]
    cpus: Option<CpuSet>,
    /// Take this number of the JSON that the command prints, such as /stages/t2o/p50_ns; repeatable
    #[arg(long, value_name = "POINTER", requires = "command")]
    figure: Vec<String>,
    /// Measure by this command
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
    /// Write the role of the minimal plan to this file
    #[arg(long, value_name = "FILE")]
    minimal_role: Option<PathBuf>,
    #[command(flatten)]
    outputs: OutputArgs,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
    /// Keep lowlat's own files here
    #[arg(long, value_name = "DIR", hide = true)]
    state_dir: Option<PathBuf>,
    /// Restore the host when stdin ends, or after this time; the command starts itself so
    #[arg(long, value_name = "TIME", hide = true, value_parser = arguments::duration)]
    guard: Option<Duration>,
    /// Go on with a proof over reboots; its unit starts the command so
    #[arg(long, hide = true, group = "over_reboots")]
    after_reboot: bool,
    /// The guard rolls the plan back instead of completing it
    #[arg(long, hide = true, requires = "guard")]
    guard_rolls_back: bool,
}

pub fn run(arguments: &TuneProveArgs) -> anyhow::Result<Exit> {
    let site = ask::open(&arguments.host.root, arguments.state_dir.as_ref())?;
    if let Some(longest) = arguments.guard {
        return guard(&site, longest, arguments.guard_rolls_back);
    }
    if arguments.reboots || arguments.after_reboot || arguments.cancel {
        return boots::run(arguments, &site);
    }
    check_ids(&arguments.accept_risk)?;
    let files = ProofFiles::prepare(arguments)?;
    let subject = ProofSubject::find(arguments, &site)?;
    let mut meter = ProofMeter::new(arguments, &subject.plan)?;
    let groups = switch_groups(&subject.plan).iter().filter(|group| group.fixed.is_none()).count();
    ensure!(groups > 0, "cannot prove this plan: none of its changes takes effect without a reboot");
    let schedule = meter.schedule(arguments.budget, groups)?;
    let question = format!(
        "Switch {groups} groups of settings of plan {} off and on, {} times each, for about {}?",
        subject.plan.id(),
        schedule.rounds,
        span_of(schedule.total)
    );
    if !ask::ask(&question, arguments.yes)? {
        output::talk("Nothing was changed.");
        return Ok(Exit::Findings);
    }
    let proof = subject.prove(&site, arguments, &schedule, &mut meter)?;
    files.write(arguments.outputs.label(proof), &subject.plan)
}

/// The files of a proof, checked before it.
struct ProofFiles {
    outputs: Outputs,
    role: Option<PreparedFile>,
}

impl ProofFiles {
    fn prepare(arguments: &TuneProveArgs) -> anyhow::Result<Self> {
        let outputs = arguments.outputs.prepare()?;
        Ok(Self {
            outputs,
            role: PreparedFile::prepare_if(arguments.minimal_role.as_deref(), "--minimal-role")?,
        })
    }

    /// Judges and writes a proof of this plan.
    fn write(self, mut proof: PlanProof, plan: &Plan) -> anyhow::Result<Exit> {
        proof.judge();
        let printed =
            self.outputs.write_as(&proof, &proof.labels, proof_text, proof_html, || Ok(String::new()));
        let role = minimal_role(&proof, &plan.role_in_force(), CATALOGUE);
        printed?;
        if let Some(file) = self.role {
            let note = file.note();
            file.write(role.as_bytes())?;
            output::talk(&note);
        }
        let is_whole = !proof.is_interrupted && proof.not_restored.is_empty();
        Ok(if is_whole { Exit::Clean } else { Exit::Findings })
    }
}

/// A proof of a plan that starts now, without its settings.
fn new_proof(plan: &Plan, meter: &ProofMeter<'_>, slice: Duration, settle: Duration) -> PlanProof {
    let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    PlanProof {
        document: PlanProof::DOCUMENT.to_owned(),
        schema_version: PlanProof::SCHEMA_VERSION,
        lowlat_version: env!("CARGO_PKG_VERSION").to_owned(),
        started_at: documents::in_rfc3339(Timestamp::now()),
        plan_id: plan.id(),
        profile: plan.profile,
        host: plan.host.clone(),
        measured: meter.in_words(),
        figures: meter.figures(),
        slice_ms: ms(slice),
        settle_ms: ms(settle),
        ..PlanProof::default()
    }
}

/// The plan to prove.
struct ProofSubject {
    plan: Plan,
    /// The plan and its host, if it is to be applied first.
    applied: Option<Ready>,
    host: crate::host::Host,
}

impl ProofSubject {
    fn find(arguments: &TuneProveArgs, site: &Site) -> anyhow::Result<Self> {
        let judge = &arguments.host.judge;
        let mut host = judge.read_with(Root::open(&arguments.host.root)?, Some(&site.state))?;
        if let Some((_, plan)) = site.state.in_force()? {
            ensure!(
                judge.role.is_none() && judge.profile.is_none() && arguments.accept_risk.is_empty(),
                "cannot prove another plan while plan {} is in force\nhint: leave out --role, --profile and \
                 --accept-risk, or roll it back with `lowlat tune rollback`",
                plan.id()
            );
            return Ok(Self { plan, applied: None, host });
        }
        host.role.accepted_risks.extend(arguments.accept_risk.iter().cloned());
        host.print_role_notes();
        let plan = Plan::of(&host.context(), env!("CARGO_PKG_VERSION"));
        // The switch of systemd acts even if the guard is killed too.
        let confirm_within = site.manager.is_some().then(|| 2 * arguments.budget + 2 * GUARD_SLACK);
        let options =
            ApplyOptions { persist: false, only_run_time: true, confirm_within, ..ApplyOptions::default() };
        let ready = Ready::new(site, &host.snapshot, plan, PlanFrom::Host, options)?;
        Ok(Self { plan: ready.plan.clone(), applied: Some(ready), host })
    }

    /// Applies the plan if needed, proves it, and lets the guard restore the host.
    fn prove(
        &self,
        site: &Site,
        arguments: &TuneProveArgs,
        schedule: &ProofSchedule,
        meter: &mut ProofMeter<'_>,
    ) -> anyhow::Result<PlanProof> {
        let stop = signals::stop_flag()?;
        let progress = Progress::new();
        let mut guard =
            ProofGuard::start(arguments, 2 * arguments.budget + GUARD_SLACK, self.applied.is_some())?;
        if let Some(ready) = &self.applied {
            ready.carry_out(site, &self.host.snapshot, &mut |what| progress.say(what))?;
        }
        if let ProofMeter::Jitter { options, .. } = meter {
            choose::step_aside(&options.cpus, &self.host.snapshot);
        }
        let began = Instant::now();
        let proof = new_proof(&self.plan, meter, schedule.slice, schedule.settle);
        let board = Switchboard::open(site)?;
        let mut tell = |done: u32, settings: &[String]| {
            let left = schedule.total.saturating_sub(began.elapsed());
            progress.say(format!(
                "pair {} of {}, {} left: {}",
                done + 1,
                schedule.pairs,
                span_of(left),
                settings.join(" ")
            ));
            if guard.is_over() {
                // Relaxed: the flag orders nothing.
                stop.store(true, Ordering::Relaxed);
            }
        };
        let mut measure = || meter.measure(&stop).map_err(|error| format!("{error:#}"));
        let proven =
            board.prove(schedule, &mut Measuring { measure: &mut measure, tell: &mut tell, stop: &stop });
        progress.finish();
        let not_restored = guard.finish()?;
        for line in &not_restored {
            output::talk(&format!("not restored: {line}"));
        }
        let settings = proven?;
        Ok(PlanProof {
            rounds: settings.iter().map(ProvenSettings::rounds).max().unwrap_or(0),
            settings,
            // Relaxed: the flag orders nothing.
            is_interrupted: stop.load(Ordering::Relaxed),
            not_restored,
            ..proof
        })
    }
}

/// "18m", as `--budget` takes it.
fn span_of(time: Duration) -> String {
    match time.as_secs() {
        s if s >= 120 => format!("{}m", s.div_ceil(60)),
        s => format!("{}s", s.max(1)),
    }
}

/// The process that restores the host when this one ends.
struct ProofGuard(Child);

impl ProofGuard {
    fn start(arguments: &TuneProveArgs, longest: Duration, rolls_back: bool) -> anyhow::Result<Self> {
        let mut command = Command::new(std::env::current_exe().context("cannot find lowlat's own file")?);
        command.args(["tune", "prove", "--guard", &format!("{}s", longest.as_secs())]);
        if rolls_back {
            command.arg("--guard-rolls-back");
        }
        if let Some(dir) = &arguments.state_dir {
            command.arg("--state-dir").arg(dir);
        }
        // A group of its own: Ctrl-C in a terminal signals the group of this process.
        command.arg("--root").arg(&arguments.host.root);
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0).spawn();
        Ok(Self(child.context("cannot start the guard")?))
    }

    fn is_over(&mut self) -> bool {
        !matches!(self.0.try_wait(), Ok(None))
    }

    /// Lets the guard restore the host, and returns what it could not restore.
    fn finish(mut self) -> anyhow::Result<Vec<String>> {
        drop(self.0.stdin.take());
        let output = self.0.wait_with_output().context("cannot wait for the guard")?;
        let mut lines: Vec<String> =
            String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect();
        if !output.status.success() && lines.is_empty() {
            lines.push(format!("the guard ended with {}; see `lowlat tune status`", output.status));
        }
        Ok(lines)
    }
}

/// Waits for the end of stdin or of the time, and restores the host. Prints what could not be restored.
fn guard(site: &Site, longest: Duration, rolls_back: bool) -> anyhow::Result<Exit> {
    // Signals are for the process that proves; this one ends with it.
    let _ = signals::stop_flag()?;
    let (sender, ended) = mpsc::channel();
    thread::spawn(move || {
        let mut rest = Vec::new();
        let read = std::io::stdin().read_to_end(&mut rest);
        let _ = sender.send(read.is_ok());
    });
    // A timeout restores too.
    let _ = ended.recv_timeout(longest);
    let left = if rolls_back { take_back(site)? } else { flow::apply_again(site)?.refused };
    for line in &left {
        output::print(line)?;
    }
    Ok(if left.is_empty() { Exit::Clean } else { Exit::Findings })
}

fn take_back(site: &Site) -> anyhow::Result<Vec<String>> {
    let outcome = flow::rollback(site, &RollbackRequest::default())?;
    let conflicts =
        outcome.conflicts.iter().map(|conflict| format!("{}: changed by another program", conflict.name));
    let failures = outcome.failures.iter().map(|left| format!("{}: {}", left.name, left.reason));
    let remaining = outcome.remaining.iter().map(|left| format!("{}: {}", left.name, left.reason));
    Ok(conflicts.chain(failures).chain(remaining).chain(outcome.damage.clone()).collect())
}
