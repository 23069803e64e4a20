//! The module from Python's view: the scripts in this directory, run with what cargo built.

#[path = "../../trade/tests/runtime/master_thread.rs"]
#[allow(dead_code, clippy::unnecessary_wraps, reason = "other tests use the rest")]
mod master_thread;
#[path = "../../trade/tests/pipeline/threads.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod threads;

use lowlat_ipc::{
    region::Region as _,
    stream::{self, Reader, Stamp},
};
use lowlat_journal::record::{Follower, Options, Recorder, Source, WriteMethod};
use lowlat_node::{
    Counters, Event, Keys, STRATEGIES_MAX, StreamName, Wait,
    control::WithoutMaster,
    ledger::{AREA, Ledger, words::CHANGES},
    records::{Answer, Order, Origin, Outcome, Quote, Reject, SCHEMA, Side},
};
use lowlat_trade::{
    master::Happened,
    roles::{
        self,
        td::{TdDone, TdOptions},
    },
    td::{BookRules, Limits, Matching, Rules},
};
use master_thread::{MasterThread, join, reads, until, writes};
use std::{
    collections::BTreeSet,
    env, fs,
    path::Path,
    process::{Child, Command, Output, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    thread::{self, JoinHandle},
};
use tempfile::TempDir;
use threads::{QUOTES, RING_BYTES, STRATEGIES, start_md, start_td};

/// The oldest Python that the module loads into.
const OLDEST: &str = "import sys; sys.exit(sys.version_info < (3, 9))";

/// A Python with the module, in a private directory; without one the test prints that it is skipped. With
/// LOWLAT_INSTALLED set, the module installed in that Python is used: a wheel.
struct Python {
    program: String,
    module: Option<TempDir>,
}

impl Python {
    fn find(test: &str) -> Option<Self> {
        let program = env::var("PYTHON").unwrap_or_else(|_| "python3".to_owned());
        let found = Command::new(&program).args(["-c", OLDEST]).stderr(Stdio::null()).status();
        if !found.is_ok_and(|status| status.success()) {
            eprintln!("skipped: {test}: no {program} of 3.9 or later: install one, or name one in PYTHON");
            return None;
        }
        if env::var_os("LOWLAT_INSTALLED").is_some() {
            return Some(Self { program, module: None });
        }
        let module = tempfile::tempdir().unwrap();
        let built = env::current_exe().unwrap().with_file_name("liblowlat_python.so");
        fs::copy(&built, module.path().join("lowlat.abi3.so"))
            .unwrap_or_else(|error| panic!("{}: {error}", built.display()));
        Some(Self { program, module: Some(module) })
    }

    fn command(&self, script: &str) -> Command {
        let mut command = Command::new(&self.program);
        if let Some(module) = &self.module {
            // An installed module must not replace the built one.
            command.env("PYTHONPATH", module.path());
        }
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join(script));
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

fn words(output: &Output) -> String {
    format!(
        "{}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// A running script, which may end before the awaited event.
struct ChildWaiter(JoinHandle<Output>);

impl ChildWaiter {
    fn new(child: Child) -> Self {
        Self(thread::spawn(move || child.wait_with_output().unwrap()))
    }

    /// Waits for a condition; returns whether it became true while the script ran.
    fn until(&self, is_so: impl Fn() -> bool) -> bool {
        until("a node, or the end of the script", || is_so() || self.0.is_finished());
        is_so()
    }

    fn output(self) -> Output {
        self.0.join().unwrap()
    }
}

#[test]
fn the_module_matches_its_stub() {
    let Some(python) = Python::find("the_module_matches_its_stub") else { return };
    let master = MasterThread::start(|_| ());
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let child = python
        .command("tests/test_module.py")
        .env("LOWLAT_SOCKET", master.socket())
        .env("LOWLAT_STUB", folder.join("lowlat.pyi"))
        .env("LOWLAT_RECORDING", folder.join("../journal/tests/golden/v1"))
        .spawn()
        .unwrap();
    // The events that test_words_of_the_master waits for; they arrive before or after other events.
    let joined = |name: &'static str| {
        master.with(move |_, all| {
            all.iter().any(|it| matches!(it, Happened::Joined { name: joined, .. } if joined == name))
        })
    };
    let waiter = ChildWaiter::new(child);
    if waiter.until(|| joined("commanded")) {
        master.with(|master, _| {
            master.command("commanded", "faster").unwrap();
            master.stop_node("commanded").unwrap();
        });
    }
    if waiter.until(|| joined("given-up")) {
        master.with(|master, _| master.drop_node("given-up").unwrap());
    }
    let output = waiter.output();
    assert!(output.status.success(), "{}", words(&output));
}

/// As mypy's stubtest judges it, which a machine need not have.
#[test]
fn the_stub_is_what_the_module_is() {
    let test = "the_stub_is_what_the_module_is";
    let Some(python) = Python::find(test) else { return };
    let Some(module) = &python.module else { return };
    fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join("lowlat.pyi"), module.path().join("lowlat.pyi"))
        .unwrap();
    let run = |arguments: &[&str]| {
        let mut command = Command::new(&python.program);
        command.args(arguments).env("PYTHONPATH", module.path()).env("MYPYPATH", module.path());
        command.current_dir(module.path()).output().unwrap()
    };
    if !run(&["-c", "import mypy.stubtest"]).status.success() {
        eprintln!("skipped: {test}: no mypy: pip install mypy, and name its Python in PYTHON");
        return;
    }
    let output = run(&["-m", "mypy.stubtest", "lowlat"]);
    assert!(output.status.success(), "{}", words(&output));
}

/// A recording of a quote, its order and the order's answer per round, of which every tenth is missing.
fn record_rounds(folder: &Path, rounds: u64) {
    let mut recorder = Recorder::open(folder, Options::default()).unwrap();
    let streams = ["md", "orders.a", "td"].map(|name| recorder.add_stream(name, 0, "", Some(0)).unwrap());
    for round in (0..rounds).filter(|round| round % 10 != 9) {
        let price = i64::try_from(round).unwrap() - 5;
        let origin = Origin { packet_ns: round % 2, sequence: round, read_after_ns: 0 };
        let quote = Quote { bid: price, ask: price + 1, bid_size: 7, origin, ..Quote::default() };
        let order = Order { number: round, price, quantity: 3, side: Side::Sell, ..Order::default() };
        let outcome = if round % 3 == 0 { Outcome::Rejected(Reject::OverLimit) } else { Outcome::Filled };
        let (side, received_ns) = (Side::Sell, 1000 * round);
        let answer =
            Answer { order_number: round, outcome, received_ns, price, quantity: 3, instrument: 4, side };
        let payloads = [quote.encode(), order.encode(), answer.encode()];
        for ((stream, kind), payload) in streams.iter().zip(1..).zip(payloads) {
            let generated = 1000 * round + u64::from(kind);
            let stamp = Stamp { kind, schema: SCHEMA, instrument: 4, generated, ..Stamp::default() };
            let record = stream::Record { position: 128 * round, sequence: round, stamp };
            recorder.record(*stream, 1, &record, &payload).unwrap();
        }
    }
    recorder.stop().unwrap();
}

/// By the libraries that the Python has.
#[test]
fn batches_are_taken_by_what_reads_arrow() {
    let test = "batches_are_taken_by_what_reads_arrow";
    let Some(python) = Python::find(test) else { return };
    let folder = tempfile::tempdir().unwrap();
    record_rounds(folder.path(), 50_000);
    let output = python.command("tests/batches.py").arg(folder.path()).arg("50000").output().unwrap();
    assert!(output.status.success(), "{}", words(&output));
    for missing in String::from_utf8(output.stdout).unwrap().lines() {
        eprintln!("skipped: {test}: no {missing}: pip install {missing}, and name its Python in PYTHON");
    }
}

/// Runs a strategy against a pipeline, and returns its final output.
fn run_strategy(test: &str, script: &str, name: &'static str, number: Option<&str>) -> Option<String> {
    let python = Python::find(test)?;
    let master = MasterThread::start(|options| options.areas = roles::areas());
    let (md, td) = (start_md(&master), start_td(&master));
    let instruments = (0..STRATEGIES).map(|number| number.to_string());
    let mut command = python.command(script);
    let child = command.arg(master.socket()).args(number).args(instruments).spawn().unwrap();
    master.expect("the strategy has joined", |it| matches!(it, Happened::Joined { .. }));
    master.expect(
        "it is the third",
        move |it| matches!(it, Happened::Joined { name: joined, .. } if joined == name),
    );
    master.begin();
    // One quote, one accept and one fill each.
    until("all answers are read", || {
        master.with(move |master, _| {
            master.counters(name).is_some_and(|counters| counters.figures().read == 3 * QUOTES)
        })
    });
    master.with(|master, _| master.stop());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", words(&output));
    md.join().unwrap();
    let td = td.join().unwrap();
    let told = (td.orders, td.rejected, td.known, td.missing, td.lost, td.not_orders);
    assert_eq!(told, (QUOTES, 0, 0, 0, 0, 0));
    master.expect("it has left", move |it| matches!(it, Happened::Left { name: left } if left == name));
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn a_strategy_in_ten_lines_answers_every_quote() {
    run_strategy("a_strategy_in_ten_lines_answers_every_quote", "examples/strategy.py", "example", None);
}

#[test]
fn a_strategy_in_asyncio_answers_every_quote() {
    let test = "a_strategy_in_asyncio_answers_every_quote";
    let Some(said) = run_strategy(test, "examples/async_strategy.py", "async", None) else { return };
    assert_eq!(said.trim_end(), format!("{QUOTES} quotes, the other task ran on"));
}

/// A td that fills orders against quotes.
fn start_book(master: &MasterThread) -> JoinHandle<TdDone> {
    let matching = Matching::Quotes(BookRules::default());
    let rules = Rules { instruments: STRATEGIES, matching, limits: Limits::default() };
    let node = master.join(&roles::td::join(RING_BYTES, &rules, Wait::Parked));
    thread::spawn(move || roles::td::run(node, &TdOptions { rules, gateway: None }).unwrap())
}

#[test]
fn orders_rest_change_and_trade_and_the_ledger_has_them() {
    let test = "orders_rest_change_and_trade_and_the_ledger_has_them";
    let Some(python) = Python::find(test) else { return };
    let master = MasterThread::start(|options| options.areas = roles::areas());
    let td = start_book(&master);
    let child = python.command("tests/open_orders.py").arg(master.socket()).spawn().unwrap();
    master.expect("it has joined", |it| matches!(it, Happened::Joined { name, .. } if name == "rests"));
    master.begin();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", words(&output));
    master.with(|master, _| master.stop());
    let td = td.join().unwrap();
    // A restart leaves a number of its stream unused.
    assert_eq!((td.orders, td.rejected, td.known, td.missing, td.lost, td.not_orders), (12, 0, 0, 1, 0, 0));
}

#[test]
fn a_ledger_that_td_left_in_the_middle_of_a_change_is_busy() {
    let test = "a_ledger_that_td_left_in_the_middle_of_a_change_is_busy";
    let Some(python) = Python::find(test) else { return };
    let master = MasterThread::start(|options| options.areas = roles::areas());
    master.with(|master, _| master.area(AREA).unwrap().words()[CHANGES].store(1, Ordering::Release));
    let output = python.command("tests/busy_ledger.py").arg(master.socket()).output().unwrap();
    assert!(output.status.success(), "{}", words(&output));
}

/// Its second process starts with the orders and positions of the first.
#[test]
fn a_market_maker_follows_the_market_and_survives_a_restart() {
    let test = "a_market_maker_follows_the_market_and_survives_a_restart";
    let Some(python) = Python::find(test) else { return };
    let master = MasterThread::start(|options| options.areas = roles::areas());
    let (md, td) = (start_md(&master), start_book(&master));
    let start = |times: usize| {
        let instruments = (0..STRATEGIES).map(|number| number.to_string());
        let mut command = python.command("examples/market_maker.py");
        let child = command.arg(master.socket()).args(instruments).spawn().unwrap();
        let is_it = |it: &&Happened| matches!(it, Happened::Joined { name, .. } if name == "maker");
        until("it has joined", || {
            master.with(move |_, happened| happened.iter().filter(is_it).count() == times)
        });
        child
    };
    let said = |child: Child| {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", words(&output));
        let said = String::from_utf8(output.stdout).unwrap();
        let (first, last) = said.trim_end().split_once('\n').unwrap();
        (first.to_owned(), last.to_owned())
    };
    let child = start(1);
    master.begin();
    md.join().unwrap();
    master.with(|master, _| master.stop_node("maker").unwrap());
    let (first, last) = said(child);
    assert_eq!(first, "starts with 0 orders, positions {}");
    let requests: u64 = last.split(' ').next().unwrap().parse().unwrap();
    assert!(requests >= u64::from(2 * STRATEGIES), "{last}");

    let ledger = master.with(|master, _| Ledger::look(master.area(AREA).unwrap().clone()).unwrap());
    until("all requests are answered", || ledger.totals().answered == requests);
    let strategy = (0..STRATEGIES_MAX).find(|strategy| ledger.last_number(*strategy) > 0).unwrap();
    let orders = ledger.open_orders(strategy).unwrap();
    let sides: BTreeSet<_> = orders.iter().map(|order| (order.instrument, order.side.word())).collect();
    assert!(!orders.is_empty() && sides.len() == orders.len(), "one order a side: {orders:?}");
    let positions = ledger.positions(strategy).unwrap();
    // An order of 10 may be filled before it is cancelled at the limit, 20.
    assert!(positions.iter().all(|(_, position)| position.abs() < 30), "{positions:?}");
    let shown: Vec<_> = positions.iter().map(|(at, position)| format!("{at}: {position}")).collect();
    let child = start(2);
    master.with(|master, _| master.stop());
    let (first, _) = said(child);
    assert_eq!(first, format!("starts with {} orders, positions {{{}}}", orders.len(), shown.join(", ")));
    let td = td.join().unwrap();
    assert_eq!((td.orders, td.rejected, td.lost, td.not_orders), (requests, 0, 0, 0));
}

/// One node computes a spread, on a stream of its own; the other trades on it.
#[test]
fn pairs_are_traded_on_a_custom_stream() {
    let Some(python) = Python::find("pairs_are_traded_on_a_custom_stream") else { return };
    let master = MasterThread::start(|options| options.areas = roles::areas());
    let (md, td) = (start_md(&master), start_book(&master));
    let start = |role: &'static str| {
        let mut command = python.command("examples/pairs.py");
        let child = command.arg(master.socket()).args([role, "0", "1"]).spawn().unwrap();
        master.expect("it has joined", move |it| matches!(it, Happened::Joined { name, .. } if name == role));
        child
    };
    let children = ["signal", "pairs"].map(start);
    master.begin();
    md.join().unwrap();
    let ledger = master.with(|master, _| Ledger::look(master.area(AREA).unwrap().clone()).unwrap());
    // Both legs of a trade are sent together, and are filled at once.
    let counts = || master.with(|master, _| (master.waiting("pairs"), master.nodes()));
    until("the last trade is complete", || {
        let (waiting, nodes) = counts();
        let sent = nodes.iter().find(|node| node.name == "pairs").map_or(0, |node| node.figures.published);
        waiting == 0 && sent > 0 && sent % 2 == 0 && ledger.totals().fills == sent
    });
    master.with(|master, _| master.stop());
    let [_, said] = children.map(|child| {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", words(&output));
        String::from_utf8(output.stdout).unwrap()
    });
    let numbers: Vec<i64> = said.split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect();
    let &[orders, first, second] = numbers.as_slice() else { panic!("{said}") };
    let td = td.join().unwrap();
    assert_eq!((u64::try_from(orders).unwrap(), td.rejected, td.lost), (td.orders, 0, 0), "{said}");
    assert!(first.abs() <= 1 && first == -second, "{said}");
}

/// Records the streams of a master as they are now.
fn record_now(master: &MasterThread, folder: &Path) {
    let node = master.join(&join("recorder", None, vec![reads("*", Keys::Only(Vec::new()))]));
    let options = Options { writes: WriteMethod::Cached, file_bytes_max: 1 << 20, ..Options::default() };
    let of = |(name, segment): (&StreamName, _)| {
        let reader = Reader::from_start(segment);
        Source { name: name.to_string(), schema: String::new(), reader }
    };
    let sources = node.segments().map(of).collect();
    let recorder = Recorder::open(folder, options).unwrap();
    let follower = Follower::new(recorder, sources, Box::new(|_, _| None)).unwrap();
    follower.run(&AtomicBool::new(true)).unwrap();
}

#[test]
fn a_recording_is_merged_into_the_live_stream() {
    let Some(python) = Python::find("a_recording_is_merged_into_the_live_stream") else { return };
    let folder = tempfile::tempdir().unwrap();
    let master = MasterThread::start(|_| ());
    let mut writer = master.join(&join("writer", writes("quotes", 1), vec![]));
    let mut publish = |count: u32| {
        writer.poll(&mut |_, _| ());
        (0..count).for_each(|_| _ = writer.publisher().publish(&Stamp::default(), b"").unwrap());
    };
    publish(150);
    record_now(&master, folder.path());
    publish(100);
    let mut command = python.command("tests/late_join.py");
    let child = command.arg(master.socket()).arg(folder.path()).spawn().unwrap();
    master.expect("it has joined", |it| matches!(it, Happened::Joined { name, .. } if name == "late"));
    publish(50);
    until("it has read all of the live stream", || {
        publish(0);
        master
            .with(|master, _| master.counters("late").is_some_and(|counters| counters.figures().read == 150))
    });
    master.with(|master, _| master.stop());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", words(&output));
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim_end(), "300 in order");
}

#[test]
fn questions_are_answered_to_who_asked() {
    let Some(python) = Python::find("questions_are_answered_to_who_asked") else { return };
    let master = MasterThread::start(|_| ());
    let run = |arguments: &[&str]| {
        python.command("examples/ask.py").arg(master.socket()).args(arguments).spawn().unwrap()
    };
    let server = run(&["server"]);
    master.expect(
        "the server has joined",
        |it| matches!(it, Happened::Joined { name, .. } if name == "server"),
    );
    let asks = [["one", "4", "-5"], ["other", "70", "0"]].map(|arguments| run(&arguments));
    let told = asks.map(|child| {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", words(&output));
        String::from_utf8(output.stdout).unwrap()
    });
    assert_eq!(told.each_ref().map(|text| text.trim()), ["8 -10", "140 0"]);
    master.with(|master, _| master.stop());
    assert!(server.wait_with_output().unwrap().status.success());
}

#[test]
fn a_strategy_with_methods_gets_every_event_once() {
    let test = "a_strategy_with_methods_gets_every_event_once";
    let Some(said) = run_strategy(test, "tests/strategy_with_methods.py", "methods", Some("7")) else {
        return;
    };
    let expected = format!(
        "quotes {QUOTES} orders {QUOTES} accepted {QUOTES} filled {QUOTES} begun 1 lost 0 out-of-order 0"
    );
    assert_eq!(said.trim_end(), expected);
}

/// The records of one poll are returned one by one, and it works on each.
#[test]
fn a_node_that_works_long_on_each_record_sends_heartbeats() {
    const RECORDS: usize = 30;
    let test = "a_node_that_works_long_on_each_record_sends_heartbeats";
    let Some(python) = Python::find(test) else { return };
    let master = MasterThread::start(|_| ());
    let mut writer = master.join(&join("writer", writes("numbers", 1), vec![]));
    let mut command = python.command("tests/slow_reader.py");
    let child = command.arg(master.socket()).arg(RECORDS.to_string()).spawn().unwrap();
    master.expect("it has joined", |it| matches!(it, Happened::Joined { name, .. } if name == "slow"));
    until("it has read all", || {
        writer.poll(&mut |_, _| ());
        writer.publisher().publish(&Stamp::default(), b"").unwrap().delivered.subscribers == 1
    });
    (1..RECORDS).for_each(|_| _ = writer.publisher().publish(&Stamp::default(), b"").unwrap());
    let mut beats = BTreeSet::new();
    until("it has left", || {
        beats.insert(master.with(|master, _| master.counters("slow").map(Counters::heartbeat_ns)));
        let has_left = |it: &Happened| matches!(it, Happened::Left { name } if name == "slow");
        master.with(move |_, happened| happened.iter().any(has_left))
    });
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", words(&output));
    // Work for a second and a half, and a heartbeat every tenth of one.
    assert!(beats.len() >= 8, "{beats:?}");
}

#[test]
fn forked_children_cannot_use_or_end_their_parents_node() {
    let test = "forked_children_cannot_use_or_end_their_parents_node";
    let Some(python) = Python::find(test) else { return };
    for wait in ["parked", "fast"] {
        // A child that starts would make the parent start twice.
        let master = MasterThread::start(|options| options.areas = roles::areas());
        let mut reader = master.join(&join("reader", None, vec![reads("numbers", Keys::All)]));
        let child = python.command("tests/forks.py").arg(master.socket()).arg(wait).spawn().unwrap();
        let is_parent = |it: &Happened| matches!(it, Happened::Joined { name, .. } if name == "parent");
        master.expect("the parent has joined", is_parent);
        master.begin();
        let (script, mut last) = (ChildWaiter::new(child), 0_u64);
        until("the script ends", || {
            let is_ended = script.0.is_finished();
            reader.wait(Some(0));
            reader.poll(&mut |_, event| match event {
                Event::Record { payload, .. } => {
                    last += 1;
                    assert_eq!(payload, last.to_le_bytes(), "a foreign record");
                }
                Event::Lost { count, .. } => panic!("{count} lost"),
                _ => {}
            });
            is_ended
        });
        let output = script.output();
        assert!(output.status.success(), "{}", words(&output));
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), last.to_string(), "all are read");
        let has_left = |it: &Happened| matches!(it, Happened::Left { name } if name == "parent");
        master.expect("the parent has left", has_left);
        let happened = master.with(|_, happened| std::mem::take(happened));
        let died = happened.iter().filter(|it| matches!(it, Happened::Died { .. }));
        assert_eq!(died.count(), 0, "{happened:?}");
    }
}

