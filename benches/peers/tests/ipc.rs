//! Runs are whole, say what they are, and leave nothing behind.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::{
    fs,
    path::Path,
    process::{Child, Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

fn command(temporary: &Path, words: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lowlat-peers"));
    command.arg("ipc").args(words.split_whitespace()).env("TMPDIR", temporary).stdin(Stdio::null());
    command
}

fn run(words: &str) -> Output {
    let temporary = tempfile::tempdir().unwrap();
    let output = command(temporary.path(), words).output().unwrap();
    let left: Vec<_> = fs::read_dir(temporary.path()).unwrap().collect();
    assert!(left.is_empty(), "{words}: {left:?} is left");
    output
}

fn document(words: &str) -> Value {
    let output = run(words);
    assert!(output.status.success(), "{words}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The model's library, which a machine need not have.
fn is_without_nanomsg(output: &Output) -> bool {
    let errors = String::from_utf8_lossy(&output.stderr);
    let is_missing = errors.contains("libnanomsg is not here");
    if is_missing {
        eprintln!("skipped: {}", errors.trim());
    }
    is_missing
}

/// Every quote became an order, and every order a sample in each stage.
fn assert_whole(document: &Value) {
    assert_eq!(document["ticks_published"], document["ticks_scheduled"], "{document}");
    assert_eq!(document["orders"], document["ticks_scheduled"], "{document}");
    for stage in ["md", "order", "t2o", "t2o_scheduled"] {
        assert_eq!(document["stages"][stage]["count"], document["orders"], "{stage}");
    }
    let of = |stage: &str| document["stages"][stage]["max_ns"].as_u64().unwrap();
    assert!(of("t2o_scheduled") >= of("t2o") && of("t2o") >= of("md").max(of("order")));
    let uses = document["uses"].as_array().unwrap();
    assert!(uses.iter().all(|row| row["cpu_s"].as_f64().unwrap() > 0.0), "{uses:?}");
}

#[test]
fn the_star_answers_every_quote_in_every_way_to_wait() {
    for words in ["--mode parked", "--mode platform-fast", "--host-cpu 0"] {
        let document = document(&format!("ipc-star --strategies 3 --rate 100 --seconds 0.3 {words}"));
        assert_whole(&document);
        assert_eq!((&document["subject"], &document["is_model"]), (&"ipc-star".into(), &false.into()));
        assert_eq!(document["missed_wakes"], 0, "{words}");
    }
}

#[test]
fn the_model_answers_every_quote_and_says_that_it_is_a_model() {
    let output = run("kungfu-model --strategies 3 --rate 100 --seconds 0.3");
    if is_without_nanomsg(&output) {
        return;
    }
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_whole(&document);
    assert_eq!((&document["subject"], &document["is_model"]), (&"kungfu-model".into(), &true.into()));
    let roles: Vec<_> = document["uses"].as_array().unwrap().iter().map(|row| row["role"].clone()).collect();
    assert_eq!(roles, ["master", "cached", "md", "td", "strategies"]);
}

#[test]
fn nobody_tells_the_models_strategies_of_a_fast_platform() {
    let output = run("kungfu-model --strategies 2 --rate 50 --seconds 0.6 --mode platform-fast");
    if is_without_nanomsg(&output) {
        return;
    }
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_whole(&document);
    // They look every 100 ms, so that half of the quotes wait for tens of milliseconds; a notice takes far less.
    let p50_ns = document["stages"]["md"]["p50_ns"].as_u64().unwrap();
    assert!(p50_ns > 10_000_000, "{p50_ns}");
}

#[test]
fn the_matrix_leaves_out_what_is_not_there() {
    let document = document(
        "matrix --strategies 2 --rates 100 --waiting parked,fast --pinned false --rounds 1 --seconds 0.3 --json",
    );
    assert!(document["left_out"]["lowlat"].as_str().unwrap().contains("--lowlat"));
    let cells = document["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 2);
    assert_eq!(cells[0]["rounds"][0]["ipc-star"]["orders"], 30);
    let refused = run("matrix --strategies 2 --rates 0 --pinned false --waiting parked --rounds 1");
    let text = String::from_utf8_lossy(&refused.stdout).into_owned();
    assert!(text.contains("left out: 0 quotes per second"), "{text}");
}

#[test]
fn a_message_goes_both_ways_over_every_transport() {
    let cpus = thread::available_parallelism().unwrap().get();
    if cpus < 2 {
        eprintln!("skipped: one CPU");
        return;
    }
    let document =
        document("one-way --rounds 1 --trips 40 --parked-trips 40 --batch 2 --json --patience 120");
    let round = document["rounds"][0].as_object().unwrap();
    let left_out = document["left_out"].as_object().unwrap();
    assert_eq!(round.len() + left_out.len(), 16, "{left_out:?}");
    for (transport, figures) in round {
        let count = figures["count"].as_u64().unwrap();
        assert!(count == 20 || count == 40, "{transport}: {count}");
        assert!(figures["p50_ns"].as_u64().unwrap() > 0, "{transport}");
    }
}

#[test]
fn what_cannot_be_run_is_said() {
    for (words, said) in [
        ("ipc-star --strategies 0", "expected 1 to"),
        ("kungfu-model --host-cpu 0", "a process for each strategy"),
        ("one-way --cpus 0,0", "two different ones"),
        ("ipc-star --pin md=x", "expected numbers"),
    ] {
        let output = run(words);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        let is_said = errors.contains(said) || is_without_nanomsg(&output);
        assert!(!output.status.success() && is_said, "{words}: {errors}");
    }
}

/// Children of a process, by /proc/PID/stat.
fn children(parent: u32) -> Vec<u32> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    numbers
        .filter(|pid| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            let after_name = stat.rsplit_once(')').map(|(_, rest)| rest).unwrap_or_default();
            after_name.split_ascii_whitespace().nth(1) == Some(&parent.to_string())
        })
        .collect()
}

fn wait_for(what: &str, is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(60), "{what}");
        thread::sleep(Duration::from_millis(10));
    }
}

fn is_running(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.contains(") ") && !stat.contains(") Z")
}

fn started(temporary: &Path) -> (Child, Vec<u32>) {
    let child = command(temporary, "ipc-star --strategies 4 --rate 10 --seconds 60").spawn().unwrap();
    wait_for("md, td and four strategies start", || children(child.id()).len() == 6);
    let pids = children(child.id());
    (child, pids)
}

#[test]
fn no_process_outlives_the_program() {
    for signal in [Signal::INT, Signal::TERM, Signal::KILL] {
        let temporary = tempfile::tempdir().unwrap();
        let (mut child, pids) = started(temporary.path());
        kill_process(Pid::from_child(&child), signal).unwrap();
        assert!(!child.wait().unwrap().success());
        wait_for("all have ended", || pids.iter().all(|pid| !is_running(*pid)));
        let left = fs::read_dir(temporary.path()).unwrap().count();
        assert!(left == 0 || signal == Signal::KILL, "{signal:?} leaves {left}");
    }
}

#[test]
fn a_run_without_one_of_its_processes_ends() {
    let temporary = tempfile::tempdir().unwrap();
    let (mut child, pids) = started(temporary.path());
    let one = Pid::from_raw(i32::try_from(pids[2]).unwrap()).unwrap();
    kill_process(one, Signal::KILL).unwrap();
    assert!(!child.wait().unwrap().success());
    wait_for("all have ended", || pids.iter().all(|pid| !is_running(*pid)));
}
