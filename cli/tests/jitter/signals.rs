//! Runs that are told to stop, and runs that are killed.

use crate::{
    common::text,
    jitter::runs::{self, UnderWay},
};
use lowlat_jitter::sysjitter::{raw_file_name, testing::parse_raw};
use rustix::process::Signal;
use std::{fs, path::Path, process::Output};

const LONG: [&str; 7] = ["--duration", "10m", "--force", "--result", "result.json", "--raw", "raw"];

/// Checks that an interrupted run left its document and finished raw files.
fn is_kept(directory: &Path, output: &Output) {
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    let document = runs::document(&directory.join("result.json"));
    let record = &document.jitter().expect("what was measured until then").record;
    assert!(document.is_interrupted && record.duration_ns == 600_000_000_000);
    let highest = record.cpus.iter().map(|cpu| cpu.cpu).max().expect("a CPU");
    for cpu in &record.cpus {
        assert!(cpu.loop_count > 0 && cpu.runtime_ns < 600_000_000_000, "{cpu:?}");
        let path = directory.join(raw_file_name("raw", cpu.cpu, highest));
        let raw = parse_raw(&fs::read_to_string(&path).unwrap()).unwrap();
        assert_eq!(raw.rows.len() as u64, raw.head.interruption_count);
    }
    let names = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name());
    let left: Vec<_> = names.filter(|name| !is_wanted(&name.to_string_lossy())).collect();
    assert!(left.is_empty(), "{left:?}");
}

fn is_wanted(name: &str) -> bool {
    name == "result.json"
        || name.strip_prefix("raw.").is_some_and(|cpu| cpu.bytes().all(|byte| byte.is_ascii_digit()))
}

fn told_to_stop(signal: Signal) {
    let directory = tempfile::tempdir().unwrap();
    let run = UnderWay::start(&mut runs::jitter(directory.path(), &LONG));
    let pid = run.child.id();
    if runs::may_trace("the instance of a run under way") {
        // One of the measured CPUs, and one of what all send to them if the kernel traces that.
        assert!(matches!(run.instances().len(), 1 | 2), "it traces: {:?}", run.instances());
    }
    run.signal(signal);
    let output = run.wait();
    is_kept(directory.path(), &output);
    assert_eq!(runs::instances_of(pid), [""; 0]);
    let said = text(&output.stdout);
    assert!(
        said.contains("was interrupted") && said.contains("Per CPU"),
        "what was measured is shown: {said}"
    );
}

#[test]
fn ctrl_c_keeps_what_was_measured() {
    told_to_stop(Signal::INT);
}

#[test]
fn so_does_the_service_manager_s_signal() {
    told_to_stop(Signal::TERM);
}

#[test]
fn a_second_ctrl_c_ends_at_once_and_leaves_no_trace() {
    let directory = tempfile::tempdir().unwrap();
    let run = UnderWay::start(&mut runs::jitter(directory.path(), &LONG));
    let pid = run.child.id();
    run.signal(Signal::INT);
    run.signal(Signal::TERM);
    run.signal(Signal::INT);
    let output = run.wait();
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    assert_eq!(runs::instances_of(pid), [""; 0]);
}

#[test]
fn ctrl_c_while_waiting_for_quiet_is_an_interruption_too() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = runs::jitter(directory.path(), &["--when-quiet", "--duration", "10m", "--no-causes"]);
    // On a quiet host the run begins, and ends in the same way.
    let child =
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_secs(3));
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
}

#[test]
fn what_a_killed_run_left_is_removed_at_the_next_start() {
    if !runs::may_trace("leftovers of a killed run") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let run = UnderWay::start(&mut runs::jitter(directory.path(), &LONG));
    let pid = run.child.id();
    let left = run.instances();
    assert!(matches!(left.len(), 1 | 2), "{left:?}");
    run.signal(Signal::KILL);
    let (output, alone) = run.wait_and_stay_alone();
    assert_eq!(output.status.code(), None, "it was killed");
    assert_eq!(runs::instances_of(pid), left, "nobody could remove it");
    let document = runs::measure_alone(&alone, directory.path(), &["--duration", "500ms"]);
    assert_eq!(runs::instances_of(pid), [""; 0]);
    assert!(
        left.iter().all(|name| runs::warns(
            &document,
            &format!("Removed the trace {name} of a lowlat process that was killed")
        )),
        "{}",
        runs::warnings(&document)
    );
}
