//! A trial from start to end.

use super::{
    Role, Scene, Subject, SubjectLayout,
    board::{Board, Count, Slot},
    clock::now_ns,
    crew::Crew,
    others, record,
};
use crate::ipc::star;
use anyhow::{Context, bail};
use lowlat_pipeline::{PipelineParameters, PipelineRecord};
use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

const LOOK: Duration = Duration::from_millis(10);
/// Time between the readiness of all processes and the first quote.
const SETTLE_NS: u64 = 300_000_000;
/// Longest wait for orders in flight after the end of the schedule.
const TAIL_NS: u64 = 3_000_000_000;
/// Longest wait for reports and the end of the processes.
const END: Duration = Duration::from_secs(5);

/// Runs one trial. Ends early, with an error, when `stop` is set.
pub fn run(
    subject: Subject,
    parameters: &PipelineParameters,
    stop: &AtomicBool,
) -> anyhow::Result<PipelineRecord> {
    let scene = Scene::new(subject, parameters.clone(), None)?;
    if let SubjectLayout::IpcStar(layout) = &scene.layout.subject {
        star::prepare(&scene, layout)?;
    }
    let folder = tempfile::Builder::new().prefix("lowlat-peers-").tempdir().context("no temporary folder")?;
    let board = scene.board();
    // Declared after the folder, so that it is dropped first: the sockets are removed when no process uses them.
    let mut crew = Crew::new(subject);
    let patience = Duration::from_secs(20) + Duration::from_millis(100) * u32::try_from(scene.roles.len())?;
    for (member, role) in scene.roles.iter().enumerate() {
        crew.start(&scene, member, folder.path())?;
        if *role == Role::Master {
            // The others connect to it.
            wait_for(&mut crew, stop, patience, "ready", || slots(&board, 0..1, Slot::Ready))?;
        }
    }
    let all = 0..scene.roles.len();
    wait_for(&mut crew, stop, patience, "ready", || slots(&board, all.clone(), Slot::Ready))?;
    let start_ns = now_ns() + SETTLE_NS;
    let host_before = others::HostTime::now();
    board.run(start_ns);
    let end_ns = start_ns + scene.load.length_ns();
    loop {
        thread::sleep(LOOK);
        if stop.load(Ordering::Relaxed) {
            bail!("interrupted");
        }
        crew.check()?;
        let now = now_ns();
        if now >= end_ns && (is_all_answered(&scene, &board) || now > end_ns + TAIL_NS) {
            break;
        }
    }
    let measured_s = (now_ns().saturating_sub(start_ns)) as f64 / 1e9;
    let host_after = others::HostTime::now();
    board.end();
    if let SubjectLayout::IpcStar(layout) = &scene.layout.subject {
        star::wake_all(&scene, layout);
    }
    let killed = crew.end(END);
    let mut record = record::of(&scene, &board, measured_s)?;
    let own_s = record.uses.iter().map(|row| row.cpu_s).sum();
    record.warnings.extend(others::warnings(host_before, host_after, own_s));
    if killed > 0 {
        record.warnings.push(format!("{killed} processes did not end by themselves and were killed"));
    }
    if let SubjectLayout::IpcStar(layout) = &scene.layout.subject {
        (record.wakes, record.missed_wakes) = star::wakes(&scene, layout);
    }
    Ok(record)
}

fn slots(board: &Board, range: std::ops::Range<usize>, slot: Slot) -> bool {
    range.into_iter().all(|process| board.slot(process, slot) != 0)
}

fn is_all_answered(scene: &Scene, board: &Board) -> bool {
    let read: u64 = (0..scene.roles.len()).map(|process| board.slot(process, Slot::Answers)).sum();
    board.count(Count::Published) == scene.load.ticks && read >= scene.load.ticks
}

fn wait_for(
    crew: &mut Crew,
    stop: &AtomicBool,
    patience: Duration,
    what: &str,
    is_so: impl Fn() -> bool,
) -> anyhow::Result<()> {
    let start = Instant::now();
    while !is_so() {
        if stop.load(Ordering::Relaxed) {
            bail!("interrupted");
        }
        crew.check()?;
        if start.elapsed() > patience {
            bail!(
                "not all processes were {what} within {patience:?}: the machine is too busy, or has too little memory"
            );
        }
        thread::sleep(LOOK);
    }
    Ok(())
}
