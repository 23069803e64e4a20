//! A whole run with processes of this test as md, td and strategies.

use crate::{
    master_thread::{join, until, writes},
    runtime::child::{self, program},
};
use lowlat_ipc::stream::Stamp;
use lowlat_node::{Event, Node, Strategies, Wait, clock::now_ns, records::Quote, strategy::OnEachRecord};
use lowlat_pipeline::{Balance, Delivered, Mode, PipelineOptions, PipelineParameters, PipelineRecord};
use lowlat_trade::{
    master::Program,
    roles::{self, td::TdOptions},
    run::{Phase, Progress, plan::MASTER, run, tally::Tally},
    td::{Limits, Matching, Rules},
};
use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

/// "SOCKET STRATEGIES COUNT PERIOD_US": publishes this many quotes and exits.
pub fn md(text: &str) {
    let mut words = text.split(' ');
    let mut next = || words.next().unwrap();
    let (socket, keys) = (next(), next().parse::<u32>().unwrap());
    let (count, period_us): (u64, u64) = (next().parse().unwrap(), next().parse().unwrap());
    let mut node = Node::join(Path::new(socket), &join("md", writes("md", keys), vec![])).unwrap();
    let tally = Tally::new(node.area("tally.md").unwrap().clone()).unwrap();
    tally.set_scheduled(count);
    let (mut may_publish, mut is_over) = (false, false);
    let mut number = 0;
    while number < count && !is_over {
        node.wait(Some(now_ns() + period_us * 1000));
        node.poll(&mut |_, event| match event {
            Event::Begin => may_publish = true,
            Event::Stop => is_over = true,
            _ => {}
        });
        if may_publish {
            let now = now_ns();
            let instrument = u32::try_from(number).unwrap() % keys;
            let stamp = Stamp { instrument, kind: 1, generated: now, trigger: now, ..Stamp::default() };
            node.publisher()
                .publish(&stamp, &Quote { bid: 100, ask: 102, last: 101, ..Quote::default() }.encode())
                .unwrap();
            tally.published(now);
            number += 1;
        }
    }
}

/// "SOCKET": td as in a run of lowlat.
pub fn td(socket: &str) {
    let rules = Rules { instruments: 8, matching: Matching::AtOnce(1), limits: Limits::default() };
    let node = Node::join(Path::new(socket), &roles::td::join(1 << 18, &rules, Wait::Parked)).unwrap();
    roles::td::run(node, &TdOptions { rules, gateway: None }).unwrap();
}

/// Joins as the strategy of "SOCKET INSTRUMENT".
fn strategy_node(text: &str) -> (Node, u32) {
    let (socket, number) = text.split_once(' ').unwrap();
    let number = number.parse().unwrap();
    let (name, claim) = (format!("s{number}"), Strategies::Only(vec![number]));
    let join = lowlat_node::strategy::join(&name, "strategies", claim, &[number], 1 << 18, Wait::Parked);
    (Node::join(Path::new(socket), &join).unwrap(), number)
}

/// "SOCKET INSTRUMENT": sends an order for each quote.
pub fn strategy(text: &str) {
    let (node, number) = strategy_node(text);
    lowlat_node::strategy::run(node, number, &mut OnEachRecord::of(number)).unwrap();
}

/// "SOCKET INSTRUMENT": a strategy that ends with an error at its first quote.
pub fn crashing(text: &str) {
    let (mut node, _) = strategy_node(text);
    let mut is_over = false;
    while !is_over {
        node.wait(None);
        node.poll(&mut |_, event| match event {
            Event::Record { .. } => std::process::exit(3),
            Event::Stop => is_over = true,
            _ => {}
        });
    }
}

fn parameters(strategies: u32) -> PipelineParameters {
    PipelineParameters {
        strategies,
        rate_per_s: 1000.0,
        mode: Mode::Parked,
        duration_s: 0.5,
        pins: BTreeMap::new(),
        host_core: None,
        may_use_huge_pages: false,
        has_md_threads: false,
        strategy_cost_ns: 0,
    }
}

