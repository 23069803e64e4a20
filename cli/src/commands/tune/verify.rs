//! `lowlat tune verify`: compares the plan in force with the running kernel, row by row. Changes nothing.

use crate::{arguments::duration, commands::help, exit::Exit, output};
use anyhow::{Context, bail};
use clap::Args;
use jiff::Timestamp;
use lowlat_catalogue::CATALOGUE;
use lowlat_host::{HostSnapshot, Reading};
use lowlat_host_run::{Root, snapshot};
use lowlat_jitter_run::tick_proof::{TickOptions, count_ticks};
use lowlat_plan::{
    Plan,
    verify::{Input, Outcome, TickProof, Verification},
};
use lowlat_tune_report::{VerificationTextOptions, verification_lines, verification_text};
use lowlat_tune_run::evidence;
use lowlat_tune_run::{InForce, StateDir, boot_loader, flow};
use std::{
    path::{Path, PathBuf},
    time::Duration,
};

/// Shortest useful count, given up to ten events per second.
const TICKS_MIN: Duration = Duration::from_millis(100);

/// Compare the plan in force with the running kernel, and name what overrides it
#[derive(Debug, Args)]
#[command(after_help = help(&format!("States of a row:\n\
    \x20 held         in force\n\
    \x20 pending      waits for the reboot\n\
    \x20 overridden   by the named file, service or parameter\n\
    \x20 lost         the previous value is back\n\
    \x20 refused      not set, or not completely: the row has the reason and what to do\n\
    \x20 ineffective  configured, but the kernel does not follow\n\
    \x20 unreadable   cannot be checked\n\
    \x20 moves later  an interrupt that moves when it next fires\n\
    \x20 gone         its object no longer exists\n\n\
    To prove that ticks stop, lowlat runs a spinning thread on each idle isolated CPU for the time of --count-ticks. \
    Busy CPUs are only counted. More than {} timer interrupts per second mean a running tick.\n\n\
    Exit codes: 0 every row is held, moves later or is gone; 1 a row is not held or the undo log is \
    incomplete; 2 error; 3 only the reboot is missing.", Verification::ticks_per_s_max()), &[
    ("sudo lowlat tune verify", "Check after the reboot that everything is in force."),
    ("sudo lowlat tune verify --quiet --no-ticks", "Report only rows that are not held, for example from a timer."),
    ("sudo lowlat tune verify --json --count-ticks 10s", "Write a record for CI, with a longer count of ticks."),
    ("lowlat tune verify --plan plan.json --root desk7.tar.gz", "Compare a captured host with a saved plan."),
]))]
pub struct TuneVerifyArgs {
    /// Verify this saved plan [default: the plan in force]
    #[arg(long, value_name = "FILE")]
    plan: Option<PathBuf>,
    /// Read this host: a directory with proc/ and sys/, or a capture file, without counting ticks
    #[arg(long, value_name = "DIR|FILE", default_value = "/")]
    root: PathBuf,
    /// Count the ticks of isolated CPUs for this long
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = duration, conflicts_with = "no_ticks")]
    count_ticks: Duration,
    /// Do not count ticks
    #[arg(long)]
    no_ticks: bool,
    /// Do not run spinning threads on isolated CPUs while counting; an idle CPU proves less
    #[arg(long, conflicts_with = "no_ticks")]
    no_spin: bool,
    /// Also show rows that are held
    #[arg(long)]
    all: bool,
    /// Print only one line per row that is not held
    #[arg(long, conflicts_with_all = ["all", "json"])]
    quiet: bool,
    /// Print the verification as JSON
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &TuneVerifyArgs) -> anyhow::Result<Exit> {
    if !arguments.no_ticks && arguments.count_ticks < TICKS_MIN {
        bail!(
            "--count-ticks {:?} is too short to detect a tick\nhint: count for 100ms or longer",
            arguments.count_ticks
        );
    }
    let root = Root::open(&arguments.root)?;
    let state = StateDir::below(&arguments.root);
    let (plan, in_force) = subject(arguments, &state, &root)?;
    let ticks = Some(arguments).filter(|arguments| !arguments.no_ticks);
    let mut verification = verify(&state, &root, &plan, in_force.as_ref(), ticks)?;
    let doubt = in_force.as_ref().map(|_| flow::log_doubt(&state)).transpose()?.flatten();
    let doubt = doubt
        .map(|doubt| format!("{doubt}; `lowlat tune rollback --dry-run` shows what can still be restored."));
    verification.warnings.extend(doubt.clone());
    if arguments.json {
        output::print_json(&verification)?;
    } else if arguments.quiet {
        let lines = verification_lines(&verification);
        if !lines.is_empty() {
            output::print(&lines)?;
        }
        if let Some(doubt) = &doubt {
            output::talk(doubt);
        }
    } else {
        let applied = super::in_utc(in_force.as_ref().map(|in_force| in_force.applied_unix_ms));
        let options =
            VerificationTextOptions { show_all: arguments.all, width: output::width(), applied: &applied };
        output::print(&verification_text(&verification, &options))?;
    }
    Ok(match verification.outcome() {
        _ if doubt.is_some() => Exit::Findings,
        Outcome::Held => Exit::Clean,
        Outcome::NotHeld => Exit::Findings,
        Outcome::Pending => Exit::Pending,
    })
}

