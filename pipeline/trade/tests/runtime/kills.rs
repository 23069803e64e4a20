//! Processes that are killed while records are published.

use crate::{
    master_thread::{MasterThread, join, reads, until},
    runtime::child::program,
};
use lowlat_node::{Event, Keys, Node};
use lowlat_trade::master::{Happened, Standing};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    collections::BTreeSet,
    env, fs,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

/// Rounds of killing; more on request.
fn rounds() -> u32 {
    env::var("LOWLAT_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(6)
}

/// So that a run can be repeated by its seed.
fn seeded() -> fastrand::Rng {
    let given = env::var("LOWLAT_SEED").ok().and_then(|text| text.parse().ok());
    let seed = given.unwrap_or_else(|| fastrand::u64(..1_000_000));
    eprintln!("seed: LOWLAT_SEED={seed}");
    fastrand::Rng::with_seed(seed)
}

/// Reads in a thread of the test. Returns the sequences, and the number of lost records.
fn follow(mut node: Node, is_over: Arc<AtomicBool>) -> thread::JoinHandle<(Vec<u64>, u64)> {
    thread::spawn(move || {
        let (mut seen, mut lost) = (Vec::new(), 0);
        loop {
            // Checked before the poll, so that everything from before it is read.
            let was_over = is_over.load(Ordering::Acquire);
            let count = node.poll(&mut |_, event| match event {
                Event::Record { record, payload, .. } => {
                    assert_eq!(payload, record.sequence.to_le_bytes(), "complete records only");
                    seen.push(record.sequence);
                }
                Event::Lost { count, .. } => lost += count,
                _ => {}
            });
            if was_over && count == 0 {
                return (seen, lost);
            }
            thread::sleep(Duration::from_millis(1));
        }
    })
}

#[test]
fn writer_and_reader_are_killed_at_random_and_nothing_committed_is_lost() {
    let mut random = seeded();
    let master = MasterThread::start(|_| {});
    let socket = master.socket().display().to_string();
    let file = master.socket().with_file_name("read");
    let follower = join("follower", None, vec![reads("count", Keys::All)]);
    let is_over = Arc::new(AtomicBool::new(false));
    let following = follow(master.join(&follower), Arc::clone(&is_over));
    let reader = program("reader", &format!("reader:{socket} reader {}", file.display()));
    let writer = program("writer", &format!("writer:{socket} writer 500"));
    master.with(move |master, _| {
        master.start(reader).unwrap();
        master.start(writer).unwrap();
    });
    let running = |name: &'static str, epoch| {
        until("the process joins", || {
            let nodes = master.with(|master, _| master.nodes());
            nodes.iter().any(|node| {
                (node.name.as_str(), node.epoch, node.standing) == (name, epoch, Standing::Running)
            })
        });
    };
    let mut epochs = [1, 1];
    running("reader", 1);
    running("writer", 1);
    // Only now: a reader gets what is published after it joined.
    master.with(|master, _| master.begin());
    for _ in 0..rounds() {
        thread::sleep(Duration::from_micros(random.u64(..60_000)));
        let who = random.usize(..2);
        let name = ["writer", "reader"][who];
        let processes = master.with(|master, _| master.processes());
        let pid = processes.iter().find(|(other, ..)| other == name).unwrap().2;
        kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), Signal::KILL).unwrap();
        epochs[who] += 1;
        running(name, epochs[who]);
    }
    thread::sleep(Duration::from_millis(50));
    let stopped = master.with(|master, _| master.stop_programs(Duration::from_secs(30)).unwrap());
    assert_eq!((stopped.asked, stopped.terminated, stopped.killed), (2, 0, 0));
    is_over.store(true, Ordering::Release);
    let (seen, lost) = following.join().unwrap();
    let [writers, readers] = epochs;
    assert_eq!(lost, 0);
    assert!(seen.windows(2).all(|pair| pair[0] < pair[1]), "in order, none twice");
    // Every process of the writer except the first started with the abandoned marker.
    let gaps = seen.last().unwrap() - seen.len() as u64;
    assert!(gaps < writers, "{gaps} gaps, and {} writers died", writers - 1);
    let read = fs::read_to_string(&file).unwrap();
    let numbers: Vec<u64> = read.lines().map(|line| line.parse().expect("no losses")).collect();
    assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "in order, none twice");
    let numbers: BTreeSet<u64> = numbers.into_iter().collect();
    let missing = seen.iter().filter(|sequence| !numbers.contains(sequence)).count() as u64;
    // The stop may reach the reader before the writer's last records; the record that a killed process was
    // working on is lost.
    let newest = *numbers.last().unwrap();
    let behind = seen.iter().filter(|sequence| **sequence > newest).count() as u64;
    assert!(missing - behind < readers, "{missing} missing, {behind} of them behind, {readers} readers");
    eprintln!("{} records, {writers} writers, {readers} readers, {missing} in hand", seen.len());
}

#[test]
fn a_node_that_leaves_costs_others_no_records() {
    let master = MasterThread::start(|_| {});
    let socket = master.socket().display().to_string();
    let stay = join("stay", None, vec![reads("count", Keys::All)]);
    let is_over = Arc::new(AtomicBool::new(false));
    let following = follow(master.join(&stay), Arc::clone(&is_over));
    let writer = program("writer", &format!("writer:{socket} writer 100"));
    master.with(move |master, _| {
        master.start(writer).unwrap();
        master.begin();
    });
    let first = Arc::new(Mutex::new(Vec::new()));
    for round in 0..8 {
        let mut come = master.join(&join("come", None, vec![reads("count", Keys::Only(vec![round % 4]))]));
        assert_eq!(come.epoch(), u64::from(round) + 1);
        let mut sequences = Vec::new();
        until("records arrive", || {
            come.poll(&mut |_, event| {
                if let Event::Record { record, .. } = event {
                    assert_eq!(record.stamp.instrument, round % 4);
                    sequences.push(record.sequence);
                }
            });
            sequences.len() > 3
        });
        assert!(sequences.windows(2).all(|pair| pair[1] == pair[0] + 4), "every one after the first");
        first.lock().unwrap().push(sequences[0]);
    }
    master.expect("it leaves", |happened| matches!(happened, Happened::Left { name } if name == "come"));
    master.with(|master, _| master.stop_programs(Duration::from_secs(30)).unwrap());
    is_over.store(true, Ordering::Release);
    let (seen, lost) = following.join().unwrap();
    assert_eq!((lost, seen.last().copied()), (0, Some(seen.len() as u64)), "all from the first on");
}

#[test]
fn a_process_that_keeps_dying_is_abandoned_and_its_log_is_kept() {
    let master = MasterThread::start(|_| {});
    let mut program = program("bad", "nonsense:");
    program.restarts_max = 2;
    let log = master.with(move |master, _| {
        master.start(program).unwrap();
        master.folder().log("bad")
    });
    master.expect("it is abandoned", |happened| matches!(happened, Happened::Abandoned { .. }));
    assert_eq!(master.with(|master, _| master.restarts()), 2);
    let words = fs::read_to_string(log).unwrap();
    assert_eq!(words.matches("role nonsense").count(), 3, "{words}");
}