fn programs(strategies: u32, count: u64, period_us: u64) -> Vec<Program> {
    let started =
        |name: &str, role: &str, text: String| Program { role: role.to_owned(), ..program(name, &text) };
    let mut programs = vec![started("td", "td", format!("td:{MASTER}"))];
    programs.extend(
        (0..strategies).map(|number| {
            started(&format!("s{number}"), "strategies", format!("strategy:{MASTER} {number}"))
        }),
    );
    programs.push(started("md", "md", format!("md:{MASTER} {strategies} {count} {period_us}")));
    programs
}

/// One run at a time, so that leftovers belong to that run.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Memory of the pipeline that this process still has, and its run folders.
fn leftovers() -> (usize, usize) {
    let fds = fs::read_dir("/proc/self/fd").unwrap().flatten();
    let memory = fds
        .filter_map(|fd| fs::read_link(fd.path()).ok())
        .filter(|target| target.to_string_lossy().contains("memfd:lowlat:tally"))
        .count();
    let own = format!("run-{}-", std::process::id());
    let base = lowlat_node::address::RunFolder::named("x").unwrap();
    let folders = fs::read_dir(base.path().parent().unwrap()).into_iter().flatten().flatten();
    (memory, folders.filter(|folder| folder.file_name().to_string_lossy().starts_with(&own)).count())
}

fn check_clean(record: &PipelineRecord, count: u64) {
    assert_eq!((record.ticks_scheduled, record.ticks_published), (count, count));
    assert_eq!((record.orders, record.answers, record.lost), (count, count, 0), "{record:?}");
    assert_eq!((record.missed_wakes, record.restarts, record.stages.t2o.count), (0, 0, count));
    let backing: u64 = record.backing_bytes.values().sum();
    assert!(record.measured_s > 0.0 && record.wakes > 0 && backing > 0);
    let unbalanced = record.balance.findings(record.answers, 0);
    assert_eq!(unbalanced, Vec::<String>::new(), "{record:?}");
    let Balance { quotes, answers, fills, senders, .. } = &record.balance;
    assert_eq!(*quotes, Delivered { published: count, received: count, lost: 0 });
    assert_eq!((*fills, answers.published, answers.received), (count, 2 * count, 2 * count));
    assert_eq!(senders.iter().map(|sender| sender.answered).sum::<u64>(), count);
}

#[test]
fn a_run_counts_everything_and_leaves_nothing_behind() {
    const COUNT: u64 = 300;
    let _alone = alone();
    let (mut phases, stop) = (Vec::new(), AtomicBool::new(false));
    let mut progress = |progress: &Progress| phases.push((progress.phase, progress.ticks_published));
    let record =
        run(&parameters(3), programs(3, COUNT, 1000), &PipelineOptions::default(), &mut progress, &stop)
            .unwrap();
    check_clean(&record, COUNT);
    assert_eq!(phases.last().map(|last| last.0), Some(Phase::Ending));
    assert_eq!(phases.last().map(|last| last.1), Some(COUNT));
    let roles: Vec<_> = record.uses.iter().map(|used| (used.role.as_str(), used.processes)).collect();
    assert_eq!(roles, [("master", 1), ("md", 1), ("strategies", 3), ("td", 1)]);
    let waits = record.uses.iter().filter(|used| ["td", "strategies"].contains(&used.role.as_str()));
    assert!(waits.into_iter().all(|used| used.voluntary_switches > 0), "{:?}", record.uses);
    // Other tests of this process have masters of their own meanwhile.
    until("nothing is left", || leftovers() == (0, 0));
}

#[test]
fn an_interrupted_run_is_marked_and_consistent() {
    let _alone = alone();
    let stop = AtomicBool::new(false);
    let mut progress = |progress: &Progress| {
        // The first report after the begin.
        if progress.phase == Phase::Publishing {
            stop.store(true, Ordering::Relaxed);
        }
    };
    let record =
        run(&parameters(2), programs(2, 1 << 30, 1000), &PipelineOptions::default(), &mut progress, &stop)
            .unwrap();
    assert!(record.ticks_published > 0 && record.ticks_published < record.ticks_scheduled);
    assert_eq!((record.orders, record.answers), (record.ticks_published, record.ticks_published));
    assert!(record.warnings.iter().any(|warning| warning.contains("was stopped")), "{:?}", record.warnings);
    until("nothing is left", || leftovers() == (0, 0));
}