/// Compares the plan in force with the running host, without counting ticks. `None` if no plan is in force.
pub fn in_force(root: &Root) -> anyhow::Result<Option<Verification>> {
    let state = StateDir::below(Path::new("/"));
    let in_force = state.in_force().context("cannot read the plan in force")?;
    in_force.map(|(in_force, plan)| verify(&state, root, &plan, Some(&in_force), None)).transpose()
}

/// Returns the plan, and what is known of its apply.
fn subject(
    arguments: &TuneVerifyArgs,
    state: &StateDir,
    root: &Root,
) -> anyhow::Result<(Plan, Option<InForce>)> {
    let in_force = (!root.is_capture()).then(|| state.in_force()).transpose();
    if let Some(path) = &arguments.plan {
        let plan = super::plan_file::read(path)?;
        // A saved plan needs no state, so an unreadable state is not an error here.
        let applied = in_force.ok().flatten().flatten().filter(|(in_force, _)| in_force.plan_id == plan.id());
        return Ok((plan, applied.map(|(in_force, _)| in_force)));
    }
    match in_force
        .context("cannot read the plan in force\nhint: run it with sudo, or name a plan with --plan FILE")?
        .flatten()
    {
        Some((in_force, plan)) => Ok((plan, Some(in_force))),
        None if root.is_capture() => {
            bail!(
                "cannot verify {}: a capture does not contain the plan in force\nhint: name a saved plan with --plan FILE",
                root.label()
            )
        }
        None => bail!(
            "cannot verify {}: no plan is in force\nhint: run `lowlat tune apply`, or name a saved plan with --plan FILE",
            root.label()
        ),
    }
}

/// Compares a plan with a host. `counting` has how to count ticks, if they are to be counted.
fn verify(
    state: &StateDir,
    root: &Root,
    plan: &Plan,
    in_force: Option<&InForce>,
    counting: Option<&TuneVerifyArgs>,
) -> anyhow::Result<Verification> {
    let host = snapshot::read(root, CATALOGUE);
    let mut evidence = evidence::read(root, plan);
    if let Ok(loader) = boot_loader::detect(root) {
        evidence.next_boot_line = loader.next_boot_line(root);
    }
    let mut warnings = Vec::new();
    let ticks = match counting {
        Some(counting) => proof(counting, root, plan, &host, &mut warnings)?,
        None => None,
    };
    if let Some(in_force) = in_force {
        evidence.refused = state.refused(host.kernel.boot_id.text())?;
        evidence.refused.extend(in_force.refused.iter().cloned());
    }
    if root.is_live() {
        evidence.interrupts_later = Some(snapshot::interrupts_now(root));
    }
    let now_ms = Timestamp::now().as_millisecond();
    let mut verification = Verification::of(&Input {
        plan,
        host: &host,
        evidence: &evidence,
        catalogue: CATALOGUE,
        applied_boot_id: in_force.map(|in_force| in_force.applied_boot_id.as_str()),
        applied_unix_ms: in_force.map(|in_force| in_force.applied_unix_ms),
        verified_unix_ms: u64::try_from(now_ms).unwrap_or(0),
        ticks: ticks.as_ref(),
        lowlat_version: env!("CARGO_PKG_VERSION"),
    });
    if in_force.is_some_and(|in_force| !in_force.is_complete) {
        warnings.push(
            "The plan was not applied completely. Apply it again, or run `lowlat tune rollback`.".to_owned(),
        );
    }
    if in_force.is_some_and(|in_force| in_force.confirm_within_s.is_some()) {
        warnings.push(
            "The plan will be rolled back unless it is confirmed: run `lowlat tune confirm`.".to_owned(),
        );
    }
    verification.warnings.extend(warnings);
    Ok(verification)
}

/// Counts ticks if the host is running and the plan isolates CPUs.
fn proof(
    arguments: &TuneVerifyArgs,
    root: &Root,
    plan: &Plan,
    host: &HostSnapshot,
    warnings: &mut Vec<String>,
) -> anyhow::Result<Option<TickProof>> {
    let online = &host.topology.online;
    let isolated = plan.isolated.intersection(online);
    if isolated.is_empty() {
        return Ok(None);
    }
    if !root.is_live() {
        warnings.push(format!("No ticks were counted: {} is not a running host.", root.label()));
        return Ok(None);
    }
    let hz = host.kernel.config_option("HZ").and_then(|hz| match hz {
        Some(text) => Reading::Known(text).parse("CONFIG_HZ", "a number", |text| text.parse().ok()),
        None => Reading::Absent,
    });
    let options = TickOptions {
        isolated,
        housekeeping: plan.housekeeping.intersection(online),
        window: arguments.count_ticks,
        spins: !arguments.no_spin,
        hz,
    };
    let proof = count_ticks(&options).context("cannot count ticks\nhint: --no-ticks skips the count")?;
    warnings.extend(proof.doubts.iter().cloned());
    Ok(Some(proof))
}
