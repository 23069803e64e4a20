//! The choice of a waiting mode between two namespaces.

use super::{
    alone,
    veth::{ADDRESSES, Pair, pair},
};
use lowlat_host_run::Root;
use lowlat_net::{
    choose::{ChoiceRecord, ChoiceStudy, Goal, Mode},
    pingpong::{Scenario, Transport, Waiting},
};
use lowlat_net_run::{ChooseOptions, run_choose};
use std::{
    fs,
    sync::atomic::AtomicBool,
    thread,
    time::{Duration, Instant},
};

fn scenario(time_ms_max: u64) -> Scenario {
    Scenario {
        transport: Transport::Udp,
        sizes: vec![32],
        busy_poll_us: 100,
        time_ms_max,
        iterations_min: 400,
        warm_up_ms: 20,
        rate_per_s: Some(10_000.0),
        timeout_ms: 20_000,
        ..Scenario::default()
    }
}

fn search(pair: &Pair, goal: Goal, scenario: Scenario, rounds: u32) -> ChoiceRecord {
    pair.beside_server(ADDRESSES[1], move |server| {
        let options = ChooseOptions { goal, scenario, server, rounds, is_forced: false };
        run_choose(&Root::live(), &options, &AtomicBool::new(false), &|_| {})
    })
    .unwrap()
}

#[test]
fn every_mode_is_measured_or_has_a_reason() {
    let _alone = alone();
    let Some(pair) = pair("every_mode_is_measured_or_has_a_reason") else { return };
    // Any mode meets this goal.
    let goal = Goal { p99_ns: 60_000_000_000, cpu_share: 1.0 };
    let record = search(&pair, goal, scenario(10), 4);
    assert_eq!(record.modes.iter().map(|mode| mode.mode).collect::<Vec<_>>(), Mode::ALL);
    for mode in &record.modes {
        if let Some(why) = &mode.unavailable {
            eprintln!("{}: {why}", mode.mode);
            assert_eq!(mode.rounds, []);
            continue;
        }
        assert_eq!(mode.rounds.len(), 4, "{}: {:?}", mode.mode, record.warnings);
        for round in &mode.rounds {
            assert!(
                round.count >= 400 && round.p50_ns <= round.p99_ns && round.p99_ns.is_some(),
                "{round:?}"
            );
            assert!(round.shares().iter().all(Option::is_some), "{round:?}");
        }
    }
    let unavailable =
        |waiting| record.modes.iter().find(|mode| mode.mode.waiting == waiting).unwrap().unavailable.clone();
    assert!(unavailable(Waiting::SuspendedIrq).is_none_or(|why| why.contains("irq-suspend-timeout")));
    assert_eq!((unavailable(Waiting::Block), unavailable(Waiting::BusyPoll)), (None, None));
    let study = ChoiceStudy::of(&record);
    assert!(study.choice.is_some_and(|choice| choice.meets), "{study:?}");
}

/// Tries that count for the verdict.
const TRIES: usize = 10;
/// Tries at all: those during which other programs ran do not count.
const ATTEMPTS_MAX: usize = 60;
/// Largest share of the host's CPUs that other programs may use during a try, unless LOWLAT_OTHERS_MAX names another.
const OTHERS_MAX: f64 = 0.05;
/// Largest ratio of the chosen mode's figure to the best one's.
const RATIO_MAX: f64 = 1.05;

/// The goals that are proven, from a first search: CPU decides; p99 excludes waiting with idle states; CPU does not
/// matter; none meets it. The p99 goal is not near what the modes reach, because their last percent follows the host's
/// other work, and differs by more than 5 % from try to try.
fn goals(first: &ChoiceRecord) -> [Goal; 4] {
    let study = ChoiceStudy::of(first);
    let p99 = |is_wanted: fn(&Mode) -> bool| -> f64 {
        let wanted = study.modes.iter().filter(|of| is_wanted(&of.mode));
        wanted.filter_map(|of| Some(of.p99_ns?.median)).fold(f64::INFINITY, f64::min)
    };
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "some microseconds")]
    let times = |ns: f64, factor: f64| (ns * factor) as u64;
    [
        Goal { p99_ns: 1_000_000_000, cpu_share: 0.5 },
        Goal { p99_ns: times(p99(|mode| mode.holds_idle), 3.0), cpu_share: 0.5 },
        Goal { p99_ns: times(p99(|mode| mode.waiting.spins()), 3.0), cpu_share: 1.0 },
        Goal { p99_ns: 1_000_000_000, cpu_share: 0.01 },
    ]
}

