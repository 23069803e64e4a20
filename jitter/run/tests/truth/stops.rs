//! Stops the whole process, samplers and collector alike.

use crate::truth::{
    check::{lost_ns, recall},
    child::{self, ChildRun},
    host::{ground, is_traced, sampler_of},
    spin::Spin,
};
use lowlat_jitter::{Cause, CauseKind, CausePart};
use lowlat_jitter_run::clock::{ArchCounter, MonotonicCounter};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus, kill_process, waitid};
use std::{thread, time::Duration};

const STOP: Duration = Duration::from_millis(60);
const BETWEEN: Duration = Duration::from_millis(170);

#[test]
fn stops_of_the_process_are_found_with_their_cause() {
    let Some(ground) = ground() else { return };
    let run = ChildRun::start(child::PLAIN, ground.cpu);
    let child = Pid::from_raw(i32::try_from(run.id()).unwrap()).unwrap();
    let mut stops = Vec::new();
    while state(child, WaitIdOptions::EXITED | WaitIdOptions::NOHANG).is_none() {
        if sampler_of(run.id(), ground.cpu).is_some() {
            stops.extend(stop(child));
        }
        thread::sleep(BETWEEN);
    }
    let record = run.into_record();
    let found = recall(&record, &stops);
    assert!(found.len() >= 2, "{} of {} stops lay in the run", found.len(), stops.len());
    if !is_traced(&record) {
        return;
    }
    let causes = &record.causes.as_ref().unwrap().cpus[0];
    for one in &found {
        let explained = &causes.first[one.place];
        // Whatever ran meanwhile took nothing from it, and everything the kernel did meanwhile has a name.
        let is_named =
            |part: &&CausePart| part.cause.kind.is_kernel() && part.cause.kind != CauseKind::EntryExit;
        let named_ns: u64 = explained.parts.iter().filter(is_named).map(|part| part.ns).sum();
        assert!(named_ns + lost_ns(explained) >= one.to_ns - one.from_ns, "{explained:#?}");
        if lost_ns(explained) == 0 {
            let Cause { kind, name, .. } = &explained.parts[0].cause;
            assert_eq!((*kind, name.as_str()), (CauseKind::Held, "stopped (SIGSTOP)"), "{explained:#?}");
        }
    }
    eprintln!("found all {} stops", found.len());
}

/// State of the child; it is not reaped, so its number stays its own.
fn state(child: Pid, options: WaitIdOptions) -> Option<WaitIdStatus> {
    waitid(WaitId::Pid(child), options | WaitIdOptions::NOWAIT).unwrap()
}

/// Stops the child for a while. Returns the time in which it was certainly stopped; `None` if it has ended.
fn stop(child: Pid) -> Option<Spin> {
    kill_process(child, Signal::STOP).unwrap();
    // Reported once all its threads have stopped.
    let state = state(child, WaitIdOptions::EXITED | WaitIdOptions::STOPPED);
    let from = ArchCounter.now();
    if !state.is_some_and(|state| state.stopped()) {
        return None;
    }
    thread::sleep(STOP);
    let to = ArchCounter.now();
    kill_process(child, Signal::CONT).unwrap();
    Some(Spin { from, to, own: 0 })
}
