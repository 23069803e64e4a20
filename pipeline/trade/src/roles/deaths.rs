//! The life of td, by random schedules over a real master: it dies at any step, also while it joins and while it
//! recovers; strategies fall silent, die and come back. Each order that was sent is answered exactly once.

use super::{
    areas,
    td::{Td, TdOptions, join as td_join},
};
use crate::{
    master::{Master, Options},
    td::{Limits, Matching, Rules},
};
use fastrand::Rng;
use lowlat_ipc::stream::Stamp;
use lowlat_node::{
    Event, Join, JoinError, Keys, Node, Reads, Strategies, TD_STREAM, Wait,
    address::RunFolder,
    records::{Answer, Order, Outcome, Price, SCHEMA, kind},
    strategy, testing as crash,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

const STRATEGIES: u32 = 3;
const FILLS: u32 = 2;
const QUANTITY: u32 = 5;
const PRICE: Price = 100;

/// A strategy's process, as driven by the test.
struct Sender {
    number: u32,
    node: Option<Node>,
    is_silent: bool,
    orders: u64,
}

fn rules() -> Rules {
    Rules { instruments: 8, matching: Matching::AtOnce(FILLS), limits: Limits::default() }
}

fn strategy_join(number: u32) -> Join {
    let claims = Strategies::Only(vec![number]);
    strategy::join(&format!("s{number}"), "strategy", claims, &[], 1 << 16, Wait::Parked)
}

/// Joins under the name of a process that has died. A program that another test starts has its connection too, between
/// fork and exec.
fn join_again(socket: &Path, join: &Join) -> Node {
    let start = Instant::now();
    loop {
        match Node::join(socket, join) {
            Err(JoinError::Refused { reason, .. })
                if reason.contains("is running") && start.elapsed() < Duration::from_secs(10) =>
            {
                thread::sleep(Duration::from_millis(1));
            }
            joined => return joined.unwrap(),
        }
    }
}

/// Ends a node without a message to the master, as a process that is killed.
fn kill(mut node: Node) {
    node.must_be_stopped();
}

struct World<'a> {
    socket: &'a Path,
    random: Rng,
    senders: Vec<Sender>,
    td: Option<Td>,
    follower: Node,
    sent: BTreeSet<(u32, u64)>,
    answers: BTreeMap<(u32, u64), Vec<Answer>>,
    lost: u64,
    deaths: u32,
}

impl World<'_> {
    /// Polls everything that is neither silent nor td.
    fn poll(&mut self) -> usize {
        let answers = &mut self.answers;
        let lost = &mut self.lost;
        let mut events = self.follower.poll(&mut |_, event| match event {
            Event::Record { record, payload, .. } if record.stamp.kind == kind::ANSWER => {
                let answer = Answer::decode(payload).unwrap();
                answers.entry((record.stamp.instrument, answer.order_number)).or_default().push(answer);
            }
            Event::Lost { count, .. } => *lost += count,
            _ => {}
        });
        for sender in self.senders.iter_mut().filter(|sender| !sender.is_silent) {
            let node = sender.node.iter_mut();
            events += node
                .map(|node| {
                    node.poll(&mut |_, event| {
                        if let Event::Lost { count, .. } = event {
                            *lost += count;
                        }
                    })
                })
                .sum::<usize>();
        }
        events
    }

    /// Joins in a thread, as another process would, while the others poll. `None` if it died.
    fn join(&mut self, join: &Join, steps: u64) -> Option<Node> {
        thread::scope(|scope| {
            let socket = self.socket;
            let joining = scope.spawn(move || {
                let mut joined = None;
                crash::after(steps, || joined = Some(join_again(socket, join)));
                joined
            });
            while !joining.is_finished() {
                self.poll();
                if join.role == "td" && !self.sent.is_empty() {
                    self.beside();
                }
                thread::sleep(Duration::from_micros(200));
            }
            joining.join().unwrap()
        })
    }

    /// A strategy sends, dies, or comes back and sends at once, at any moment of td's joining.
    fn beside(&mut self) {
        let at = usize::try_from(self.random.u64(..u64::from(STRATEGIES))).unwrap();
        match (self.random.u64(..6), self.senders[at].node.take()) {
            (0, Some(node)) => kill(node),
            (0 | 1, None) => {
                self.restart(at);
                self.send(at, 2);
            }
            (turn, node) => {
                self.senders[at].node = node;
                self.send(at, u64::from(turn == 2));
            }
        }
    }

    fn start_td(&mut self, steps: u64) {
        let join = td_join(1 << 16, &rules(), Wait::Parked);
        let node = self.join(&join, steps);
        let options = TdOptions { rules: rules(), gateway: None };
        let mut td = None;
        if let Some(node) = node {
            crash::after(steps, || td = Some(Td::new(node, &options).unwrap()));
        }
        self.deaths += u32::from(td.is_none());
        self.td = td;
    }

    fn poll_td(&mut self, steps: u64) -> usize {
        let Some(td) = &mut self.td else { return 0 };
        let mut events = 0;
        if !crash::after(steps, || events = td.poll().unwrap()) {
            self.td = None;
            self.deaths += 1;
        }
        events
    }

    fn send(&mut self, at: usize, count: u64) {
        let Some(sender) = self.senders.get_mut(at) else { return };
        let Some(node) = &mut sender.node else { return };
        for _ in 0..count {
            sender.orders += 1;
            let number = sender.orders;
            let order = Order { number, price: PRICE, quantity: QUANTITY, ..Order::default() };
            let stamp =
                Stamp { kind: kind::ORDER, schema: SCHEMA, source: sender.number, ..Stamp::default() };
            // An order without room is not sent, and its strategy knows.
            if node.publisher().publish(&stamp, &order.encode()).is_ok() {
                self.sent.insert((sender.number, number));
            }
        }
    }

    fn act(&mut self) {
        let at = usize::try_from(self.random.u64(..u64::from(STRATEGIES))).unwrap();
        match self.random.u64(..12) {
            0..=3 => {
                let count = 1 + self.random.u64(..3);
                self.send(at, count);
            }
            4 => self.senders[at].is_silent = !self.senders[at].is_silent,
            5 => {
                let node = self.senders[at].node.take();
                node.map_or_else(|| self.restart(at), kill);
            }
            _ if self.td.is_none() => {
                // Most successors die early.
                let steps = if self.random.u64(..3) == 0 { u64::MAX } else { self.random.u64(..12) };
                self.start_td(steps);
            }
            _ => {
                let steps = if self.random.u64(..3) == 0 { u64::MAX } else { self.random.u64(..80) };
                self.poll_td(steps);
            }
        }
        self.poll();
    }

    fn restart(&mut self, at: usize) {
        let number = self.senders[at].number;
        let node = self.join(&strategy_join(number), u64::MAX);
        self.senders[at] = Sender { node, is_silent: false, ..self.senders[at] };
    }

    /// Everyone polls until nothing is left.
    fn rest(&mut self) {
        for at in 0..self.senders.len() {
            self.senders[at].is_silent = false;
            if self.senders[at].node.is_none() {
                self.restart(at);
            }
        }
        if self.td.is_none() {
            self.start_td(u64::MAX);
        }
        let mut since = Instant::now();
        let mut answered = 0;
        while since.elapsed() < Duration::from_millis(if answered == self.sent.len() { 20 } else { 2000 }) {
            if self.poll_td(u64::MAX) + self.poll() > 0 {
                since = Instant::now();
            }
            answered = self.answers.len();
            thread::sleep(Duration::from_micros(200));
        }
    }
}

