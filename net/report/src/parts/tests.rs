use super::*;
use lowlat_net::pingpong::{
    EndFacts, SizeRecord, Waiting,
    parts::{PARTS, PartsFacts},
};

pub(crate) fn record(is_traced: bool) -> PingpongRecord {
    let mut samples: Vec<u64> = (0..4_000).map(|n| 15_000 + n).collect();
    let mut size = SizeRecord::of(32, &mut samples, 99.0, 1).unwrap();
    let is_shown = |part: &&Part| match part {
        Part::ClientWake | Part::ServerWake => is_traced,
        part => **part != Part::Nics,
    };
    let figures = |(place, part): (usize, &Part)| PartFigures {
        part: *part,
        median_ns: 1_000 * (place as u64 + 1),
        p99_ns: Some(9_000),
        total_ns: 1_000 * (place as u64 + 1),
    };
    let slow = |part, cause, cpu, round_trip_ns| SlowMessage {
        at_ns: 1,
        round_trip_ns,
        part,
        part_ns: 1,
        usual_ns: 1,
        cause,
        cpu,
        cause_ns: 1,
    };
    size.parts = Some(SizeParts {
        messages: 10_000,
        missing: 1,
        adding_up: 9_998,
        parts: PARTS.iter().filter(is_shown).enumerate().map(figures).collect(),
        stamped_median_ns: 33_000,
        plain_median_ns: 30_000,
        slowest: vec![
            slow(Part::ClientWake, SlowCause::IdleExit, Some(1), 90_000),
            slow(Part::ClientWake, SlowCause::IdleExit, Some(1), 80_000),
            slow(Part::ServerWake, SlowCause::Preempted("burn\u{1b}[2J".into()), Some(0), 300_000),
            slow(Part::ClientSocket, SlowCause::Softirq("softirq RCU".into()), Some(0), 70_000),
            slow(Part::Wire, SlowCause::NotFound, None, 60_000),
        ],
        ..SizeParts::default()
    });
    PingpongRecord {
        client: EndFacts { cpu: Some(1), ..EndFacts::default() },
        server: EndFacts { cpu: Some(0), ..EndFacts::default() },
        is_same_host: true,
        parts: Some(PartsFacts { is_traced: [is_traced; 2], ..PartsFacts::default() }),
        sizes: vec![size],
        ..PingpongRecord::default()
    }
}

fn text(record: &PingpongRecord) -> String {
    let mut out = String::new();
    add_parts(&mut out, record, 80);
    anstream::adapter::strip_str(&out).to_string()
}

#[test]
fn the_parts_their_sum_and_the_causes_are_shown() {
    let text = text(&record(true));
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "Where a round trip of 32 bytes spends its time",
        "part median p99 share",
        "server: wake-up 5.00 us 9.00 us 9.09 % ##########",
        "99.9 % of 10,000 round trips add up",
        "1 of them lack a time stamp",
        "the median round trip is 33.0 us, 1.10 times as long",
        "The slowest 5 round trips of 32 bytes",
        "client: wake-up idle exit 2 90.0 us",
        "preempted by burn\\u{1b}[2J 1 300 us",
        "softirq RCU, CPU 0",
        "between the drivers not found",
    ] {
        assert!(words.contains(part), "{part}: {text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn an_end_that_was_not_traced_has_no_separate_wake_up() {
    let text = text(&record(false));
    assert!(text.contains("client: driver to program") && text.contains("includes the wake-up"), "{text}");
    let mut spinning = record(true);
    spinning.scenario.waiting = Waiting::Spin;
    for part in spinning.sizes[0].parts.iter_mut().flat_map(|parts| &mut parts.parts) {
        if matches!(part.part, Part::ClientWake | Part::ServerWake) {
            part.total_ns = 0;
        }
    }
    let text = self::text(&spinning);
    let table = text.split("The slowest").next().unwrap();
    assert!(
        !table.contains("server: wake-up") && text.contains("Spinning threads have no wake-up"),
        "{text}"
    );
}

#[test]
fn a_run_without_parts_shows_none() {
    assert_eq!(text(&PingpongRecord::default()), "");
}