/// A choice is within 5 % of the best mode in 9 of 10 tries. The best mode is found from the rounds of all tries.
#[test]
#[ignore = "takes minutes on an idle host; CONTRIBUTING.md has its command"]
fn the_choice_is_within_5_percent_of_the_best_in_9_of_10_tries() {
    let _alone = alone();
    let Some(pair) = pair("the_choice_is_within_5_percent_of_the_best_in_9_of_10_tries") else { return };
    let mut tries: Vec<ChoiceRecord> = Vec::new();
    let others_max =
        std::env::var("LOWLAT_OTHERS_MAX").ok().map_or(OTHERS_MAX, |share| share.parse().unwrap());
    let search = |goal| search(&pair, goal, scenario(250), 7);
    let goals = goals(&search(Goal { p99_ns: 1_000_000_000, cpu_share: 1.0 }));
    for attempt in 1..=ATTEMPTS_MAX {
        if tries.len() == TRIES {
            break;
        }
        let before = HostTime::now();
        // The goal decides how many rounds are measured, and this one may need more.
        let record = search(goals[1]);
        let others = before.others();
        if others > others_max {
            eprintln!("skipped: attempt {attempt}: other programs used {:.0} % of the CPUs", others * 100.0);
            thread::sleep(Duration::from_secs(1));
            continue;
        }
        println!(
            "try {} of {TRIES}: other programs used {:.0} % of the CPUs",
            tries.len() + 1,
            others * 100.0
        );
        tries.push(record);
    }
    assert_eq!(tries.len(), TRIES, "the host was not idle for so many tries");
    for goal in goals {
        let hits = judge(&tries, goal);
        assert!(
            hits * 10 >= TRIES * 9,
            "{hits} of {TRIES} choices are within 5 % of the best mode for {goal:?}"
        );
    }
}

/// Counts the tries whose choice is within 5 % of the best mode.
fn judge(tries: &[ChoiceRecord], goal: Goal) -> usize {
    let with_goal = |record: &ChoiceRecord| ChoiceRecord { goal, ..record.clone() };
    let mut pooled = with_goal(&tries[0]);
    for record in &tries[1..] {
        for (all, mode) in pooled.modes.iter_mut().zip(&record.modes) {
            all.rounds.extend(mode.rounds.iter().cloned());
        }
    }
    let all = ChoiceStudy::of(&pooled);
    println!("goal: p99 {} ns, CPU {:.0} %", goal.p99_ns, goal.cpu_share * 100.0);
    for of in &all.modes {
        let [p50, p99] = [of.p50_ns, of.p99_ns].map(|of| of.map_or(0.0, |of| of.median));
        let cpu = of.cpu_share.map_or(0.0, |of| of.median * 100.0);
        println!(
            "  {:<22} p50 {p50:>8.0} ns  p99 {p99:>8.0} ns  CPU {cpu:>5.1} %  {}",
            of.mode.to_string(),
            of.meets()
        );
    }
    // CPU among the modes that meet the goal; otherwise how far the goal is missed, which is p99 or CPU.
    let has_goal_met = all.modes.iter().any(lowlat_net::choose::ModeStudy::meets);
    let figure = |place: usize| {
        let of = &all.modes[place];
        let value =
            if has_goal_met { of.cpu_share.filter(|_| of.meets()).map(|of| of.median) } else { of.miss };
        value.unwrap_or(f64::INFINITY)
    };
    let best = (0..all.modes.len()).map(figure).fold(f64::INFINITY, f64::min);
    let is_hit = |record: &&ChoiceRecord| {
        let choice = ChoiceStudy::of(&with_goal(record)).choice.unwrap();
        let ratio = figure(choice.place) / best;
        println!("  chosen: {} ({ratio:.3} times the best)", choice.mode);
        ratio <= RATIO_MAX
    };
    let hits = tries.iter().filter(is_hit).count();
    println!("  {hits} of {} within 5 %", tries.len());
    hits
}

/// CPU time of the host and of this process.
struct HostTime {
    wall: Instant,
    busy_s: f64,
    own_s: f64,
}

impl HostTime {
    fn now() -> Self {
        let ticks = |fields: &str, places: &[usize]| -> f64 {
            let numbers: Vec<f64> =
                fields.split_whitespace().filter_map(|field| field.parse().ok()).collect();
            // USER_HZ is 100 on every architecture that lowlat runs on.
            places.iter().filter_map(|place| numbers.get(*place)).sum::<f64>() / 100.0
        };
        let host = fs::read_to_string("/proc/stat").unwrap();
        let own = fs::read_to_string("/proc/self/stat").unwrap();
        // user, nice, system, irq, softirq; and utime and stime, 14 and 15 by their number, after the name in brackets.
        let busy_s = ticks(host.lines().next().unwrap(), &[0, 1, 2, 5, 6]);
        let own_s = ticks(own.rsplit_once(") S ").or_else(|| own.rsplit_once(") R ")).unwrap().1, &[10, 11]);
        Self { wall: Instant::now(), busy_s, own_s }
    }

    /// Share of all CPUs that other programs used since then.
    fn others(&self) -> f64 {
        let now = Self::now();
        let cpus =
            thread::available_parallelism().map_or(1.0, |cpus| f64::from(u32::try_from(cpus.get()).unwrap()));
        let used_s = (now.busy_s - self.busy_s) - (now.own_s - self.own_s);
        used_s.max(0.0) / (self.wall.elapsed().as_secs_f64() * cpus)
    }
}
