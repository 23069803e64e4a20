//! Starts, stops and kills the participants of a round, and judges it.

use super::{
    publisher,
    round::{Memory, PUBLISHERS, Plan, SUBSCRIBERS, mix, word},
    subscriber,
};
use lowlat_ipc::{doorbell::Futex, inbox::Inbox, interest::Interest};
use std::{
    env,
    process::{Child, Command},
    sync::atomic::Ordering,
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

/// Environment variable with the task of a process: role, number, generation, seed, process and descriptors of its
/// memory.
const ROLE: &str = "LOWLAT_TORTURE_ROLE";
/// Argument of the test harness: runs the one test that is a process of a round. Examples ignore it.
const ARGUMENTS: [&str; 3] = ["--exact", "killed::process_of_a_round", "--nocapture"];
/// A round that has not ended this long after it was stopped has failed.
const END_MAX: Duration = Duration::from_secs(120);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Publisher,
    Subscriber,
}

enum Body {
    Process(Child),
    Thread(JoinHandle<Result<(), String>>),
    Over,
}

struct Participant {
    role: Role,
    number: u64,
    generation: u64,
    body: Body,
}

#[derive(Debug, Default, Clone, Copy)]
pub struct Sum {
    pub published: u64,
    pub taken: u64,
    pub lost: u64,
    pub conflated: u64,
    pub evicted: u64,
    pub woken: u64,
    pub missed: u64,
    pub stops: u64,
    pub kills: u64,
}

impl Sum {
    pub fn add(&mut self, other: Self) {
        self.published += other.published;
        self.taken += other.taken;
        self.lost += other.lost;
        self.conflated += other.conflated;
        self.evicted += other.evicted;
        self.woken += other.woken;
        self.missed += other.missed;
        self.stops += other.stops;
        self.kills += other.kills;
    }
}

/// Plays its part and exits, if this process was started as part of a round.
pub fn play_if_started_so() {
    let Ok(role) = env::var(ROLE) else { return };
    let fields: Vec<_> = role.split(' ').collect();
    let number = |at: usize| fields[at].parse::<u64>().unwrap();
    let memory = Box::leak(Box::new(Memory::open(u32::try_from(number(4)).unwrap(), fields[5])));
    let role = if fields[0] == "publisher" { Role::Publisher } else { Role::Subscriber };
    let played = play(memory, Plan { seed: number(3) }, role, number(1), number(2));
    if let Err(error) = &played {
        eprintln!("{error}");
    }
    std::process::exit(i32::from(played.is_err()));
}

fn play(memory: &'static Memory, plan: Plan, role: Role, number: u64, generation: u64) -> Result<(), String> {
    match role {
        Role::Publisher => publisher::run(memory, plan, number),
        Role::Subscriber => subscriber::run(memory, plan, number, generation),
    }
}

impl Participant {
    fn start(memory: &'static Memory, plan: Plan, role: Role, number: u64, generation: u64) -> Self {
        let kind = u64::from(role == Role::Publisher);
        let body = if plan.is_process(kind, number) {
            let name = if role == Role::Publisher { "publisher" } else { "subscriber" };
            let value = format!(
                "{name} {number} {generation} {} {} {}",
                plan.seed,
                std::process::id(),
                memory.descriptors()
            );
            let child = Command::new(env::current_exe().unwrap())
                .args(ARGUMENTS)
                .env(ROLE, value)
                .stdout(std::process::Stdio::null())
                .spawn();
            Body::Process(child.unwrap())
        } else {
            Body::Thread(thread::spawn(move || play(memory, plan, role, number, generation)))
        };
        Self { role, number, generation, body }
    }

    fn signal(&self, signal: rustix::process::Signal) -> bool {
        let Body::Process(child) = &self.body else { return false };
        rustix::process::kill_process(rustix::process::Pid::from_child(child), signal).is_ok()
    }

    /// Its result, if it has ended.
    fn ended(&mut self) -> Option<Result<(), String>> {
        let named = |error: String| Err(format!("{:?} {}: {error}", self.role, self.number));
        match &mut self.body {
            Body::Over => Some(Ok(())),
            Body::Process(child) => match child.try_wait().unwrap() {
                None => None,
                Some(status) if status.success() => Some(Ok(())),
                Some(status) => Some(named(format!("{status}"))),
            },
            Body::Thread(thread) if !thread.is_finished() => None,
            Body::Thread(_) => {
                let Body::Thread(thread) = std::mem::replace(&mut self.body, Body::Over) else { return None };
                Some(thread.join().unwrap_or_else(|_| named("panicked".to_owned())))
            }
        }
    }
}

