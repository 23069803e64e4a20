//! `lowlat tune prove --reboots`: the parameters of the command line, proven by booting without each of them in turn.

use super::{ProofFiles, TuneProveArgs, ask, meter::ProofMeter, new_proof, span_of};
use crate::{choose, documents, exit::Exit, output, signals};
use anyhow::{Context as _, bail, ensure};
use jiff::Timestamp;
use lowlat_host_run::{Root, pause};
use lowlat_plan::{
    Plan,
    proof::{BootProof, PlanProof},
};
use lowlat_tune_run::flow::{BootBoard, Site};
use lowlat_tune_run::units;
use std::{
    ffi::OsString,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

/// Length of a measurement of jitter: short beside a boot, and long beside what happens once a second.
const SLICE: Duration = Duration::from_secs(30);

pub fn run(arguments: &TuneProveArgs, site: &Site) -> anyhow::Result<Exit> {
    let root = &arguments.host.root;
    ensure!(
        Root::open(root)?.is_live(),
        "cannot reboot {}\nhint: only the running host is proven over reboots",
        root.display()
    );
    let judge = &arguments.host.judge;
    ensure!(
        judge.role.is_none() && judge.profile.is_none() && arguments.accept_risk.is_empty(),
        "cannot prove another plan than the one in force over reboots\nhint: leave out --role, --profile and --accept-risk"
    );
    let board = BootBoard::open(site)?;
    match board.proof()? {
        Some(_) if arguments.cancel => cancel(arguments, site, &board),
        _ if arguments.cancel => bail!("cannot end a proof over reboots: none is under way"),
        Some(boots) if arguments.after_reboot => go_on(arguments, site, &board, boots),
        _ if arguments.after_reboot => Ok(Exit::Clean),
        Some(boots) => bail!(
            "cannot start a proof over reboots: one is under way: {}\nhint: `lowlat tune prove --cancel` ends it",
            progress(&boots)
        ),
        None => start(arguments, site, &board),
    }
}

/// "boot 12, round 2 of at least 8, without boot.nohz_full; it ends by 2026-11-30T20:00:00Z".
fn progress(boots: &BootProof) -> String {
    let off = boots.off(boots.next());
    format!(
        "boot {}, round {} of at least {}, {}; it ends by {}",
        boots.proof.boots + 1,
        boots.proof.rounds + 1,
        boots.rounds_min(),
        if off.is_empty() { "with all settings".to_owned() } else { format!("without {}", off.join(" ")) },
        i64::try_from(boots.expected_end_unix_ms())
            .ok()
            .and_then(|ms| Timestamp::from_millisecond(ms).ok())
            .map_or_else(|| "an unknown time".to_owned(), documents::in_rfc3339)
    )
}

fn start(arguments: &TuneProveArgs, site: &Site, board: &BootBoard<'_>) -> anyhow::Result<Exit> {
    let files = &arguments.outputs.files;
    ensure!(
        files.report.is_some() || files.result.is_some(),
        "cannot prove over reboots: nothing would keep the answer\nhint: --report FILE, or --result FILE"
    );
    board.check()?;
    let command = command_after_reboot(std::env::args_os().skip(1))?;
    let folder = std::env::current_dir().context("cannot find the working directory")?;
    let folder = folder.to_str().context("the name of the working directory is not UTF-8")?;
    ProofFiles::prepare(arguments)?;
    let meter = ProofMeter::new(arguments, board.plan())?;
    meter.time_command()?;
    let proof = arguments.outputs.label(new_proof(board.plan(), &meter, SLICE, arguments.settle));
    let now_ms = u64::try_from(Timestamp::now().as_millisecond()).unwrap_or(0);
    let Some(mut boots) = BootProof::of(board.plan(), proof, arguments.budget, now_ms) else {
        bail!("cannot prove this plan over reboots: it has no parameters of the command line");
    };
    let question = format!(
        "Reboot this host again and again for {}? At least {} boots are needed to show a difference.",
        span_of(arguments.budget),
        boots.boots_min()
    );
    if !ask::ask(&question, arguments.yes)? {
        output::talk("Nothing was changed.");
        return Ok(Exit::Findings);
    }
    board.start(&mut boots, &command, folder)?;
    output::talk(&format!(
        "{}. Follow it with `journalctl --unit {}`, and end it with `lowlat tune prove --cancel`.",
        progress(&boots),
        units::PROVE
    ));
    reboot(site)?;
    Ok(Exit::Clean)
}

/// The arguments with which the unit goes on: those of this process, marked. The user's own command follows "--".
fn command_after_reboot(arguments: impl Iterator<Item = OsString>) -> anyhow::Result<Vec<String>> {
    let mut is_ours = true;
    let mut words = Vec::new();
    for word in arguments {
        let word = word.into_string().ok().filter(|word| !word.contains(char::is_control));
        let word = word.context("cannot write the command into a unit: it is not printable text")?;
        is_ours &= word != "--";
        words.push(if is_ours && word == "--reboots" { "--after-reboot".to_owned() } else { word });
    }
    Ok(words)
}

/// What the unit does in each boot.
fn go_on(
    arguments: &TuneProveArgs,
    site: &Site,
    board: &BootBoard<'_>,
    mut boots: BootProof,
) -> anyhow::Result<Exit> {
    let stop = signals::stop_flag()?;
    output::talk(&progress(&boots));
    let mut threshold_ns = boots.threshold_ns;
    let mut measure = || {
        // Until what starts with the host is at rest.
        pause::sleep(arguments.settle, &stop);
        // Relaxed: the flag orders nothing.
        let is_stopped = || stop.load(Ordering::Relaxed);
        let measured =
            (!is_stopped()).then(|| measure(arguments, site, board.plan(), &mut threshold_ns, &stop));
        measured.filter(|_| !is_stopped()).transpose().map_err(|error| format!("{error:#}"))
    };
    // The host shuts down, or someone stopped the unit: the next boot is measured instead.
    let Some(is_over) = board.go_on(&mut boots, &mut measure)? else { return Ok(Exit::Interrupted) };
    if boots.threshold_ns != threshold_ns {
        boots.threshold_ns = threshold_ns;
        board.keep(&boots)?;
    }
    if is_over {
        return finish(arguments, site, board, boots, true);
    }
    reboot(site)?;
    Ok(Exit::Clean)
}

/// Measures this boot. Interruptions count from the same length on in all boots.
fn measure(
    arguments: &TuneProveArgs,
    site: &Site,
    plan: &Plan,
    threshold_ns: &mut Option<u64>,
    stop: &AtomicBool,
) -> anyhow::Result<Vec<f64>> {
    let mut meter = ProofMeter::new(arguments, plan)?;
    meter.set_jitter(SLICE, *threshold_ns);
    if let ProofMeter::Jitter { options, .. } = &meter {
        choose::step_aside(&options.cpus, &site.snapshot());
    }
    let figures = meter.measure(stop)?;
    *threshold_ns = meter.threshold_ns();
    Ok(figures)
}

fn cancel(arguments: &TuneProveArgs, site: &Site, board: &BootBoard<'_>) -> anyhow::Result<Exit> {
    if let Some(manager) = &site.manager {
        manager.stop(units::PROVE).with_context(|| format!("cannot stop {}", units::PROVE))?;
    }
    // The unit may have recorded a boot until then, or ended the proof.
    let Some(mut boots) = board.proof()? else { return Ok(Exit::Clean) };
    boots.end("it was cancelled".to_owned());
    finish(arguments, site, board, boots, false)
}

/// Restores the command line, writes the answer, and removes what the proof has written.
fn finish(
    arguments: &TuneProveArgs,
    site: &Site,
    board: &BootBoard<'_>,
    boots: BootProof,
    may_reboot: bool,
) -> anyhow::Result<Exit> {
    let files = ProofFiles::prepare(arguments)?;
    let is_whole = board.restore(&boots)?;
    let why = boots.ended_by.clone().unwrap_or_default();
    let proof: PlanProof = boots.proof;
    output::talk(&format!("The proof over reboots is over after {} boots: {why}.", proof.boots));
    let exit = files.write(proof, board.plan())?;
    board.close()?;
    match is_whole {
        true => (),
        false if may_reboot => reboot(site)?,
        false => output::talk("This boot has not the whole command line of the plan. Reboot for it."),
    }
    Ok(exit)
}

fn reboot(site: &Site) -> anyhow::Result<()> {
    let manager = site.manager.as_ref().context("cannot reboot without systemd")?;
    manager.reboot().context("cannot reboot")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_goes_on_with_the_same_arguments() {
        let words = ["tune", "prove", "--reboots", "--budget", "8h", "--", "sh", "-c", "--reboots"];
        let after = command_after_reboot(words.iter().map(OsString::from)).unwrap();
        assert_eq!(after.join(" "), "tune prove --after-reboot --budget 8h -- sh -c --reboots");
        assert!(command_after_reboot([OsString::from("a\nb")].into_iter()).is_err());
    }
}
