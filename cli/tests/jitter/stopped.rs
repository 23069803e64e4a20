//! A run that an interruption ends.

use crate::{common::text, jitter::runs};
use lowlat_jitter_run::tracefs::Tracefs;

#[test]
fn a_long_interruption_ends_the_run_and_is_a_finding() {
    let alone = runs::alone();
    let directory = tempfile::tempdir().unwrap();
    // Every CPU has one of two microseconds within ten minutes.
    let stop = ["--stop-on", "2us", "--duration", "10m", "--force", "--result", "result.json"];
    let is_traced = Tracefs::find().is_ok();
    let save: &[&str] = if is_traced { &["--save-trace", "trace.dat"] } else { &[] };
    let output = runs::run(directory.path(), &[&stop[..], save].concat(), 1);
    drop(alone);
    let document = runs::document(&directory.path().join("result.json"));
    assert!(!document.is_interrupted, "nobody interrupted it");
    let record = &document.jitter().unwrap().record;
    let hit = record.stop.as_ref().and_then(|stop| stop.hit.as_ref()).unwrap();
    assert!(hit.interruption.length_ns >= 2_000 && record.ran_ns() < record.duration_ns, "{hit:?}");
    let (printed, said) = (text(&output.stdout), text(&output.stderr));
    assert!(
        printed.contains("\nStop\n  The first interruption of 2.00 us or longer ended the run: "),
        "{printed}"
    );
    let trace = directory.path().join("trace.dat");
    if is_traced {
        assert!(said.contains("wrote trace.dat"), "{said}");
        assert!(std::fs::read(&trace).unwrap().starts_with(b"\x17\x08\x44tracing6\0"));
    } else {
        eprintln!("skipped: nothing can be traced here");
    }
    // Shown again, it is no finding of this run.
    let again = runs::shown(directory.path(), &["result.json"], 0);
    assert!(text(&again.stdout).contains("ended the run"));
    let again = runs::shown(directory.path(), &["result.json", "--format", "sysjitter"], 0);
    assert!(text(&again.stderr).contains("ended the run"));
}

#[test]
fn a_run_until_its_end_is_clean() {
    let _alone = runs::alone();
    let directory = tempfile::tempdir().unwrap();
    let output = runs::run(directory.path(), &["--stop-on", "1h", "--duration", "300ms", "--force"], 0);
    let printed = text(&output.stdout);
    assert!(printed.contains("No interruption of 3600 s or longer ended the run."), "{printed}");
}
