//! Conclusions of a watch from its intervals: verdicts, events, sums, JSON, metrics.

use crate::host::{
    bad_step, bad_watch, quiet_step, row, sampled_watch, settings, subject, swappiness, thread, vector,
};
use crate::metric_names;
use lowlat_host::Reading;
use lowlat_jitter::{CounterDelta, steal_ticks};
use lowlat_jitter_report::watch::{Level, Line, State, Step, Watch, classic, open_metrics};
use lowlat_plan::verify::Standing;

fn events(watch: &Watch) -> Vec<String> {
    let shown =
        watch.events.iter().map(|event| format!("{:?} {}: {}", event.level, event.subject, event.text));
    shown.collect()
}

#[test]
fn cpus_get_a_verdict() {
    use State::{Interrupted, Intruder, Quiet};
    let watch = bad_watch();
    let states: Vec<State> = watch.rows.iter().map(|row| row.state).collect();
    assert_eq!(states, [Quiet, Intruder, Intruder, Interrupted, Quiet, Quiet]);
    let intruders: Vec<i32> = watch.intruders().map(|thread| thread.pid).collect();
    assert_eq!(intruders, [812, 47], "neither the pinned md nor the ksoftirqd of CPU 5");
    let counts: Vec<(State, usize)> = watch.states();
    assert_eq!(counts, [(Intruder, 2), (Interrupted, 1), (Quiet, 3)]);
}

#[test]
fn a_cpu_is_judged_by_a_second_of_short_intervals() {
    let mut watch = Watch::new(subject("3", "3"));
    // Intervals of 100 ms with this many interrupts of the timer, and the verdicts after each.
    let mut states = |counts: &[u64]| -> Vec<State> {
        let state = |count: &u64| {
            let mut step = quiet_step(watch.interval_count);
            step.interval.elapsed_ns = 100_000_000;
            step.interval.counted = [(3, vec![vector("LOC", *count)])].into();
            watch.take(step);
            watch.rows[0].state
        };
        counts.iter().map(state).collect()
    };
    assert_eq!(states(&[2, 0, 3, 0, 0, 2, 0, 1, 0, 2]), [State::Quiet; 10], "10 in a second");
    assert_eq!(states(&[3, 0]), [State::Ticking; 2], "11 in the last second");
    assert_eq!(states(&[0, 0, 0]), [State::Quiet; 3], "8 of them are left");
    let ticking = states(&[10; 12]);
    assert_eq!(ticking[1..], [State::Ticking; 11], "a tick of 100 Hz: {ticking:?}");
    assert_eq!(
        states(&[0; 9])[7..],
        [State::Ticking, State::Quiet],
        "the last interval of ticks ends the second"
    );
    assert_eq!(watch.events.len(), 4, "{:?}", events(&watch));
}

#[test]
fn steal_time_is_counted_in_the_ticks_of_the_host() {
    let mut watch = Watch::new(subject("3", "3"));
    for number in 0..2 {
        let mut step = quiet_step(number);
        let stolen = CounterDelta { cause: steal_ticks(), count: 5 };
        step.interval.counted.insert(3, vec![stolen]);
        watch.take(step);
    }
    check(&open_metrics(&watch), "lowlat_cpu_steal_seconds_total{cpu=\"3\"}", 0.04);
}

#[test]
fn changes_become_events_once() {
    let mut watch = bad_watch();
    let expected = [
        "Fault CPU 3: intruder kworker/u16:2 (pid 47) ran for 81.0 us",
        "Fault CPU 4: intruder cron (pid 812) ran for 2.40 ms",
        "Warning CPU 5: interrupted: irq 47 nvme0q3 120/s",
        "Warning eth0: lost packets: rx_missed_errors +7",
        "Info pipeline: started: process 4711 (run monday)",
        "Fault vm.swappiness: overridden by /etc/sysctl.d/90-database.conf: 60 instead of 0",
    ];
    assert_eq!(events(&watch), expected);
    assert!(watch.events.iter().all(|event| event.at_unix_ms == watch.last.at_unix_ms));

    let count = watch.events.len();
    let again = bad_step(2);
    watch.take(Step { settings: Some(settings(vec![swappiness()])), ..again });
    assert_eq!(watch.events.len(), count, "nothing changed: {:?}", events(&watch));

    let mut step = quiet_step(3);
    step.interval.drops.get_mut("eth0").unwrap().insert("rx_missed_errors".to_owned(), 19);
    watch.take(Step { settings: Some(settings(Vec::new())), ..step });
    // The row that is held again has another place in this plan of made-up rows, so it is not among them.
    let quiet: Vec<String> = events(&watch).into_iter().take(watch.events.len() - count).collect();
    assert_eq!(
        quiet,
        [
            "Info CPU 3: quiet again",
            "Info CPU 4: quiet again",
            "Info CPU 5: quiet again",
            "Info pipeline: ended: process 4711 (run monday)",
        ]
    );
}

