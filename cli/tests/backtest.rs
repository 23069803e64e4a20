//! `lowlat pipeline run --from-recording`: a strategy over a recording, at any speed, with its instruments and its time.

use crate::common::{self, running::Running};
use lowlat_ipc::stream::{Record, Stamp};
use lowlat_journal::{
    read::{JournalRead, Merge, Recording},
    record::{Options, Recorder, WriteMethod, identity::Clock},
};
use lowlat_node::records::{Order, Quote, SCHEMA, kind};
use serde_json::Value;
use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// CLOCK_MONOTONIC and CLOCK_REALTIME of the recorded host at one moment: of 2026-01-02T09:30:00Z.
const MOMENT_NS: (u64, u64) = (5_000_000_000, 1_767_346_200_000_000_000);
/// Times of the quotes: half an hour, then a night.
const QUOTES: u64 = 240;
const INTERVAL_NS: u64 = 7_500_000_000;
const NIGHT_NS: u64 = 16 * 3_600_000_000_000;
/// The recorded instruments, of which lower numbers had no quote.
const INSTRUMENTS: [u32; 2] = [3, 7];

/// Names of the instruments up to the last recorded one.
fn symbols() -> Vec<String> {
    (0..=INSTRUMENTS[1]).map(|number| format!("S{number}")).collect()
}

fn recorded_ns(number: u64) -> u64 {
    6_000_000_000 + number * INTERVAL_NS + if number < QUOTES / 2 { 0 } else { NIGHT_NS }
}

/// Records a market that goes up and down, with its own times.
fn record(folder: &Path) {
    let clock = Clock::Fixed { monotonic_ns: MOMENT_NS.0, realtime_ns: MOMENT_NS.1 };
    let options =
        Options { clock, writes: WriteMethod::Cached, file_bytes_max: 1 << 20, ..Options::default() };
    let mut recorder = Recorder::open(folder, options).unwrap();
    let md = recorder.add_stream("md", 1, "lowlat-trade", Some(1)).unwrap();
    for number in 0..QUOTES {
        let middle = 1_000_000 + 100 * i64::try_from((number * 7 % 60).abs_diff(30)).unwrap();
        let quote = Quote {
            bid: middle - 100,
            ask: middle + 100,
            last: middle,
            bid_size: 15,
            ask_size: 25,
            ..Quote::default()
        };
        let generated = recorded_ns(number);
        let instrument = INSTRUMENTS[usize::try_from(number % 2).unwrap()];
        let stamp = Stamp {
            kind: kind::QUOTE,
            schema: SCHEMA,
            instrument,
            source: 1,
            generated,
            trigger: generated,
            cause: 0,
        };
        let record = Record { position: 128 * number, sequence: number + 1, stamp };
        recorder.record(md, 1, &record, &quote.encode()).unwrap();
    }
    recorder.stop().unwrap();
}

struct Desk {
    folder: TempDir,
}

