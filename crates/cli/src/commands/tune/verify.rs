//! `lowlat tune verify`: the plan in force held against what the kernel says, row by row. Changes nothing.

use crate::commands::{Subcommand, examples};
use crate::{
    arguments::duration,
    output::{self, Exit},
};
use anyhow::{Context, bail};
use clap::{ArgMatches, Args, Command, FromArgMatches};
use jiff::Timestamp;
use lowlat_catalogue::CATALOGUE;
use lowlat_host::HostSnapshot;
use lowlat_measure::tick_proof::{TickOptions, count_ticks};
use lowlat_plan::{
    Plan,
    verify::{Input, Outcome, TickProof, Verification},
};
use lowlat_report::{VerificationTextOptions, verification_lines, verification_text};
use lowlat_sys::{Root, evidence, snapshot};
use lowlat_tune::{InForce, StateDir, boot_loader, flow};
use std::{path::PathBuf, time::Duration};

pub const COMMAND: Subcommand = Subcommand { name: "verify", declare, run };

/// Less than this says nothing of events that come ten times a second.
const TICKS_MIN: Duration = Duration::from_millis(100);

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
struct Arguments {
    /// Verify this saved plan [default: the plan in force]
    #[arg(long, value_name = "FILE")]
    plan: Option<PathBuf>,
    /// Read this host: a directory holding proc/ and sys/, or a capture file; no ticks are counted there
    #[arg(long, value_name = "DIR|FILE", default_value = "/")]
    root: PathBuf,
    /// How long the ticks of the isolated CPUs are counted
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = duration, conflicts_with = "no_ticks")]
    ticks: Duration,
    /// Count no ticks
    #[arg(long)]
    no_ticks: bool,
    /// Let no thread of its own spin on isolated CPUs while ticks are counted; idle ones prove less then
    #[arg(long, conflicts_with = "no_ticks")]
    no_spin: bool,
    /// Show rows that are held too
    #[arg(long)]
    all: bool,
    /// Print one line for each row that is not held, and nothing else
    #[arg(long, conflicts_with_all = ["all", "json"])]
    quiet: bool,
    /// Print the verification as JSON
    #[arg(long)]
    json: bool,
}

fn declare(command: Command) -> Command {
    Arguments::augment_args(command)
        .about("Hold the plan in force against what the kernel says: held, overridden by whom, lost, ineffective")
        .after_help(format!(
            "Each row is held, pending (waits for the reboot), overridden (by a file, a service or a parameter that is \
             named), lost (the value from before is back), ineffective (configured, and the kernel does not follow), \
             unreadable, moves later (an interrupt that moves when it fires next) or gone (nothing is left to hold).\n\n\
             The proof by ticks lets a thread spin on each isolated CPU that runs nothing, for --ticks; a CPU that is \
             busy already is left alone. More than {} timer interrupts a second are a tick that was not stopped.\n\n\
             Exit codes: 0 every row is held (or moves later, or is gone), 1 a row is not held or the undo log is not complete, 2 error, 3 nothing is \
             missing but what comes with the reboot.\n\n{}",
            Verification::ticks_per_s_max(),
            examples(&[
                ("sudo lowlat tune verify", "after the reboot: is everything in force?"),
                ("sudo lowlat tune verify --quiet --no-ticks", "for a timer: says only what is not held"),
                ("sudo lowlat tune verify --json --ticks 10s", "for CI and records, with a longer count of ticks"),
                ("lowlat tune verify --plan plan.json --root desk7.tar.gz", "a captured host by a saved plan"),
            ])
        ))
}