#[test]
fn many_intruders_of_a_cpu_are_summed() {
    let mut watch = Watch::new(subject("2-7", "2-7"));
    let mut step = quiet_step(0);
    let threads = (0..5).map(|number| thread(100 + number, "sh", 3, 9_000, "0-7", false));
    step.interval.threads = Reading::Known(threads.collect());
    watch.take(step);
    let events = events(&watch);
    assert_eq!((events.len(), events[2].as_str()), (3, "Fault CPU 3: 3 more intruders"), "{events:?}");
}

#[test]
fn uncounted_switches_are_unknown_not_zero() {
    let mut watch = Watch::new(subject("2-7", "2-7"));
    let mut step = quiet_step(0);
    step.interval.read.switches = false;
    watch.take(step);
    assert_eq!(watch.rows[0].switches, None);
    assert!(!open_metrics(&watch).contains("lowlat_cpu_switches_total{"));
}

#[test]
fn a_setting_that_returns_is_an_event() {
    let mut watch = Watch::new(subject("2-7", "2-7"));
    watch.take(Step { settings: Some(settings(vec![swappiness()])), ..quiet_step(0) });
    assert!(watch.events.is_empty(), "what was wrong at the start is shown, but did not happen now");
    let held = row("vm.swappiness", "0", "0", Standing::Held);
    watch.take(Step { settings: Some(settings(vec![held])), ..quiet_step(1) });
    assert_eq!(events(&watch), ["Info vm.swappiness: held again"]);
    assert_eq!(watch.events[0].level, Level::Info);
}

#[test]
fn a_reset_counter_of_a_nic_counts_from_zero_and_a_new_nic_says_nothing() {
    let mut watch = Watch::new(subject("2-7", "2-7"));
    watch.take(quiet_step(0));
    let mut step = quiet_step(1);
    step.interval.drops.get_mut("eth0").unwrap().insert("rx_missed_errors".to_owned(), 2);
    step.interval.drops.insert("eth9".to_owned(), [("rx_dropped".to_owned(), 500)].into());
    watch.take(step);
    assert_eq!(events(&watch), ["Warning eth0: lost packets: rx_missed_errors +2"]);
}

#[test]
fn the_longest_interruption_of_an_interval_is_an_event() {
    let watch = sampled_watch();
    assert!(
        events(&watch).contains(&"Info CPU 5: longest interruption 23.7 us: softirq BLOCK".to_owned()),
        "{:?}",
        events(&watch)
    );
}

#[test]
fn an_interval_is_a_line_of_json() {
    let watch = bad_watch();
    let line = serde_json::to_value(Line::of(&watch)).unwrap();
    assert_eq!((&line["document"], &line["schema_version"]), (&"lowlat-watch".into(), &1.into()));
    assert_eq!(line["cpus"][1]["cpu"], 3);
    assert_eq!(
        (&line["cpus"][1]["state"], &line["cpus"][1]["interrupts"]),
        (&"intruder".into(), &1_002.into())
    );
    let intruder = &line["threads"][0];
    assert_eq!((&intruder["place"], &intruder["comm"]), (&"intruder".into(), &"cron".into()));
    assert_eq!(line["settings"]["state"], "compared");
    assert_eq!(line["settings"]["counts"]["overridden"], 1);
    assert_eq!(line["settings"]["faults"][0]["what"], "vm.swappiness");
    assert_eq!(line["drops"]["eth0"]["rx_missed_errors"], 7);
    assert_eq!(line["events"].as_array().unwrap().len(), 6);
    assert!(line["cpus"][1].get("sampled").is_none());
    let sampled = serde_json::to_value(Line::of(&sampled_watch())).unwrap();
    assert_eq!(sampled["cpus"][1]["sampled"]["count"], 1_031);
}

