//! A run recorded on a kernel: its trace and its interruptions, attributed again.

use crate::{CpuCauses, attribution::AttributionPlan, attribution::CpuAttributor};
use lowlat_host::ticks_between;
use lowlat_trace::{TraceEvent, TraceNames};
use serde::Deserialize;
use std::{fmt::Write as _, io::Read, path::Path};

/// Created by the example `record_run` of lowlat-jitter-run.
#[derive(Deserialize)]
struct Run {
    hz: u64,
    epoch: u64,
    sampler_tid: i32,
    spans: Vec<(u64, u64)>,
    names: TraceNames,
    events: Vec<TraceEvent>,
}

fn run() -> Run {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/trace/run.json.gz");
    let file = std::fs::File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut text = String::new();
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Attributes the run, with this many interruptions at a time.
fn attribute(run: &Run, at_once: usize) -> CpuCauses {
    let mut attributor = CpuAttributor::new(AttributionPlan {
        cpu: 1,
        sampler_tid: run.sampler_tid,
        hz: run.hz,
        epoch_ticks: run.epoch,
        slack_ticks: run.hz / 500_000,
        worst_count: 4,
        first_count: 4,
        events_max: 50_000,
        ..AttributionPlan::default()
    });
    let mut events = run.events.as_slice();
    for spans in run.spans.chunks(at_once) {
        let until = spans.last().map_or(0, |(_, now)| now + run.hz / 500_000);
        let (ready, later) = events.split_at(events.partition_point(|event| event.ticks <= until));
        attributor.push_events(ready);
        events = later;
        for (before, now) in spans {
            attributor.attribute(*before, *now);
        }
    }
    attributor.close_window(false);
    attributor.finish(&run.names, 0)
}

#[test]
fn a_recorded_run_has_the_causes_that_it_had() {
    let run = run();
    let causes = attribute(&run, 16);
    let total: u64 = run.spans.iter().filter_map(|(before, now)| ticks_between(*before, *now)).sum();
    let total_ns = causes.totals.iter().map(|total| total.ns_total).sum::<u64>();
    let off_ns = total_ns.abs_diff(lowlat_host::TickScale::new(run.hz).ns(total));
    assert!(off_ns <= 1, "parts add up to the time of the interruptions, {off_ns} ns off");
    assert_eq!(causes.attributed_count, run.spans.len() as u64);
    let mut text = String::new();
    for total in causes.totals.iter().take(12) {
        let _ = writeln!(
            text,
            "{:<44} {:>5} {:>5} {:>9} ns {:>8} ns",
            total.cause.label(),
            total.count,
            total.main_count,
            total.ns_total,
            total.entry_exit_ns
        );
    }
    insta::assert_snapshot!(text);
}

/// Nearly all time of interruptions in which the kernel ran has a name.
#[test]
fn what_the_kernel_did_is_named() {
    let causes = attribute(&run(), 16);
    let (kernel_ns, unnamed_ns) = (causes.kernel_ns_total, causes.kernel_unnamed_ns_total);
    assert!(kernel_ns > 0 && unnamed_ns * 20 < kernel_ns, "{unnamed_ns} of {kernel_ns} ns");
}

#[test]
fn it_does_not_matter_how_many_interruptions_come_at_once() {
    let run = run();
    let one = attribute(&run, 1);
    for at_once in [2, 7, 64, 100_000] {
        assert_eq!(attribute(&run, at_once), one, "{at_once}");
    }
}
