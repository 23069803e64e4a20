//! Check that the host is quiet enough to start, and the wait for it.

use super::arguments::ReadinessArgs;
use crate::{choose::Chosen, documents::Run, exit::Interrupted};
use anyhow::bail;
use lowlat_jitter::{ReadinessPoint, ReadinessState, judge_readiness};
use lowlat_jitter_run::jitter::QuietWatch;
use std::sync::atomic::{AtomicBool, Ordering};

/// Checks the host, or waits until it is quiet. Isolated CPUs are measured to prove that they are quiet, so a host that
/// is not ready stops such a run unless forced. Other CPUs are measured in any state.
pub fn look(
    arguments: &ReadinessArgs,
    run: &Run,
    chosen: &Chosen,
    stop: &AtomicBool,
) -> anyhow::Result<Vec<ReadinessPoint>> {
    let Run { host, audit, progress, .. } = run;
    let watch = QuietWatch::new(&host.root, &chosen.cpus, &host.snapshot, &host.allocation, audit);
    if arguments.when_quiet {
        let points = watch.wait(stop, &|points| progress.say(waiting_for(points)));
        // Relaxed: the flag orders nothing.
        if stop.load(Ordering::Relaxed) {
            return Err(Interrupted(waiting_for(&points)).into());
        }
        return Ok(points);
    }
    progress.say("checking that the host is quiet");
    let points = judge_readiness(&watch.look());
    if chosen.is_isolated && !arguments.force && points.iter().any(ReadinessPoint::blocks) {
        let rows: Vec<String> = points.iter().filter(|point| point.blocks()).map(row).collect();
        bail!(
            "the host is not quiet, so figures of its isolated CPUs would not be meaningful\n{}\nhint: --when-quiet waits for \
             quiet, --force measures anyway",
            rows.join("\n")
        );
    }
    Ok(points)
}

fn row(point: &ReadinessPoint) -> String {
    let action = if point.action.is_empty() { String::new() } else { format!(" {}", point.action) };
    format!("  {}: {}.{action}", point.id.replace('_', " "), point.observed)
}

fn waiting_for(points: &[ReadinessPoint]) -> String {
    let open: Vec<String> = points
        .iter()
        .filter(|point| point.is_blocking && point.state == ReadinessState::NotReady)
        .map(|point| format!("{} ({})", point.id.replace('_', " "), point.observed))
        .collect();
    if open.is_empty() {
        "the host is quiet".to_owned()
    } else {
        format!("waiting for quiet: {}", open.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_names_its_reason() {
        let point = |id: &str, state, is_blocking| ReadinessPoint {
            id: id.into(),
            state,
            observed: "0.50".into(),
            action: "Wait.".into(),
            is_blocking,
        };
        let points = [
            point("load", ReadinessState::NotReady, true),
            point("governor", ReadinessState::NotReady, false),
            point("swap", ReadinessState::Ready, true),
        ];
        assert_eq!(waiting_for(&points), "waiting for quiet: load (0.50)");
        assert_eq!(waiting_for(&points[1..]), "the host is quiet");
        assert_eq!(row(&points[0]), "  load: 0.50. Wait.");
    }
}