#[test]
fn metrics_are_sums_since_the_start() {
    let mut watch = bad_watch();
    watch.take(bad_step(2));
    let text = open_metrics(&watch);
    for (series, value) in [
        ("lowlat_build_info{version=\"0.1.0\"}", 1.0),
        ("lowlat_watch_seconds_total", 3.0),
        ("lowlat_watch_cpu_seconds_total", 0.012),
        ("lowlat_watch_last_timestamp_seconds", 1_795_442_589.0),
        ("lowlat_cpu_state{cpu=\"5\",state=\"interrupted\"}", 1.0),
        ("lowlat_cpu_state{cpu=\"5\",state=\"quiet\"}", 0.0),
        ("lowlat_cpu_events_total{cpu=\"3\",kind=\"vector\",cause=\"local timer\"}", 2_001.0),
        ("lowlat_cpu_events_total{cpu=\"5\",kind=\"irq\",cause=\"47 nvme0q3\"}", 240.0),
        ("lowlat_cpu_switches_total{cpu=\"3\"}", 80.0),
        ("lowlat_intruders{cpu=\"4\"}", 1.0),
        ("lowlat_intruders{cpu=\"2\"}", 0.0),
        ("lowlat_intruder_seconds_total{cpu=\"4\",thread=\"cron\"}", 0.0048),
        ("lowlat_plan_in_force", 1.0),
        ("lowlat_plan_settings{standing=\"held\"}", 59.0),
        ("lowlat_plan_setting_fault{target=\"vm.swappiness\",standing=\"overridden\"}", 1.0),
        ("lowlat_nic_lost_packets_total{nic=\"eth0\",counter=\"rx_missed_errors\"}", 19.0),
        ("lowlat_pipelines", 1.0),
    ] {
        check(&text, series, value);
    }
    assert!(text.ends_with("# EOF\n"));
    let sampled = open_metrics(&sampled_watch());
    for (series, value) in [
        ("lowlat_interruptions_total{cpu=\"3\",kind=\"softirq\",cause=\"RCU\"}", 31.0),
        ("lowlat_interruption_seconds_total{cpu=\"3\",kind=\"softirq\",cause=\"RCU\"}", 0.000_19),
        ("lowlat_interruption_longest_seconds{cpu=\"2\"}", 0.000_002_48),
        ("lowlat_interruptions_unread_total{cpu=\"3\"}", 0.0),
    ] {
        check(&sampled, series, value);
    }
}

/// Checks the value of a series, up to rounding.
fn check(text: &str, series: &str, value: f64) {
    let found = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    let found: f64 = found.unwrap_or_else(|| panic!("no {series}\n{text}")).parse().unwrap();
    assert!((found - value).abs() <= value.abs() * 1e-9, "{series} is {found}, not {value}\n{text}");
}

#[test]
fn the_older_format_names_counters_like_their_samples() {
    let text = classic(&bad_watch());
    let named = |kind: &str| -> Vec<&str> {
        text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.strip_suffix(kind)).collect()
    };
    let all = [named(" counter"), named(" gauge")].concat();
    assert!(named(" counter").iter().all(|name| name.ends_with("_total")), "{text}");
    let mut listed = metric_names();
    listed.sort_unstable();
    let mut typed = all.clone();
    typed.sort_unstable();
    assert_eq!(typed, listed);
    assert!(!text.contains("# EOF"));
}

#[test]
fn threads_cannot_forge_metrics() {
    let mut watch = Watch::new(subject("2-7", "2-7"));
    let mut step = quiet_step(0);
    let forged = "x\"} 1\nlowlat_forged 1\\";
    step.interval.threads = Reading::Known(vec![thread(9, forged, 3, 5, "0-7", false)]);
    watch.take(step);
    for text in [open_metrics(&watch), classic(&watch)] {
        assert!(!text.lines().any(|line| line.starts_with("lowlat_forged")), "{text}");
    }
}