/// Plays one schedule. Returns the number of deaths of td.
fn play(seed: u64) -> u32 {
    let folder = tempfile::tempdir().unwrap();
    let run = RunFolder::at(&folder.path().join("run")).unwrap();
    let socket = run.socket();
    let mut master = Master::open(Options { areas: areas(), ..Options::new(run) }).unwrap();
    // From then on, a join waits for the writers.
    master.begin();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            // Relaxed: the flag orders nothing.
            while !is_over.load(Ordering::Relaxed) {
                master.turn(Duration::from_millis(1)).unwrap();
            }
        });
        let played = std::panic::catch_unwind(|| {
            let follower = Join::new("follower", "test").reading([Reads::new(TD_STREAM, Keys::All)]);
            let follower = Node::join(&socket, &follower).unwrap();
            let senders = (0..STRATEGIES).map(|number| {
                let node = Some(Node::join(&socket, &strategy_join(number)).unwrap());
                Sender { number, node, is_silent: false, orders: 0 }
            });
            let mut world = World {
                socket: &socket,
                random: Rng::with_seed(seed),
                senders: senders.collect(),
                td: None,
                follower,
                sent: BTreeSet::new(),
                answers: BTreeMap::new(),
                lost: 0,
                deaths: 0,
            };
            world.start_td(u64::MAX);
            for _ in 0..60 {
                world.act();
            }
            world.rest();
            assert_eq!(world.lost, 0, "seed {seed}");
            assert_eq!(world.answers.keys().copied().collect::<BTreeSet<_>>(), world.sent, "seed {seed}");
            for (order, answers) in &world.answers {
                let outcomes: Vec<Outcome> = answers.iter().map(|answer| answer.outcome).collect();
                let expected = [Outcome::Accepted, Outcome::Filled, Outcome::Filled];
                assert_eq!(outcomes, expected, "seed {seed}: {order:?}");
            }
            world.deaths
        });
        // Relaxed: as above.
        is_over.store(true, Ordering::Relaxed);
        played.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// More on request: `LOWLAT_KILLS=1000`, from the seed `LOWLAT_SEED`.
#[test]
fn each_order_is_answered_exactly_once_whoever_dies_or_is_silent() {
    let given = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let (first, count) = (given("LOWLAT_SEED").unwrap_or(1), given("LOWLAT_KILLS").unwrap_or(12));
    let deaths: u32 = (first..first + count).map(play).sum();
    assert!(count < 12 || deaths > 50, "deaths: {deaths}");
}
