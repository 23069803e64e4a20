//! `lowlat journal record` beside a pipeline that runs.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::{
    fs,
    path::Path,
    process::{Child, Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// A guard against hanging for ever, no measure of anything.
const PATIENCE: Duration = Duration::from_secs(120);

/// A lowlat whose runs are in a folder of this test.
fn lowlat(runs: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lowlat"));
    command.args(arguments).env("XDG_RUNTIME_DIR", runs).env("NO_COLOR", "1").env("COLUMNS", "80");
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A pipeline that runs; one that is left when a test fails is ended.
struct Pipeline(Option<Child>);

impl Pipeline {
    fn start(runs: &Path, duration: &str) -> Self {
        let words = ["--strategies", "3", "--rate", "300", "--duration", duration, "--force", "--json"];
        let arguments = [&["pipeline", "run"][..], &words].concat();
        let running = Self(Some(lowlat(runs, &arguments).spawn().unwrap()));
        let begun = Instant::now();
        loop {
            let mut folders = fs::read_dir(runs.join("lowlat")).into_iter().flatten();
            if folders.any(|folder| folder.unwrap().path().join("master.sock").exists()) {
                return running;
            }
            assert!(begun.elapsed() < PATIENCE, "no master");
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// What it printed at its end.
    fn ended(mut self) -> Output {
        self.0.take().unwrap().wait_with_output().unwrap()
    }
}

impl Drop for Pipeline {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            // It ends its processes.
            kill_process(Pid::from_child(&child), Signal::TERM).ok();
            child.wait().ok();
        }
    }
}

fn json(output: &Output) -> Value {
    let talk = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}: {talk}"))
}

/// Records of each stream of a recording that `verify` finds without a fault.
fn verified(runs: &Path, out: &str) -> Vec<(String, u64)> {
    let output = lowlat(runs, &["journal", "verify", out, "--no-gaps", "--json"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let known = json(&output);
    let stream =
        |stream: &Value| (stream["name"].as_str().unwrap().to_owned(), stream["records"].as_u64().unwrap());
    known["streams"].as_array().unwrap().iter().map(stream).collect()
}

#[test]
fn a_whole_run_is_recorded_and_the_recorder_ends_with_it() {
    let (runs, folder) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let out = folder.path().join("monday");
    let out = out.to_str().unwrap();
    let running = Pipeline::start(runs.path(), "2s");
    let recorded = lowlat(runs.path(), &["journal", "record", "--out", out, "--json"]).output().unwrap();
    let ran = running.ended();
    let (recorded, code, ran) = (json(&recorded), recorded.status.code(), json(&ran));
    assert_eq!(
        (code, &recorded["lost"], &recorded["streams"]),
        (Some(0), &0.into(), &5.into()),
        "{recorded}"
    );
    assert_eq!(recorded["ended"], "the pipeline ended");
    let streams = verified(runs.path(), out);
    let of = |names: &str| -> u64 {
        streams.iter().filter(|(name, _)| name.starts_with(names)).map(|(_, records)| records).sum()
    };
    assert_eq!(Some(of("md")), ran["ticks_published"].as_u64(), "{streams:?}");
    assert_eq!(Some(of("orders.")), ran["orders"].as_u64(), "{streams:?}");
    assert_eq!(Some(of("")), recorded["records"].as_u64(), "{streams:?}");
}

#[test]
fn a_recorder_ends_when_it_is_asked_to_and_another_one_goes_on() {
    let (runs, folder) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let out = folder.path().join("monday");
    let out = out.to_str().unwrap();
    let running = Pipeline::start(runs.path(), "60s");
    let record = [
        "journal",
        "record",
        "--out",
        out,
        "--streams",
        "md",
        "--sync",
        "each",
        "--writes",
        "cached",
        "--json",
    ];
    let first = lowlat(runs.path(), &record).spawn().unwrap();
    let file = folder.path().join("monday/00000001.journal");
    let begun = Instant::now();
    let has_records = || {
        lowlat(runs.path(), &["journal", "tail", out, "-n", "1"])
            .output()
            .is_ok_and(|tail| !tail.stdout.is_empty())
    };
    while !file.exists() || !has_records() {
        assert!(begun.elapsed() < PATIENCE, "nothing is recorded");
        thread::sleep(Duration::from_millis(50));
    }
    // While it lives nobody else records there.
    let busy = lowlat(runs.path(), &record).output().unwrap();
    assert_eq!(busy.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&busy.stderr).contains("another process records there"), "{busy:?}");
    kill_process(Pid::from_child(&first), Signal::TERM).unwrap();
    let first = first.wait_with_output().unwrap();
    let (code, first) = (first.status.code(), json(&first));
    assert_eq!(
        (code, &first["ended"], &first["streams"]),
        (Some(0), &"it was asked to".into(), &1.into()),
        "{first}"
    );
    let second = lowlat(runs.path(), &[&record[..], &["--duration", "1s"]].concat()).output().unwrap();
    let (code, second) = (second.status.code(), json(&second));
    assert_eq!(
        (code, &second["ended"], &second["lost"]),
        (Some(0), &"the time was over".into(), &0.into()),
        "{second}"
    );
    // It takes what came meanwhile as well: the ring still has it.
    let both = first["records"].as_u64().unwrap() + second["records"].as_u64().unwrap();
    assert_eq!(verified(runs.path(), out), [("md".to_owned(), both)]);
    drop(running);
}

#[test]
fn without_a_run_it_says_where_it_looked() {
    let (runs, folder) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let out = folder.path().join("monday");
    let out = out.to_str().unwrap();
    for more in [&[][..], &["--run", "nosuch"], &["--run", "/no/such/socket"]] {
        let output =
            lowlat(runs.path(), &[&["journal", "record", "--out", out][..], more].concat()).output().unwrap();
        let talk = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{talk}");
        assert!(talk.contains("start one"), "{talk}");
    }
    assert!(!Path::new(out).exists(), "nothing is begun for nothing");
}
