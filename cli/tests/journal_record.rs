//! `lowlat journal record` beside a running pipeline.

use crate::common::running::Running;
use crate::master_thread::{self, MasterThread};
use lowlat_ipc::stream::Stamp;
use lowlat_node::{Event, Node, Writes, clock::now_ns};
use lowlat_trade::master::{Happened, Program};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::{
    env, fs,
    path::Path,
    process::{Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// Guards against a hang; not an expected duration.
const PATIENCE: Duration = Duration::from_secs(120);

/// The socket of the master, for the publishing process.
const PUBLISHER: &str = "LOWLAT_TEST_PUBLISHER";

/// A lowlat command whose run folders are in a directory of this test.
fn lowlat(runs: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(crate::common::binary());
    command.args(arguments).env("XDG_RUNTIME_DIR", runs).env("NO_COLOR", "1").env("COLUMNS", "80");
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

impl Running {
    /// A running pipeline that others can join.
    fn pipeline(runs: &Path, duration: &str) -> Self {
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

    /// Its output, after its end.
    fn ended(mut self) -> Output {
        self.0.take().unwrap().wait_with_output().unwrap()
    }
}

fn json(output: &Output) -> Value {
    let talk = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}: {talk}"))
}

/// Records per stream of a recording in which `verify` finds no fault.
fn verified(runs: &Path, out: &str) -> Vec<(String, u64)> {
    let output = lowlat(runs, &["journal", "verify", out, "--no-gaps", "--json"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let known = json(&output);
    let stream =
        |stream: &Value| (stream["name"].as_str().unwrap().to_owned(), stream["records"].as_u64().unwrap());
    known["streams"].as_array().unwrap().iter().map(stream).collect()
}

#[test]
fn a_recording_is_compressed_afterwards_and_reads_the_same() {
    let (runs, folder) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let out = folder.path().join("monday");
    let shown = out.to_str().unwrap();
    let words = ["pipeline", "run", "--strategies", "1", "--rate", "200", "--duration", "1s", "--force"];
    lowlat(runs.path(), &[&words[..], &["--record", shown]].concat()).output().unwrap();
    let (before, tail) = (verified(runs.path(), shown), ["journal", "tail", shown, "-n", "50", "--json"]);
    let last = lowlat(runs.path(), &tail).output().unwrap().stdout;
    let packed = || -> Vec<_> {
        let paths = fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().path());
        paths.filter(|path| path.extension().is_some_and(|of| of == "zst")).collect()
    };
    assert!(packed().is_empty());
    // A second time there is nothing to do.
    for _ in 0..2 {
        let compressed = lowlat(runs.path(), &["journal", "compress", shown]).output().unwrap();
        assert_eq!((compressed.status.code(), packed().len()), (Some(0), 1), "{compressed:?}");
    }
    assert_eq!(verified(runs.path(), shown), before);
    assert!(!last.is_empty() && lowlat(runs.path(), &tail).output().unwrap().stdout == last);
    let path = &packed()[0];
    fs::write(path, &fs::read(path).unwrap()[..100]).unwrap();
    let refused = lowlat(runs.path(), &["journal", "compress", shown]).output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(refused.status.code() == Some(2) && said.contains("hint: lowlat journal verify"), "{said}");
}

#[test]
fn a_run_is_recorded_from_its_start_until_its_end() {
    let (runs, folder) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let out = folder.path().join("monday");
    let out = out.to_str().unwrap();
    let running = Running::pipeline(runs.path(), "2s");
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
fn an_interrupted_recording_is_resumed_by_another_recorder() {
    let (runs, folder) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let out = folder.path().join("monday");
    let out = out.to_str().unwrap();
    let running = Running::pipeline(runs.path(), "60s");
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
        "--file-mib",
        "1",
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
    // While the recorder runs, no other recorder may write there.
    let busy = lowlat(runs.path(), &record).output().unwrap();
    assert_eq!(busy.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&busy.stderr).contains("another process is recording there"), "{busy:?}");
    kill_process(Pid::from_child(&first), Signal::TERM).unwrap();
    let first = first.wait_with_output().unwrap();
    let (code, first) = (first.status.code(), json(&first));
    assert_eq!(
        (code, &first["ended"], &first["streams"]),
        (Some(0), &"it was interrupted".into(), &1.into()),
        "{first}"
    );
    let second = lowlat(runs.path(), &[&record[..], &["--duration", "1s"]].concat()).output().unwrap();
    let (code, second) = (second.status.code(), json(&second));
    assert_eq!(
        (code, &second["ended"], &second["lost"]),
        (Some(0), &"--duration elapsed".into(), &0.into()),
        "{second}"
    );
    // It also records what was published in between: the ring still holds it.
    let both = first["records"].as_u64().unwrap() + second["records"].as_u64().unwrap();
    assert_eq!(verified(runs.path(), out), [("md".to_owned(), both)]);
    drop(running);
}

/// Does nothing as a test. The master of the test below starts it as a process that publishes until it is
/// stopped or killed.
#[test]
fn publisher() {
    let Ok(socket) = env::var(PUBLISHER) else { return };
    // Room for half a minute of records, so that a recorder keeps up on a slow host.
    let writes = Writes::new("count", 1 << 22, 4);
    let writes = Some(writes);
    let mut node = Node::join(Path::new(&socket), &master_thread::join("writer", writes, vec![])).unwrap();
    let (mut has_begun, mut is_over) = (false, false);
    while !is_over {
        node.poll(&mut |_, event| match event {
            Event::Begin => has_begun = true,
            Event::Stop => is_over = true,
            _ => {}
        });
        if has_begun && !is_over {
            let sequence = node.publisher().next_sequence().unwrap();
            let stamp = Stamp { kind: 1, source: std::process::id(), ..Stamp::default() };
            node.publisher().publish(&stamp, &sequence.to_le_bytes()).unwrap();
        }
        node.wait(Some(now_ns() + 1_000_000));
    }
}

#[test]
fn a_publisher_that_dies_and_restarts_is_recorded_without_a_gap() {
    const KILLS: u64 = 3;
    let (runs, folder) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let out = folder.path().join("monday");
    let out = out.to_str().unwrap();
    let master = MasterThread::start(|_| ());
    let socket = master.socket().display().to_string();
    let writer = Program {
        name: "writer".to_owned(),
        role: "writer".to_owned(),
        program: env::current_exe().unwrap(),
        arguments: ["journal_record::publisher", "--exact", "--nocapture"].map(str::to_owned).to_vec(),
        environment: vec![(PUBLISHER.to_owned(), socket.clone())],
        restarts_max: 1000,
        backs_off: false,
        ..Program::default()
    };
    let record = ["journal", "record", "--run", &socket, "--out", out, "--json"];
    // Each block is written at once, so that the test can wait for it, into small files, which are quick to
    // scan.
    let record = [&record[..], &["--sync", "each", "--writes", "cached", "--file-mib", "1"]].concat();
    let running = Running(Some(lowlat(runs.path(), &record).spawn().unwrap()));
    master
        .expect("the recorder joins", |it| matches!(it, Happened::Joined { name, .. } if name == "recorder"));
    master.with(|master, _| {
        master.start(writer).unwrap();
        master.begin();
    });
    for epoch in 1..=KILLS + 1 {
        let tail = ["journal", "tail", out, "-n", "1", "--json"];
        master_thread::until("records of this segment are recorded", || {
            let tail = lowlat(runs.path(), &tail).output().unwrap();
            let line = serde_json::from_slice::<Value>(&tail.stdout).unwrap_or_default();
            line["epoch"].as_u64().is_some_and(|found| found == epoch)
        });
        if epoch <= KILLS {
            let processes = master.with(|master, _| master.processes());
            let pid = processes.iter().find(|(name, ..)| name == "writer").unwrap().2;
            kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), Signal::KILL).unwrap();
        }
    }
    let stopped = master.with(|master, _| master.stop_programs(PATIENCE).unwrap());
    assert_eq!((stopped.terminated, stopped.killed), (0, 0));
    kill_process(Pid::from_child(running.0.as_ref().unwrap()), Signal::TERM).unwrap();
    let recorded = running.ended();
    let (code, recorded) = (recorded.status.code(), json(&recorded));
    let fields = ["streams", "lost", "gaps"].map(|name| recorded[name].as_u64());
    assert_eq!((code, fields), (Some(0), [Some(1), Some(0), Some(0)]), "{recorded}");
    let checked = ["journal", "verify", out, "--no-gaps", "--json"];
    let checked = lowlat(runs.path(), &checked).output().unwrap();
    assert_eq!(checked.status.code(), Some(0), "{checked:?}");
    let stream = &json(&checked)["streams"][0];
    let [first, last, records, epochs] =
        ["first_sequence", "last_sequence", "records", "epochs"].map(|name| stream[name].as_u64().unwrap());
    // From sequence 1, including numbered records that the killed processes left unfinished.
    assert_eq!((stream["name"].as_str(), first, epochs), (Some("count"), 1, KILLS + 1), "{stream}");
    assert_eq!(Some(last + 1 - first), recorded["records"].as_u64(), "{stream}");
    assert_eq!(records, last + 1 - first, "{stream}");
}

#[test]
fn without_a_run_the_error_names_the_directory_searched() {
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
    assert!(!Path::new(out).exists(), "no recording is created");
}
