//! `lowlat pipeline run` from its users' view: next to another run, with a recorder, interrupted, into a closed
//! pipe.

use crate::common::running::Running;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::{
    fs, iter,
    path::Path,
    process::{Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// Guards against a hang; not an expected duration.
const PATIENCE: Duration = Duration::from_secs(120);

/// A run of two strategies whose run folder is in a directory of this test.
fn run(runs: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(crate::common::binary());
    command.args(["pipeline", "run", "--strategies", "2", "--rate", "100", "--json"]).args(arguments);
    command.env("XDG_RUNTIME_DIR", runs).env("NO_COLOR", "1").env("COLUMNS", "80");
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

impl Running {
    /// Starts a long run, and waits for its processes.
    fn start(runs: &Path) -> Self {
        Self::start_with(runs, &["--duration", "100s"])
    }

    fn start_with(runs: &Path, arguments: &[&str]) -> Self {
        let running = Self(Some(run(runs, arguments).spawn().unwrap()));
        let begun = Instant::now();
        while processes_of(runs) < 4 {
            assert!(begun.elapsed() < PATIENCE, "its processes did not start");
            thread::sleep(Duration::from_millis(20));
        }
        running
    }

    fn pid(&self) -> u32 {
        self.0.as_ref().unwrap().id()
    }

    /// Its output after an interrupt.
    fn interrupted(mut self) -> Output {
        let child = self.0.take().unwrap();
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        child.wait_with_output().unwrap()
    }
}

/// Processes of the master with that run folder.
fn processes_of(runs: &Path) -> usize {
    let folder = runs.as_os_str().as_encoded_bytes();
    let of_run = |entry: fs::DirEntry| {
        let words = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        words.windows(folder.len()).any(|part| part == folder)
    };
    fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| of_run(entry).then_some(())).count()
}

/// Number of existing run folders.
fn folders(runs: &Path) -> usize {
    fs::read_dir(runs.join("lowlat")).map_or(0, Iterator::count)
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

fn talk(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The warning about other runs in a document.
fn beside(document: &Value) -> String {
    let warnings = document["warnings"].as_array().unwrap().iter().filter_map(Value::as_str);
    warnings.filter(|warning| warning.starts_with("other runs: ")).collect()
}

#[test]
fn two_concurrent_runs_both_warn() {
    let runs = TempDir::new().unwrap();
    let first = Running::start(runs.path());
    let second = run(runs.path(), &["--duration", "3s"]).spawn().unwrap();
    let (first_said, second_said) =
        (format!("process {} (run ", first.pid()), format!("process {} (run ", second.id()));
    let second = second.wait_with_output().unwrap();
    let said = talk(&second);
    assert!(said.contains("other runs: ") && said.contains(&first_said), "{said}");
    assert!(said.contains("figures of both are spoilt") && said.contains("kill -INT"), "{said}");
    assert!(beside(&json(&second)).contains(&first_said), "{second:?}");
    // The first run started alone, and reports the second one at its end.
    let first = first.interrupted();
    assert!(beside(&json(&first)).contains(&second_said), "{first:?}");
    let alone = run(runs.path(), &["--duration", "1s"]).output().unwrap();
    assert!(!talk(&alone).contains(&first_said), "a run that has ended affects nothing: {alone:?}");
}

/// Runs `lowlat pipeline` with these arguments beside the runs of a directory.
fn ask(runs: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(crate::common::binary());
    command.arg("pipeline").args(arguments).env("XDG_RUNTIME_DIR", runs).env("NO_COLOR", "1");
    command.output().unwrap()
}

/// Waits until a node in the list of a run meets the condition, and returns it.
pub fn node(runs: &Path, name: &str, is_wanted: fn(&Value) -> bool) -> Value {
    let begun = Instant::now();
    loop {
        let listed = json(&ask(runs, &["ps", "--json"]));
        assert_eq!(
            (&listed["document"], &listed["schema_version"]),
            (&"lowlat-pipeline-nodes".into(), &1.into())
        );
        let nodes = listed["nodes"].as_array().unwrap();
        if let Some(node) = nodes.iter().find(|node| node["name"] == name && is_wanted(node)) {
            return node.clone();
        }
        assert!(begun.elapsed() < PATIENCE, "{listed}");
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_run_is_listed_a_node_replaced_and_the_run_ended_from_outside() {
    let runs = TempDir::new().unwrap();
    let mut running = Running::start(runs.path());
    let pid = node(runs.path(), "s1", |node| node["read"].as_u64() > Some(10))["pid"].as_u64().unwrap();
    // The stopped strategy delays no other process, and td's successor joins.
    let stopped = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    kill_process(stopped, Signal::STOP).unwrap();
    let dropped = ask(runs.path(), &["drop", "td"]);
    assert!(dropped.status.success(), "{dropped:?}");
    node(runs.path(), "td", |node| node["epoch"] == 2 && node["read"].as_u64() > Some(100));
    assert!(ask(runs.path(), &["drop", "s1"]).status.success());
    let successor = node(runs.path(), "s1", |node| node["epoch"] == 2 && node["standing"] == "running");
    assert_ne!(successor["pid"], pid);
    let unknown = ask(runs.path(), &["drop", "s7"]);
    assert!(
        unknown.status.code() == Some(2) && talk(&unknown).contains("no node s7 has joined"),
        "{unknown:?}"
    );
    let text = ask(runs.path(), &["ps"]);
    assert!(String::from_utf8_lossy(&text.stdout).contains("4 nodes"), "{text:?}");
    assert!(ask(runs.path(), &["stop"]).status.success());
    let ended = running.0.take().unwrap().wait_with_output().unwrap();
    let document = json(&ended);
    assert_eq!((ended.status.code(), &document["is_cut_short"]), (Some(1), &true.into()), "{document}");
    assert_eq!(document["findings"], serde_json::json!(["2 restarts after the death of a process."]));
    assert_eq!(document["orders"], document["answers"], "{document}");
    assert_eq!(document["balance"]["quotes"]["published"], document["ticks_published"], "{document}");
}

/// Orders of a halted run are rejected, also by td's successor, until it may go on.
#[test]
fn a_halt_holds_until_it_is_lifted() {
    let runs = TempDir::new().unwrap();
    let mut running = Running::start(runs.path());
    let answers = |more: u64| {
        let count = |node: &Value| node["published"].as_u64().unwrap();
        let begun = Instant::now();
        let first = count(&node(runs.path(), "td", |node| node["standing"] == "running"));
        while count(&node(runs.path(), "td", |node| node["standing"] == "running")) < first + more {
            assert!(begun.elapsed() < PATIENCE, "td answers nothing");
        }
    };
    answers(10);
    for arguments in [&["halt"][..], &["drop", "td"]] {
        assert!(ask(runs.path(), arguments).status.success(), "{arguments:?}");
        node(runs.path(), "td", |node| node["standing"] == "running");
    }
    answers(40);
    assert!(ask(runs.path(), &["resume"]).status.success());
    assert!(ask(runs.path(), &["halt", "--strategy", "1"]).status.success());
    answers(40);
    assert!(ask(runs.path(), &["stop"]).status.success());
    let ended = running.0.take().unwrap().wait_with_output().unwrap();
    let document = json(&ended);
    let count = |place: &str| document.pointer(place).unwrap().as_u64().unwrap();
    assert_eq!((count("/orders"), count("/balance/answers/lost")), (count("/answers"), 0), "{document}");
    // What td published before the halt, after it, and of the other strategy's orders.
    assert!(count("/rejected") >= 45 && count("/answers") > count("/rejected") + 10, "{document}");
    for said in
        ["its user: halted all strategies", "its user: resumed all strategies", "its user: halted strategy 1"]
    {
        assert!(document["warnings"].to_string().contains(said), "{said}: {document}");
    }
}

/// With a latency, the market has moved when an order arrives: some are filled, others are not. What is recorded has
/// their kinds.
#[test]
fn orders_are_filled_against_the_quotes_of_the_run() {
    let runs = TempDir::new().unwrap();
    let recording = runs.path().join("monday").display().to_string();
    let output = |arguments: &[&str]| run(runs.path(), arguments).output().unwrap();
    let booked = output(&["--duration", "3s", "--book-latency", "30ms", "--record", &recording]);
    let document = json(&booked);
    let count = |document: &Value, place: &str| document.pointer(place).unwrap().as_u64().unwrap();
    assert!(booked.status.success(), "{booked:?}");
    let [orders, fills, cancelled] =
        ["/answers", "/balance/fills", "/balance/cancelled"].map(|place| count(&document, place));
    assert_eq!((orders, fills + cancelled), (300, 300), "{document}");
    assert!(fills > 0 && cancelled > 0, "{document}");
    let mut export = Command::new(crate::common::binary());
    let exported = export.args(["journal", "export", &recording]).output().unwrap();
    let table = String::from_utf8_lossy(&exported.stdout);
    assert!(table.contains(",new,ioc,") && table.contains(",cancelled,"), "{table}");
    let at_once = json(&output(&["--duration", "1s", "--fills", "at-once"]));
    assert_eq!(
        (count(&at_once, "/balance/fills"), count(&at_once, "/balance/cancelled")),
        (100, 0),
        "{at_once}"
    );
    let limited = json(&output(&["--duration", "3s", "--orders-per-second-max", "5"]));
    assert!(count(&limited, "/rejected") > 200, "{limited}");
}

#[test]
fn a_restarted_md_publishes_the_rest_of_its_quotes() {
    for threads in [&[][..], &["--md-threads"]] {
        let runs = TempDir::new().unwrap();
        let arguments = [&["--duration", "8s"], threads].concat();
        let mut running = Running::start_with(runs.path(), &arguments);
        node(runs.path(), "md", |node| node["published"].as_u64() > Some(50));
        let dropped = ask(runs.path(), &["drop", "md"]);
        assert!(dropped.status.success(), "{dropped:?}");
        let ended = running.0.take().unwrap().wait_with_output().unwrap();
        let document = json(&ended);
        assert_eq!(
            (&document["ticks_scheduled"], &document["restarts"]),
            (&800.into(), &1.into()),
            "{document}"
        );
        let count = |name: &str| document[name].as_u64().unwrap();
        let balance = &document["balance"]["quotes"];
        assert_eq!((count("ticks_published"), &balance["lost"]), (800, &0.into()), "{document}");
        assert_eq!((count("orders"), count("answers")), (800, 800), "{document}");
    }
}

/// A run's recording, and its export, are what another run publishes.
#[test]
fn a_recording_and_its_export_are_published_again() {
    let runs = TempDir::new().unwrap();
    let (recording, table) = (runs.path().join("monday"), runs.path().join("monday.csv"));
    let shown = [&recording, &table].map(|path| path.display().to_string());
    let first = json(&run(runs.path(), &["--duration", "1s", "--record", &shown[0]]).output().unwrap());
    let export = |more: &[&str]| {
        let mut command = Command::new(crate::common::binary());
        command.args(["journal", "export", &shown[0]]).args(more);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    export(&["--out", &shown[1]]);
    for source in &shown {
        let mut command = Command::new(crate::common::binary());
        command.args(["pipeline", "run", "--json", "--ticks", source]).env("XDG_RUNTIME_DIR", runs.path());
        let document = json(&command.output().unwrap());
        assert_eq!(document["ticks_published"], first["ticks_published"], "{source}");
        assert_eq!(
            (&document["orders"], &document["parameters"]["strategies"]),
            (&first["orders"], &2.into())
        );
    }
    // A selection: orders of one instrument, in the second half of the run.
    let rows = |more: &[&str]| -> Vec<String> { export(more).lines().map(str::to_owned).collect() };
    let all = rows(&["--symbols", "AAPL,MSFT"]);
    let at = |name: &str| all[0].split(',').position(|column| column == name).unwrap();
    let cell = |row: &str, name: &str| row.split(',').nth(at(name)).unwrap().to_owned();
    assert_eq!(cell(&all[1], "generated_at").len(), "2026-01-02T03:04:05.123456789Z".len(), "{}", all[1]);
    let names = |symbol: &str, number: &str| {
        all.iter()
            .skip(1)
            .filter(|row| cell(row, "record") != "answer")
            .all(|row| (cell(row, "symbol") == symbol) == (cell(row, "instrument") == number))
    };
    assert!(names("AAPL", "0") && names("MSFT", "1"));
    let middle = cell(&all[all.len() / 2], "generated_at");
    let later = rows(&["--kind", "order", "--instrument", "1", "--since", &middle]);
    let wanted = all.iter().skip(1).filter(|row| {
        (cell(row, "record"), cell(row, "instrument")) == ("order".to_owned(), "1".to_owned())
            && cell(row, "generated_at") >= middle
    });
    assert_eq!(later.len() - 1, wanted.count());
    assert!(later.len() > 5);
    assert_eq!(rows(&["--until", "1970-01-02T00:00:00Z"]).len(), 1, "the header alone");
}

#[test]
fn an_interrupted_run_leaves_nothing_behind() {
    let runs = TempDir::new().unwrap();
    let ended = Running::start(runs.path()).interrupted();
    assert_eq!(ended.status.code(), Some(130), "{ended:?}");
    let document = json(&ended);
    assert_eq!(document["is_interrupted"], true, "{ended:?}");
    let warnings = document["warnings"].to_string();
    assert!(warnings.contains("was stopped") && !warnings.contains("scheduled ticks"), "{warnings}");
    assert_eq!((processes_of(runs.path()), folders(runs.path())), (0, 0));
}

#[test]
fn a_second_interrupt_ends_the_run_at_once_and_leaves_nothing_behind() {
    let runs = TempDir::new().unwrap();
    let mut running = Running::start(runs.path());
    let mut child = running.0.take().unwrap();
    // The kernel may merge the two signals if the second arrives before the first is handled.
    while child.try_wait().unwrap().is_none() {
        kill_process(Pid::from_child(&child), Signal::INT).ok();
        thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let begun = Instant::now();
    while processes_of(runs.path()) > 0 {
        assert!(begun.elapsed() < PATIENCE, "its processes still run");
        thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(folders(runs.path()), 0);
}

/// As timeout(1) sends them: to the program, then to its group.
#[test]
fn two_signals_at_once_are_one_request() {
    let runs = TempDir::new().unwrap();
    let mut running = Running::start(runs.path());
    let child = running.0.take().unwrap();
    // Two kinds, which the kernel does not merge.
    for signal in [Signal::TERM, Signal::INT] {
        kill_process(Pid::from_child(&child), signal).unwrap();
    }
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(130), "{ended:?}");
    assert_eq!(json(&ended)["is_interrupted"], true, "{ended:?}");
}

#[test]
fn a_closed_pipe_is_no_error() {
    let runs = TempDir::new().unwrap();
    let mut child = run(runs.path(), &["--duration", "1s"]).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(!talk(&output).contains("panicked") && folders(runs.path()) == 0, "{output:?}");
}

#[test]
fn the_recorder_runs_on_its_pinned_cpu() {
    let (runs, folder) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let out = folder.path().join("monday");
    let out = out.to_str().unwrap();
    // A CPU that this process may use.
    let cpus = lowlat_host_run::affinity::current().unwrap();
    let pin = format!("recorder={}", cpus.lowest().unwrap());
    let arguments = ["--duration", "2s", "--record", out, "--pins", &pin, "--force"];
    let output = run(runs.path(), &arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(talk(&output).contains("recorded: "), "{output:?}");
    let document = json(&output);
    let used = document["uses"].as_array().unwrap().iter().find(|used| used["role"] == "recorder");
    assert_eq!(used.map(|used| &used["processes"]), Some(&1.into()), "{document}");
    let mut verify = Command::new(crate::common::binary());
    let known = verify.args(["journal", "verify", out, "--no-gaps", "--json"]).output().unwrap();
    assert_eq!(known.status.code(), Some(0), "{known:?}");
    let known = json(&known);
    let of = |name: &str| -> u64 {
        let streams = known["streams"].as_array().unwrap().iter();
        let named = streams.filter(|stream| stream["name"].as_str().unwrap().starts_with(name));
        named.map(|stream| stream["records"].as_u64().unwrap()).sum()
    };
    assert_eq!(Some(of("md")), document["ticks_published"].as_u64(), "{known}");
    assert_eq!(Some(of("orders.")), document["orders"].as_u64(), "{known}");
}

#[test]
fn an_impossible_recording_is_refused_before_the_start() {
    let (runs, folder) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    for place in ["/proc/monday", file.to_str().unwrap()] {
        let output = run(runs.path(), &["--duration", "1s", "--record", place]).output().unwrap();
        let said = talk(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(place) && !said.contains("process recorder ended"), "{said}");
        assert_eq!((processes_of(runs.path()), folders(runs.path())), (0, 0));
    }
}

#[test]
fn an_unusable_store_is_refused_before_the_start() {
    let runs = TempDir::new().unwrap();
    let output = run(runs.path(), &["--duration", "1s", "--cached", "/proc/state"]).output().unwrap();
    let said = talk(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("/proc/state") && !said.contains("process cached ended"), "{said}");
}

#[test]
fn recorded_ticks_are_published() {
    let runs = tempfile::tempdir().unwrap();
    let file = runs.path().join("ticks.csv");
    // Three instruments, a tick every 10 ms.
    let tick = |at: u32| format!("{},stock {},10.{at:02},10.{:02}\n", at * 10, at % 3, at + 1);
    let ticks =
        iter::once("time_ms,instrument,bid,ask\n".to_owned()).chain((0..60).map(tick)).collect::<String>();
    fs::write(&file, ticks).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_lowlat"));
    command.args(["pipeline", "run", "--json", "--speed", "x2", "--ticks"]).arg(&file);
    let output = command.env("XDG_RUNTIME_DIR", runs.path()).output().unwrap();
    let document = json(&output);
    assert_eq!((&document["ticks_scheduled"], &document["ticks_published"]), (&60.into(), &60.into()));
    assert_eq!((&document["orders"], &document["parameters"]["strategies"]), (&60.into(), &3.into()));
    assert_eq!(document["options"]["ticks"]["speed"], "x2");
    let measured_s = document["measured_s"].as_f64().unwrap();
    // From the first to the last, which are 0.295 s apart unless the first is late.
    assert!(measured_s > 0.1, "published at their times: {measured_s}");

    fs::write(&file, "time_ms,instrument,bid,ask\n1,a,1\n").unwrap();
    let refused = command.output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(said.contains("line 2: found 3 columns, expected 4") && said.contains("\nhint: "), "{said}");
}

/// The way in which the Kungfu report publishes and starts, for a run and for the matrix.
#[test]
fn a_scenario_is_published_by_threads_to_strategies_started_in_turn() {
    let runs = tempfile::tempdir().unwrap();
    let (file, out) = (runs.path().join("scenario.json"), runs.path().join("matrix.json"));
    let scenario = r#"{"instruments": 3, "records_per_instrument": 10, "interval_ns": 20000000, "start_delay_ns": 1000000}"#;
    fs::write(&file, scenario).unwrap();
    let lowlat = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lowlat"));
        command.arg("pipeline").args(words).arg("--scenario").arg(&file);
        command.env("XDG_RUNTIME_DIR", runs.path()).env("NO_COLOR", "1").env("COLUMNS", "80");
        command.output().unwrap()
    };
    let begun = Instant::now();
    let document = json(&lowlat(&["run", "--json", "--md-threads", "--start-interval", "200ms"]));
    assert!(begun.elapsed() > Duration::from_millis(600), "three strategies, one after the other");
    assert_eq!((&document["ticks_scheduled"], &document["ticks_published"]), (&30.into(), &30.into()));
    assert_eq!((&document["orders"], &document["parameters"]["strategies"]), (&30.into(), &3.into()));
    assert_eq!(document["parameters"]["has_md_threads"], true);
    assert_eq!(document["options"]["start_interval_ms"], 200);

    let output = lowlat(&["matrix", "--groups", "A,S", "--rounds", "1", "--result", out.to_str().unwrap()]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let document: Value = serde_json::from_slice(&fs::read(&out).unwrap()).unwrap();
    let run = &document["rows"][0]["runs"][0];
    let processes: u64 =
        run["uses"].as_array().unwrap().iter().filter_map(|of| of["processes"].as_u64()).sum();
    assert_eq!((&run["orders"], processes), (&30.into(), 3 + 6), "{said}");
    assert!(said.contains("6 processes beside the strategies") && said.contains("3 instruments"), "{said}");
    let written = talk(&output);
    assert!(
        written.contains("wrote ") && !written.contains("an earlier file"),
        "it was there in part: {written}"
    );
    let mut again = Command::new(env!("CARGO_BIN_EXE_lowlat"));
    again.args(["report", "render", "--json"]).arg(&out);
    assert_eq!(json(&again.output().unwrap())["rows"], document["rows"]);
    assert_eq!(folders(runs.path()), 0, "cached's state went with its run");

    for (words, said) in [
        (["run", "--md-threads", "--pins", "platform=0"], "--pins platform=CPU runs md and td in one loop"),
        (["run", "--json", "--rate", "5"], "cannot be used with"),
    ] {
        let refused = lowlat(&words);
        assert_eq!(refused.status.code(), Some(2), "{refused:?}");
        assert!(talk(&refused).contains(said), "{refused:?}");
    }
}

#[test]
fn a_run_states_the_memory_of_a_strategy_and_it_is_bounded() {
    let runs = TempDir::new().unwrap();
    let document = json(&run(runs.path(), &["--duration", "1s"]).output().unwrap());
    let uses = document["uses"].as_array().unwrap();
    let strategies = uses.iter().find(|used| used["role"] == "strategies").unwrap();
    let bytes = strategies["private_bytes_max"].as_u64().unwrap();
    // At most what the check before a run reckons with. An unoptimized binary has twice as much to relocate.
    let most = lowlat_pipeline::check::Memory::PROCESS_BYTES * if cfg!(debug_assertions) { 2 } else { 1 };
    assert!((64 << 10..=most).contains(&bytes), "{bytes}");
    assert!(document["ready_s"].as_f64().unwrap() > 0.0, "{document}");
}

/// More strategies than nodes may join.
#[test]
fn thousands_of_strategies_of_a_host_are_served() {
    let runs = TempDir::new().unwrap();
    let cpu = lowlat_host_run::affinity::current().unwrap().highest().unwrap().to_string();
    let of = |more: &[&str]| {
        let mut command = Command::new(crate::common::binary());
        command.args(["pipeline", "run", "--json", "--strategies", "3000", "--rate", "3000"]).args(more);
        command.args(["--duration", "1s"]).env("XDG_RUNTIME_DIR", runs.path()).env("NO_COLOR", "1");
        command.output().unwrap()
    };
    let refused = of(&[]);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    assert!(talk(&refused).contains("the maximum is 1000\nhint: run them in one process"), "{refused:?}");
    let output = of(&["--host-core", &cpu, "--force"]);
    let document = json(&output);
    // A quote of each instrument. A host that gets no CPU time does not answer the last ones before the stop.
    assert_eq!(document["ticks_published"], 3000, "{output:?}");
    assert!(document["orders"].as_u64().unwrap() > 1100, "more than there are nodes: {output:?}");
    assert_eq!(document["orders"], document["answers"], "{output:?}");
    assert_eq!((&document["rejected"], &document["lost"]), (&0.into(), &0.into()), "{output:?}");
}

/// A new control group with a fifth of a CPU, removed with this.
struct Quota(std::path::PathBuf);

impl Quota {
    fn new() -> std::io::Result<Self> {
        let groups = fs::read_to_string("/proc/self/cgroup")?;
        let of = |controller: &str| {
            let mut lines = groups.lines().filter_map(|line| line.split_once(':')?.1.split_once(':'));
            lines.find_map(|(found, group)| found.split(',').any(|one| one == controller).then_some(group))
        };
        let name = format!("lowlat-test-{}", std::process::id());
        let (folder, file, text) = match of("cpu") {
            Some(group) => (format!("/sys/fs/cgroup/cpu{group}"), "cpu.cfs_quota_us", "20000"),
            None => (format!("/sys/fs/cgroup{}", of("").unwrap_or("/")), "cpu.max", "20000 100000"),
        };
        let quota = Self(Path::new(&folder).join(name));
        fs::create_dir(&quota.0)?;
        // A new file there would say that there is no such controller.
        fs::OpenOptions::new()
            .write(true)
            .open(quota.0.join(file))
            .and_then(|mut file| std::io::Write::write_all(&mut file, text.as_bytes()))?;
        Ok(quota)
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn a_quota_that_stops_processes_is_told() {
    let quota = match Quota::new() {
        Ok(quota) => quota,
        Err(error) => {
            eprintln!("skipped: a_quota_that_stops_processes_is_told: no group with a quota: {error}");
            return;
        }
    };
    let runs = TempDir::new().unwrap();
    let plain = run(runs.path(), &["--duration", "2s"]);
    let mut command = Command::new("sh");
    command.args(["-c", "echo $$ > \"$0\"/cgroup.procs && exec \"$@\""]).arg(&quota.0);
    command.arg(plain.get_program()).args(plain.get_args()).env("XDG_RUNTIME_DIR", runs.path());
    let output = command.output().unwrap();
    let warnings = json(&output)["warnings"].to_string();
    assert!(warnings.contains("A quota of CPU time stopped processes for"), "{warnings} {}", talk(&output));
}

/// The error names what the host lacks, and does not take it for a missing program or a full disk.
#[test]
fn a_host_without_a_place_for_runs_or_without_null_is_told() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: a_host_without_a_place_for_runs_or_without_null_is_told: only root may mount");
        return;
    }
    let lowlat = crate::common::binary();
    let said = |mount: &str| {
        let line = format!("{mount} && exec {} pipeline run --strategies 2 --duration 1s", lowlat.display());
        let output = Command::new("unshare")
            .args(["-m", "--propagation", "private", "sh", "-c", &line])
            .env_remove("XDG_RUNTIME_DIR")
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2));
        crate::common::text(&output.stderr)
    };
    let read_only = said("mount -t tmpfs -o ro none /run");
    assert!(read_only.contains("cannot make /run/lowlat: Read-only file system"), "{read_only}");
    assert!(read_only.contains("XDG_RUNTIME_DIR names that of run folders"), "{read_only}");
    let without_null = said("mount -t tmpfs none /dev");
    assert!(without_null.contains("cannot open /dev/null for "), "{without_null}");
    assert!(!without_null.contains("hint: name a program"), "{without_null}");
}