impl Desk {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        record(&folder.path().join("day"));
        Recorder::keep_symbols(&folder.path().join("day"), &symbols()).unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn lowlat(&self, words: &[&str]) -> Command {
        let mut command = Command::new(common::binary());
        command.args(words).current_dir(self.folder.path()).env("XDG_RUNTIME_DIR", self.folder.path());
        command.env("NO_COLOR", "1").stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// A run over the day that is recorded.
    fn run(&self, words: &[&str]) -> Command {
        self.lowlat(&[&["pipeline", "run", "--from-recording", "day", "--json"], words].concat())
    }

    /// Runs this strategy over the day, and returns the run's document and the strategy's output.
    fn backtest(&self, words: &[&str], mut strategy: Command) -> (Value, String) {
        let mut run = Running(Some(self.run(&[&["--name", "desk"], words].concat()).spawn().unwrap()));
        let socket = self.path("lowlat/desk/master.sock");
        while !socket.exists() {
            let ended = run.0.as_mut().and_then(|run| run.try_wait().unwrap());
            assert!(ended.is_none(), "the run ended before it opened its socket: {ended:?}");
            thread::sleep(Duration::from_millis(20));
        }
        let strategy = strategy.stdout(Stdio::piped()).stderr(Stdio::piped()).output().unwrap();
        assert!(strategy.status.success(), "{}", common::text(&strategy.stderr));
        let ended = run.0.take().unwrap().wait_with_output().unwrap();
        (document(&ended), common::text(&strategy.stdout))
    }

    /// Records of a stream, with their payloads.
    fn records(&self, recording: &str, stream: &str) -> Vec<(Stamp, Vec<u8>)> {
        let recording = Recording::open(&self.path(recording)).unwrap();
        let mut merge = Merge::new(&recording, &recording.choose(&[stream]).unwrap());
        let (mut records, mut payload) = (Vec::new(), Vec::new());
        loop {
            match merge.next(&mut payload) {
                JournalRead::Record(record) => records.push((record.record.stamp, payload.clone())),
                JournalRead::Ended => return records,
                other => panic!("{other:?}"),
            }
        }
    }

    fn diff(&self, left: &str, right: &str) -> Output {
        self.lowlat(&["journal", "diff", left, right]).output().unwrap()
    }
}

fn document(ended: &Output) -> Value {
    assert!(ended.status.success(), "{}{}", common::text(&ended.stdout), common::text(&ended.stderr));
    serde_json::from_slice(&ended.stdout).unwrap()
}

/// A Python that finds the module; without one the test prints that it is skipped.
fn python(desk: &Desk, test: &str) -> Option<Command> {
    let python = env::var("PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let built = env::current_exe().unwrap().with_file_name("liblowlat_python.so");
    if !built.is_file() {
        eprintln!("skipped: {test}: not built: cargo test -p lowlat-python --no-run");
        return None;
    }
    if Command::new(&python).arg("--version").stdout(Stdio::null()).status().is_err() {
        eprintln!("skipped: {test}: no {python}: install one, or name one in PYTHON");
        return None;
    }
    fs::copy(built, desk.path("lowlat.abi3.so")).unwrap();
    let mut command = Command::new(python);
    command.env("PYTHONPATH", desk.folder.path()).env("PYTHONDONTWRITEBYTECODE", "1");
    command.current_dir(desk.folder.path());
    Some(command)
}

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../pipeline/python/examples").join(name)
}

/// The built-in strategies beside each other send the same orders in each run, at the recorded times, and everything
/// that is recorded is the same.
#[test]
fn at_full_speed_every_run_has_the_same_records_and_the_recorded_time() {
    let desk = Desk::new();
    for recording in ["one", "two"] {
        let words = ["--speed", "max", "--strategies", "8", "--book-latency", "3s", "--record", recording];
        let document = document(&desk.run(&words).output().unwrap());
        let count = |name: &str| document[name].as_u64().unwrap();
        assert_eq!((count("ticks_published"), count("orders"), count("answers")), (QUOTES, QUOTES, QUOTES));
        // Of half a day, in less than one.
        assert!(document["measured_s"].as_f64().unwrap() > 16.0 * 3600.0, "{document}");
    }
    let diff = desk.diff("one", "two");
    assert!(diff.status.success(), "{}", common::text(&diff.stdout));
    for stream in ["md", "td", "orders.*"] {
        let [one, two] = ["one", "two"].map(|recording| desk.records(recording, stream));
        assert!(one.len() >= usize::try_from(QUOTES).unwrap() && one == two, "{stream}");
    }
    let quotes = desk.records("one", "md");
    let times: Vec<_> = quotes.iter().map(|(stamp, _)| (stamp.generated, stamp.instrument)).collect();
    let expected =
        (0..QUOTES).map(|number| (recorded_ns(number), INSTRUMENTS[usize::try_from(number % 2).unwrap()]));
    assert_eq!(times, expected.collect::<Vec<_>>());
    // The simulated exchange has the run's time too.
    let fills = desk.records("one", "td");
    assert!(fills.iter().all(|(stamp, _)| stamp.generated >= stamp.trigger + 3_000_000_000));
    let one = Recording::open(&desk.path("one")).unwrap();
    assert_eq!((one.moment_ns(), one.symbols()), (Some(MOMENT_NS), symbols()));
    let table = desk.lowlat(&["journal", "export", "one", "--stream", "md"]).output().unwrap();
    assert!(common::text(&table.stdout).lines().nth(1).unwrap().contains(",S3,"), "{table:?}");
}

/// The example of a market maker, as it is, by the example of a backtest.
#[test]
fn a_market_maker_over_a_recording_does_the_same_each_time() {
    let desk = Desk::new();
    let programs = common::binary().parent().unwrap().to_owned();
    let places = env::split_paths(&env::var_os("PATH").unwrap()).collect::<Vec<_>>();
    let places = env::join_paths([programs].into_iter().chain(places)).unwrap();
    let mut said = Vec::new();
    for recording in ["one", "two"] {
        let Some(mut backtest) = python(&desk, "a_market_maker_over_a_recording_does_the_same_each_time")
        else {
            return;
        };
        backtest.env("PATH", &places).env("XDG_RUNTIME_DIR", desk.folder.path());
        let output =
            backtest.arg(example("backtest.py")).args(["day", recording, "3", "7"]).output().unwrap();
        assert!(output.status.success(), "{}{}", common::text(&output.stdout), common::text(&output.stderr));
        let text = common::text(&output.stdout);
        let of_maker = text.lines().filter(|line| line.contains("positions")).map(str::to_owned);
        said.push(of_maker.collect::<Vec<_>>());
    }
    assert!(said[0].len() == 2 && said[0][1].contains("requests"), "{said:?}");
    assert_eq!(said[0], said[1]);
    let diff = desk.diff("one", "two");
    assert!(diff.status.success(), "{}", common::text(&diff.stdout));
    let [one, two] = ["one", "two"].map(|recording| desk.records(recording, "orders.maker"));
    assert!(one.len() > 100 && one == two, "{} {}", one.len(), two.len());
    let answers = desk.records("one", "td");
    assert!(answers.len() > one.len(), "some orders are filled: {} {}", answers.len(), one.len());
}

/// It acts by timers, polls without waiting and in asyncio.
const TIMED: &str = r#"
import asyncio, sys, lowlat
socket, way = sys.argv[1:]
seen = []
def act(node, event):
    if isinstance(event, lowlat.Quote):
        assert lowlat.now_ns() >= event.generated_ns, (lowlat.now_ns(), event.generated_ns)
        node.set_timer(event.generated_ns + 2_000_000_000)
        seen.append(lowlat.now_ns())
    elif isinstance(event, lowlat.Timer):
        assert lowlat.now_ns() >= event.due_ns
        seen.append(lowlat.now_ns())
        node.order(None, "buy", 1_000_000, 1, instrument=3)
async def tasks(node):
    async for event in node:
        act(node, event)
with lowlat.join(socket, "timed", instruments=[3]) as node:
    if way == "tasks":
        asyncio.run(tasks(node))
    elif way == "polls":
        while not node.is_over:
            for event in node.poll():
                act(node, event)
    else:
        for event in node:
            act(node, event)
print(*seen)
"#;

/// Timers of a strategy, by each way of waiting, are due at their time, which is the recording's.
#[test]
fn timers_and_now_have_the_time_of_the_recording() {
    let desk = Desk::new();
    fs::write(desk.path("timed.py"), TIMED).unwrap();
    let expected: Vec<u64> = (0..QUOTES)
        .step_by(2)
        .flat_map(|number| [0, 2_000_000_000].map(|after| recorded_ns(number) + after))
        .collect();
    for way in ["waits", "tasks", "polls"] {
        let Some(mut timed) = python(&desk, "timers_and_now_have_the_time_of_the_recording") else { return };
        timed.arg("timed.py").args(["lowlat/desk/master.sock", way]);
        let (document, output) = desk.backtest(&["--speed", "max", "--await", "timed"], timed);
        let seen: Vec<u64> = output.split_whitespace().map(|word| word.parse().unwrap()).collect();
        assert_eq!(seen, expected, "{way}");
        assert_eq!(document["orders"], QUOTES / 2, "{way} {document}");
    }
}

/// At a multiple of the recorded speed the time passes with the wall clock.
#[test]
fn at_a_speed_the_run_s_time_passes_so_many_times_as_fast() {
    let desk = Desk::new();
    let begun = Instant::now();
    // 58,000 s and more in 3 s.
    let ended = desk.run(&["--speed", "20000", "--strategies", "8", "--record", "fast"]).output().unwrap();
    assert!(begun.elapsed() > Duration::from_secs(2));
    let document: Value = serde_json::from_slice(&ended.stdout).unwrap();
    let count = |name: &str| document[name].as_u64().unwrap();
    assert_eq!((count("ticks_published"), count("orders"), count("answers")), (QUOTES, QUOTES, QUOTES));
    assert!(
        document["uses_s"].as_f64().unwrap() < document["measured_s"].as_f64().unwrap() / 10.0,
        "{document}"
    );
    for (number, (stamp, _)) in (0..).zip(desk.records("fast", "md")) {
        assert!(
            stamp.generated >= recorded_ns(number)
                && stamp.instrument == INSTRUMENTS[usize::try_from(number % 2).unwrap()]
        );
    }
    for (stamp, payload) in desk.records("fast", "orders.*") {
        let order = Order::decode(&payload).unwrap();
        assert!(order.scheduled_ns <= stamp.trigger && stamp.trigger <= stamp.generated, "{order:?}");
    }
}

#[test]
fn what_does_not_go_with_a_recording_is_refused() {
    let desk = Desk::new();
    let refused = |words: &[&str]| {
        let output = desk.lowlat(&[&["pipeline", "run"], words].concat()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        common::text(&output.stderr)
    };
    assert!(refused(&["--speed", "max"]).contains("--from-recording"));
    assert!(refused(&["--from-recording", "day", "--strategies", "9"]).contains("it has 8 instruments"));
    assert!(refused(&["--from-recording", "day", "--rate", "5"]).contains("cannot be used with"));
    assert!(
        refused(&["--ticks", "day", "--speed", "max"]).contains("--speed max needs the clock of a recording")
    );
    assert!(refused(&["--await", "maker"]).contains("--from-recording"));
    assert!(refused(&["--strategies", "0"]).contains("--strategies is 0"));
    let pinned = ["--from-recording", "day", "--speed", "max", "--pins", "platform=0"];
    assert!(refused(&pinned).contains("md and td work in turns"));
    assert!(refused(&["--from-recording", "none"]).contains("none"));
}

/// Quotes of instruments without a strategy are not missing.
#[test]
fn fewer_strategies_than_instruments_are_no_finding() {
    let desk = Desk::new();
    let document = document(&desk.run(&["--speed", "max", "--strategies", "4"]).output().unwrap());
    assert_eq!((&document["orders"], &document["findings"]), (&(QUOTES / 2).into(), &serde_json::json!([])));
    assert!(document["warnings"].to_string().contains("latencies were not measured"), "{document}");
}

/// A strategy that dies leaves a run that no other one repeats.
#[test]
fn at_full_speed_the_death_of_a_node_ends_the_run() {
    let desk = Desk::new();
    fs::write(desk.path("dies.py"), "import lowlat, os\nnode = lowlat.join('lowlat/desk/master.sock', 'dies', instruments=[3])\nfor event in node:\n    if isinstance(event, lowlat.Quote):\n        os._exit(1)\n").unwrap();
    let Some(mut dies) = python(&desk, "at_full_speed_the_death_of_a_node_ends_the_run") else { return };
    let mut run =
        Running(Some(desk.run(&["--name", "desk", "--speed", "max", "--await", "dies"]).spawn().unwrap()));
    while !desk.path("lowlat/desk/master.sock").exists() {
        thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(dies.arg("dies.py").status().unwrap().code(), Some(1));
    let ended = run.0.take().unwrap().wait_with_output().unwrap();
    let said = common::text(&ended.stderr);
    assert!(
        ended.status.code() == Some(2) && said.contains("cannot continue at full speed without node dies"),
        "{said}"
    );
}