fn run(matches: &ArgMatches) -> anyhow::Result<Exit> {
    let arguments = Arguments::from_arg_matches(matches)?;
    if !arguments.no_ticks && arguments.ticks < TICKS_MIN {
        bail!(
            "--ticks {:?} is too short to tell a tick from its absence; count for 100ms or longer",
            arguments.ticks
        );
    }
    let root = Root::open(&arguments.root)?;
    let (plan, in_force) = subject(&arguments, &root)?;
    let mut verification = verify(&arguments, &root, &plan, in_force.as_ref())?;
    let doubt = match &in_force {
        Some(_) => flow::log_doubt(&StateDir::below(&arguments.root))?,
        None => None,
    };
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
        let applied = applied_when(in_force.as_ref());
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

/// The plan, and what is known of its apply.
fn subject(arguments: &Arguments, root: &Root) -> anyhow::Result<(Plan, Option<InForce>)> {
    let state = (!root.is_capture()).then(|| StateDir::below(&arguments.root));
    let in_force = state.map(|state| state.in_force()).transpose();
    if let Some(path) = &arguments.plan {
        let plan = super::plan_file::read(path)?;
        // A plan by itself needs no state, so one that cannot be read is no error here.
        let applied = in_force.ok().flatten().flatten().filter(|(in_force, _)| in_force.plan_id == plan.id());
        return Ok((plan, applied.map(|(in_force, _)| in_force)));
    }
    match in_force
        .context("cannot tell which plan is in force; run as root, or name a plan with --plan FILE")?
        .flatten()
    {
        Some((in_force, plan)) => Ok((plan, Some(in_force))),
        None if root.is_capture() => {
            bail!("a capture does not hold the plan in force; name a saved plan with --plan FILE")
        }
        None => bail!(
            "no plan is in force on {}; `lowlat tune apply` puts one in force, --plan FILE names a saved one",
            root.label()
        ),
    }
}

fn verify(
    arguments: &Arguments,
    root: &Root,
    plan: &Plan,
    in_force: Option<&InForce>,
) -> anyhow::Result<Verification> {
    let host = snapshot::read(root, CATALOGUE);
    let mut evidence = evidence::read(root, plan);
    if let Ok(loader) = boot_loader::detect(root) {
        evidence.next_boot_line = loader.next_boot_line(root);
    }
    let mut warnings = Vec::new();
    let ticks = proof(arguments, root, plan, &host, &mut warnings)?;
    if root.is_live() {
        evidence.interrupts_later = Some(evidence::interrupts(root));
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
            "The plan was not applied to its end: apply it again, or take it back with `lowlat tune rollback`.".to_owned(),
        );
    }
    if in_force.is_some_and(|in_force| in_force.confirm_within_s.is_some()) {
        warnings.push(
            "The plan waits for its confirmation and is rolled back without: `lowlat tune confirm`."
                .to_owned(),
        );
    }
    verification.warnings.extend(warnings);
    Ok(verification)
}

/// Counts ticks where there are CPUs to isolate and a running host.
fn proof(
    arguments: &Arguments,
    root: &Root,
    plan: &Plan,
    host: &HostSnapshot,
    warnings: &mut Vec<String>,
) -> anyhow::Result<Option<TickProof>> {
    let online = &host.topology.online;
    let isolated = plan.isolated.intersection(online);
    if arguments.no_ticks || isolated.is_empty() {
        return Ok(None);
    }
    if !root.is_live() {
        warnings.push(format!("No ticks were counted: {} is no running host.", root.label()));
        return Ok(None);
    }
    let hz = host.kernel.config_option("HZ").and_then(|hz| match hz {
        Some(text) => {
            lowlat_host::Reading::Known(text).parse("CONFIG_HZ", "a number", |text| text.parse().ok())
        }
        None => lowlat_host::Reading::Absent,
    });
    let options = TickOptions {
        isolated,
        housekeeping: plan.housekeeping.intersection(online),
        window: arguments.ticks,
        spins: !arguments.no_spin,
        hz,
    };
    let proof = count_ticks(&options).context("cannot count ticks; --no-ticks leaves them out")?;
    warnings.extend(proof.doubts.iter().cloned());
    Ok(Some(proof))
}

/// "2026-11-21 18:02:11 UTC".
fn applied_when(in_force: Option<&InForce>) -> String {
    let ms = in_force.and_then(|in_force| i64::try_from(in_force.applied_unix_ms).ok());
    let when = ms.and_then(|ms| Timestamp::from_millisecond(ms).ok());
    when.map_or_else(String::new, |when| when.strftime("%Y-%m-%d %H:%M:%S UTC").to_string())
}
