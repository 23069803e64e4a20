//! `lowlat watch` as its users run it: on a terminal, in scripts, under Prometheus.

mod metrics;
mod terminal;

use crate::common::{lowlat, text};
use std::process::Output;

fn said(output: &Output) -> String {
    format!("{}{}", text(&output.stdout), text(&output.stderr))
}

#[test]
fn once_prints_one_interval() {
    let output = lowlat(&["watch", "--once", "--interval", "200ms"]);
    let shown = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    for words in ["lowlat watch", "own cost ", "CPU  state", "Intruders", "Settings", "Network", "Pipelines"]
    {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    assert!(!shown.contains('\u{1b}'), "no colours without a terminal: {shown}");
}

#[test]
fn named_cpus_are_watched_as_quiet_ones() {
    let output = lowlat(&["watch", "--once", "--json", "--cpus", "0", "--interval", "300ms"]);
    let lines: Vec<serde_json::Value> =
        text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let [line] = &lines[..] else { panic!("{}", said(&output)) };
    assert_eq!((&line["document"], &line["schema_version"]), (&"lowlat-watch".into(), &1.into()));
    let cpus = line["cpus"].as_array().unwrap();
    assert_eq!((cpus.len(), &cpus[0]["cpu"]), (1, &0.into()));
    assert_ne!(cpus[0]["state"], "shared", "it was named, so it is expected to be quiet");
    assert!(line["elapsed_ns"].as_u64().unwrap() >= 300_000_000, "{line}");
    assert!(line["own_cpu_ns"].as_u64().is_some(), "{line}");
}

#[test]
fn sampling_measures_interruptions_with_their_lengths() {
    // Longer where other work leaves the sampler no CPU.
    let mut intervals = ["4s", "15s", "60s"].into_iter();
    let (output, line) = loop {
        let interval = intervals.next().expect("an interruption");
        let output =
            lowlat(&["watch", "--once", "--json", "--sample", "--cpus", "1", "--interval", interval]);
        let shown = text(&output.stdout);
        if shown.is_empty() && said(&output).contains("cannot watch CPU 1") {
            eprintln!("skipped: sampling_measures_interruptions_with_their_lengths: this host has one CPU");
            return;
        }
        let line: serde_json::Value =
            serde_json::from_str(&shown).unwrap_or_else(|_| panic!("{}", said(&output)));
        if line["cpus"][0]["sampled"]["count"].as_u64().unwrap() > 0 {
            break (output, line);
        }
    };
    let sampled = &line["cpus"][0]["sampled"];
    assert!(
        sampled["ns_max"].as_u64().unwrap() > 0 && !sampled["causes"].as_array().unwrap().is_empty(),
        "{line}"
    );
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn what_cannot_be_watched_is_refused_with_a_hint() {
    let refused = |arguments: &[&str]| {
        let output = lowlat(&[&["watch"], arguments].concat());
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{}", said(&output));
        text(&output.stderr)
    };
    assert!(refused(&["--cpus", "8000"]).contains("cannot watch CPU 8000: not online"));
    let open = refused(&["--exporter", "0.0.0.0:9469"]);
    assert!(
        open.contains("other hosts can reach it") && open.contains("\nhint: use 127.0.0.1:9469"),
        "{open}"
    );
    let name = refused(&["--textfile", "/tmp/lowlat.txt"]);
    assert!(name.contains(".prom\nhint: rename it to /tmp/lowlat.prom"), "{name}");
    assert!(refused(&["--interval", "1ms"]).contains("--interval 1ms is out of range\nhint: "));
    assert!(refused(&["--json", "--textfile", "x.prom"]).contains("cannot be used with"));
}