#[test]
fn the_end_of_a_run_is_no_error() {
    let Some(python) = Python::find("the_end_of_a_run_is_no_error") else { return };
    let master = MasterThread::start(|options| {
        options.without_master = WithoutMaster::Stop;
        options.areas = roles::areas();
    });
    let child = python.command("tests/until_the_end.py").arg(master.socket()).spawn().unwrap();
    master.expect("it has joined", |it| matches!(it, Happened::Joined { .. }));
    drop(master);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", words(&output));
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "ended");
}

/// Interpreters before 3.14 unwind such a thread through the module's functions, which ended most of these processes with
/// a signal.
#[test]
fn a_daemon_thread_does_not_disturb_the_end() {
    let Some(python) = Python::find("a_daemon_thread_does_not_disturb_the_end") else { return };
    for kind in ["iterate", "iterate", "iterate", "poll", "poll", "poll", "work", "work"] {
        let master = MasterThread::start(|_| ());
        let child = python.command("tests/daemon_at_exit.py").arg(master.socket()).arg(kind).spawn().unwrap();
        master.expect("it has joined", |it| matches!(it, Happened::Joined { .. }));
        master.begin();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(7), "{kind}: {}", words(&output));
        if kind == "iterate" {
            master.expect("it has left", |it| matches!(it, Happened::Left { .. }));
        }
    }
}