/// Plays one round for about this long.
pub fn round(seed: u64, length: Duration) -> Result<Sum, String> {
    let plan = Plan { seed };
    // Threads of a round may outlive its failure.
    let memory: &'static Memory = Box::leak(Box::new(Memory::create()));
    publisher::prepare(memory, plan);
    let mut parts: Vec<_> = (0..SUBSCRIBERS)
        .map(|number| Participant::start(memory, plan, Role::Subscriber, number, 0))
        .chain((0..PUBLISHERS).map(|number| Participant::start(memory, plan, Role::Publisher, number, 0)))
        .collect();
    let mut random = plan.random(300);
    let (mut sum, mut disturbed, mut failure) = (Sum::default(), false, None);
    let start = Instant::now();
    while start.elapsed() < length && failure.is_none() {
        thread::sleep(Duration::from_millis(random() % 60));
        let at = usize::try_from(random() % u64::try_from(parts.len()).unwrap()).unwrap();
        let part = &mut parts[at];
        match (random() % 8, part.role) {
            (0..=2, role) => {
                if part.signal(rustix::process::Signal::STOP) {
                    sum.stops += 1;
                    disturbed |= role == Role::Publisher;
                    thread::sleep(Duration::from_millis(random() % 30));
                    part.signal(rustix::process::Signal::CONT);
                }
            }
            (3..=5, Role::Subscriber) | (3, Role::Publisher) => {
                if kill(part, memory) {
                    sum.kills += 1;
                    disturbed |= part.role == Role::Publisher;
                    if part.role == Role::Subscriber {
                        let generation = part.generation + 1;
                        *part = Participant::start(memory, plan, Role::Subscriber, part.number, generation);
                    }
                }
            }
            _ => come_or_go(memory, plan, random() % SUBSCRIBERS, random().is_multiple_of(2)),
        }
        failure = parts.iter_mut().find_map(|part| part.ended().and_then(Result::err));
    }
    memory.stop().store(1, Ordering::Release);
    let inboxes: Vec<_> = (0..SUBSCRIBERS).map(|number| Inbox::new(memory.inbox(number)).unwrap()).collect();
    let end = Instant::now();
    while parts.iter().any(|part| !matches!(part.body, Body::Over)) {
        for part in &mut parts {
            let Some(ended) = part.ended() else { continue };
            part.body = Body::Over;
            failure = failure.or(ended.err());
        }
        if end.elapsed() > END_MAX {
            for part in &parts {
                part.signal(rustix::process::Signal::KILL);
            }
            return Err(format!("seed {seed}: the round did not end"));
        }
        thread::sleep(Duration::from_millis(5));
        // So that sleeping participants see the end.
        for inbox in &inboxes {
            inbox.notify(1000, &Futex);
        }
    }
    for publisher in 0..PUBLISHERS {
        sum.published += memory.of_publisher(publisher, word::PUBLISHED).load(Ordering::Acquire);
        for subscriber in 0..SUBSCRIBERS {
            let word = |what| memory.of_subscriber(publisher, subscriber, what).load(Ordering::Acquire);
            sum.taken += word(word::TAKEN);
            sum.lost += word(word::LOST);
            sum.conflated += word(word::CONFLATED);
            sum.evicted += word(word::EVICTED);
        }
    }
    for inbox in &inboxes {
        let (woken, missed) = inbox.woken_and_missed();
        sum.woken += woken;
        sum.missed += missed;
    }
    match failure {
        Some(error) => Err(format!("seed {seed}: {error}")),
        None if sum.missed > 0 && !disturbed => Err(format!("seed {seed}: {} wakes were missed", sum.missed)),
        None => Ok(sum),
    }
}

/// Kills a process of the round at an unforeseeable moment.
fn kill(part: &mut Participant, memory: &Memory) -> bool {
    let Body::Process(child) = &mut part.body else { return false };
    if child.kill().is_err() || child.wait().is_err() {
        return false;
    }
    part.body = Body::Over;
    if part.role == Role::Publisher {
        memory.of_publisher(part.number, word::DONE).store(2, Ordering::Release);
    }
    true
}

fn come_or_go(memory: &Memory, plan: Plan, subscriber: u64, is_wanted: bool) {
    if plan.comes_and_goes(subscriber) {
        for publisher in 0..PUBLISHERS {
            let interest = Interest::open(memory.interest(publisher)).unwrap();
            publisher::set_interest(&interest, plan, subscriber, is_wanted);
        }
    }
}

/// The seed of the next round.
pub fn next(seed: u64) -> u64 {
    mix(seed)
}
