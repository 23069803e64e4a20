//! Results of a run.

use super::{
    tally::{self, Tally},
    uses,
    watch::Ended,
};
use crate::{node::Figures, stages::StageRecorder};
use lowlat_pipeline::{
    PipelineOptions, PipelineParameters, PipelineRecord, Stages, WireRecord, check::spinning,
};
use std::thread;

/// All results, with doubts about them.
pub(super) fn record(
    parameters: &PipelineParameters,
    asked: &PipelineOptions,
    ended: &Ended,
) -> PipelineRecord {
    let nodes = ended.master.nodes();
    let all = nodes.iter().fold(Figures::default(), |all, node| all.plus(node.figures));
    let tally = |area| ended.master.area(area).cloned().and_then(Tally::new);
    let (md_tally, td_tally) = (tally(tally::MD_AREA), tally(tally::TD_AREA));
    let stages = ended.master.area("stages").cloned().and_then(StageRecorder::new);
    let md = nodes.iter().find(|node| node.name == "md");
    let ticks_published = md.map_or(0, |md| md.figures.published);
    let from_tally = |get: fn(&Tally<_>) -> u64| td_tally.as_ref().map_or(0, get);
    let scheduled = md_tally.as_ref().and_then(Tally::scheduled);
    let measured_ns = md_tally.as_ref().and_then(Tally::published_ns).unwrap_or(ended.elapsed_ns);
    let mut parameters = parameters.clone();
    let scheduled = if asked.feed.is_some() {
        // A feed has no schedule; its missing quotes are counted apart.
        parameters.rate_per_s =
            if measured_ns == 0 { 0.0 } else { ticks_published as f64 / (measured_ns as f64 / 1e9) };
        ticks_published
    } else {
        scheduled.unwrap_or_else(|| by_rate(&parameters))
    };
    let wire = (asked.feed.is_some() || asked.gateway.is_some()).then(|| WireRecord {
        feed: md_tally.as_ref().filter(|_| asked.feed.is_some()).map(Tally::feed_figures),
        gateway: td_tally.as_ref().filter(|_| asked.gateway.is_some()).map(Tally::gateway),
        stages: stages.as_ref().map(StageRecorder::wire_stages).unwrap_or_default(),
    });
    let mut record = PipelineRecord {
        parameters,
        measured_s: measured_ns as f64 / 1e9,
        ready_s: ended.ready_ns as f64 / 1e9,
        is_cut_short: ended.is_interrupted,
        ticks_scheduled: scheduled,
        ticks_published,
        orders: from_tally(Tally::orders),
        answers: from_tally(Tally::answers),
        rejected: from_tally(Tally::rejected),
        lost: all.lost,
        wakes: all.woken,
        missed_wakes: all.missed,
        restarts: ended.master.restarts(),
        stages: stages.map_or_else(Stages::default, |stages| stages.stages()),
        wire,
        uses: uses::between(&ended.before, &ended.after, &ended.private),
        uses_s: ended.uses_ns as f64 / 1e9,
        backing_bytes: ended.master.backing_bytes().clone(),
        runs_beside: Vec::new(),
        failed: ended.failed.iter().cloned().collect(),
        warnings: Vec::new(),
    };
    record.warnings = warnings(&record, ended, thread::available_parallelism().ok().map(usize::from));
    record
}

/// Ticks by rate and duration, if md did not report the size of its schedule.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "both are checked to be above 0")]
fn by_rate(parameters: &PipelineParameters) -> u64 {
    (parameters.rate_per_s * parameters.duration_s).floor() as u64
}

fn warnings(record: &PipelineRecord, ended: &Ended, cpus: Option<usize>) -> Vec<String> {
    let mut warnings = of_figures(record, cpus);
    warnings.extend(record.wire.iter().flat_map(WireRecord::doubts));
    warnings.extend(shared_cpu(record));
    if ended.is_interrupted {
        warnings.push("The run was stopped before md had published its schedule.".to_owned());
    }
    match ended.swapped_pages {
        Some(0) => {}
        Some(pages) => warnings.push(format!(
            "The host moved {pages} pages to or from swap during the run, so latencies include its disk: run fewer strategies, or free memory."
        )),
        None => warnings.push("It is unknown whether the host swapped: /proc/vmstat could not be read.".to_owned()),
    }
    let unlocked = ended.master.unlocked_bytes();
    if unlocked > 0 {
        warnings.push(format!(
            "{} KiB of the pipeline's memory are not locked and may be swapped out: raise the limit on locked memory (ulimit -l, LimitMEMLOCK=).",
            unlocked >> 10
        ));
    }
    let all = ended.master.nodes().iter().fold(Figures::default(), |all, node| all.plus(node.figures));
    for (count, said) in [
        (
            all.uncredited,
            "orders were not sent, because td had no room for them; their strategies were notified",
        ),
        (
            all.conflated,
            "unread quotes were replaced by newer ones, for readers that asked for the latest only",
        ),
        (all.evicted, "times a reader that was too far behind was evicted and reconnected"),
    ] {
        if count > 0 {
            warnings.push(format!("{count} {said}."));
        }
    }
    let forced = ended.stopped.terminated + ended.stopped.killed;
    if forced > 0 {
        warnings.push(format!("{forced} processes did not end on request and were killed."));
    }
    warnings.extend(ended.incidents.iter().map(|incident| format!("During the run: {incident}.")));
    warnings
}

/// A role that is pinned to the CPU of the exchange.
fn shared_cpu(record: &PipelineRecord) -> Option<String> {
    let cpu = record.wire.as_ref()?.gateway.as_ref()?.exchange_cpu?;
    let (role, _) = record.parameters.pins.iter().find(|(_, cpus)| cpus.contains(&cpu))?;
    Some(format!(
        "{role} and the exchange are pinned to CPU {cpu}, so each waits for the other: the figures are meaningless."
    ))
}

/// What the figures themselves say against the run. `None` CPUs of this process: unknown.
pub(super) fn of_figures(record: &PipelineRecord, cpus: Option<usize>) -> Vec<String> {
    let mut warnings = Vec::new();
    let spinners = spinning(&record.parameters);
    if let Some(cpus) = cpus.filter(|cpus| u64::from(spinners) > u64::try_from(*cpus).unwrap_or(u64::MAX))
        && spinners > 0
    {
        warnings.push(format!(
            "{spinners} processes spin on {cpus} CPUs: they take CPU time from each other, so latencies measure the scheduler. Run in parked mode, or on more CPUs."
        ));
    }
    if record.is_late() {
        warnings.push(format!(
            "md published {} of {} scheduled ticks, so latencies from the write hide the delay of the others: use tick to order from the due time.",
            record.ticks_published, record.ticks_scheduled
        ));
    }
    if record.orders != record.answers {
        warnings.push(format!("td read {} orders and answered {}.", record.orders, record.answers));
    }
    if record.lost > 0 {
        warnings.push(format!(
            "{} records were lost because readers were too slow: no figure includes them.",
            record.lost
        ));
    }
    if record.missed_wakes > 0 {
        warnings.push(format!(
            "{} wakes were missed until the safety net woke the reader: a publisher died or was stopped before the wake, or lowlat has a bug.",
            record.missed_wakes
        ));
    }
    if record.restarts > 0 {
        warnings.push(format!("{} processes died and were restarted.", record.restarts));
    }
    for used in record.uses.iter().filter(|used| used.major_faults > 0) {
        warnings.push(format!(
            "{} read {} pages from a disk while quotes were published.",
            used.role, used.major_faults
        ));
    }
    warnings
}