#[test]
fn a_process_that_dies_during_a_run_is_restarted_and_reported() {
    let _alone = alone();
    let (stop, mut killed) = (AtomicBool::new(false), None);
    let mut progress = |progress: &Progress| {
        if progress.phase == Phase::Publishing && killed.is_none() {
            let pid = child_named("td:").expect("td runs");
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
            killed = Some(pid);
        }
    };
    let record =
        run(&parameters(2), programs(2, 3000, 1000), &PipelineOptions::default(), &mut progress, &stop)
            .unwrap();
    assert!(killed.is_some());
    assert_eq!((record.restarts, record.ticks_published), (1, 3000));
    // Everything was kept for its successor, and so was the order that it was working on.
    assert_eq!((record.orders, record.answers, record.lost), (3000, 3000, 0), "{record:?}");
    assert_eq!(record.balance.findings(record.answers, 1), Vec::<String>::new());
    let said = "1 restart after the death of a process.";
    assert!(record.findings.iter().any(|finding| finding == said), "{:?}", record.findings);
    until("nothing is left", || leftovers() == (0, 0));
}

/// A busy machine leaves a strategy without a turn; its quotes and answers are still on their way.
#[test]
fn a_run_waits_for_a_strategy_that_is_behind() {
    const COUNT: u64 = 300;
    let _alone = alone();
    let (stop, mut stopped) = (AtomicBool::new(false), None);
    let mut progress = |progress: &Progress| {
        if progress.ticks_published >= COUNT / 4 && stopped.is_none() {
            let pid = child_named("strategy:").expect("a strategy runs");
            let send = move |signal| rustix::process::kill_process(pid, signal).unwrap();
            send(rustix::process::Signal::STOP);
            // The rest of the ticks takes 1.5 s at most.
            stopped = Some(thread::spawn(move || {
                thread::sleep(Duration::from_secs(2));
                send(rustix::process::Signal::CONT);
            }));
        }
    };
    let record =
        run(&parameters(3), programs(3, COUNT, 6_000), &PipelineOptions::default(), &mut progress, &stop)
            .unwrap();
    stopped.expect("a strategy was stopped").join().unwrap();
    check_clean(&record, COUNT);
}

#[test]
fn a_strategy_that_crashes_repeatedly_ends_alone() {
    let _alone = alone();
    let mut programs = programs(2, 600, 1000);
    let role = format!("crashing:{MASTER} 1");
    let crashing = program("s1", &role);
    programs[2] = Program { role: "strategies".to_owned(), restarts_max: 2, ..crashing };
    let stop = AtomicBool::new(false);
    let parameters = PipelineParameters { duration_s: 0.6, ..parameters(2) };
    let record = run(&parameters, programs, &PipelineOptions::default(), &mut |_| (), &stop).unwrap();
    assert_eq!((&record.failed[..], record.ticks_published), (&["s1".to_owned()][..], 600), "{record:?}");
    // Each quote of the other one has its order and its answers.
    assert_eq!((record.orders, record.answers), (300, 300), "{record:?}");
    assert!(record.warnings.iter().any(|warning| warning.contains("s1 ended")), "{:?}", record.warnings);
    until("nothing is left", || leftovers() == (0, 0));
}

/// A child of this process whose role starts with this text.
fn child_named(role: &str) -> Option<rustix::process::Pid> {
    let own = std::process::id().to_string();
    let pids = fs::read_dir("/proc").unwrap().flatten();
    let pid = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok()).find(|pid| {
        let read = |file| fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
        let parent = read("status");
        let parent = parent.lines().find_map(|line| line.strip_prefix("PPid:")).map(str::trim);
        parent == Some(own.as_str()) && read("environ").contains(&format!("{}={role}", child::ROLE))
    });
    rustix::process::Pid::from_raw(pid?)
}
