//! Results of a run.

use super::{
    plan,
    tally::{self, Tally},
    uses,
    watch::EndedRun,
};
use crate::{master::Master, stages::StageRecorder};
use lowlat_ipc::region::Memfd;
use lowlat_node::{
    COUNT_MAX, Figures, MD_STREAM, Received, TD_STREAM, Wait,
    ledger::{self, Ledger, Totals},
};
use lowlat_pipeline::{
    Balance, Delivered, PipelineOptions, PipelineParameters, PipelineRecord, ProcessRole, QuoteOverrun,
    SentOrders, Stages, WireRecord, check::spinning,
};
use std::{sync::Arc, thread};

/// CPUs that others may keep busy before the run's figures are in doubt.
const OTHERS_BUSY_MAX: f64 = 0.25;

/// All results, with doubts about them.
pub(super) fn record(
    parameters: &PipelineParameters,
    asked: &PipelineOptions,
    ended: &EndedRun<'_>,
) -> PipelineRecord {
    let nodes = ended.watch.master.nodes();
    let all = nodes.iter().fold(Figures::default(), |all, node| all.plus(node.figures));
    let tally = |area| ended.watch.master.area(area).cloned().and_then(Tally::new);
    let (md_tally, td_tally) = (tally(tally::MD_AREA), tally(tally::TD_AREA));
    let stages = ended.watch.master.area("stages").cloned().and_then(StageRecorder::new);
    let totals = totals(&ended.watch.master);
    let balance = balance(parameters, asked, ended, td_tally.as_ref());
    let scheduled = md_tally.as_ref().and_then(Tally::scheduled);
    let measured_ns = md_tally.as_ref().and_then(Tally::published_ns).unwrap_or(ended.elapsed_ns);
    let ticks_published = balance.quotes.published;
    let mut parameters = parameters.clone();
    if asked.feed.is_some() {
        parameters.rate_per_s =
            if measured_ns == 0 { 0.0 } else { ticks_published as f64 / (measured_ns as f64 / 1e9) };
    }
    // A feed has no schedule; its missing quotes are counted apart.
    let scheduled = if asked.feed.is_some() || parameters.is_endless() {
        ticks_published
    } else {
        scheduled.unwrap_or_else(|| by_rate(&parameters))
    };
    if parameters.is_endless() {
        parameters.duration_s = ticks_published as f64 / parameters.rate_per_s.max(f64::MIN_POSITIVE);
    }
    let wire = (asked.feed.is_some() || asked.gateway.is_some()).then(|| WireRecord {
        feed: md_tally.as_ref().filter(|_| asked.feed.is_some()).map(Tally::feed_figures),
        gateway: td_tally.as_ref().filter(|_| asked.gateway.is_some()).map(Tally::gateway),
        stages: stages.as_ref().map(StageRecorder::wire_stages).unwrap_or_default(),
    });
    let uses = uses::between(&ended.before, &ended.after, &ended.private);
    let uses_s = ended.uses_ns as f64 / 1e9;
    let mut record = PipelineRecord {
        parameters,
        measured_s: measured_ns as f64 / 1e9,
        ready_s: ended.watch.ready_ns as f64 / 1e9,
        is_cut_short: ended.is_interrupted,
        ticks_scheduled: scheduled,
        ticks_published,
        orders: balance.sent(),
        answers: totals.answered,
        rejected: totals.rejected,
        lost: all.lost,
        wakes: all.woken,
        missed_wakes: all.missed,
        restarts: ended.watch.master.restarts(),
        stages: stages.map_or_else(Stages::default, |stages| stages.stages()),
        wire,
        others_cpu_s: uses::others_cpu_s(ended.idle, uses_s, &uses),
        uses,
        uses_s,
        backing_bytes: ended.watch.master.backing_bytes().clone(),
        runs_beside: Vec::new(),
        failed: ended.watch.failed.iter().cloned().collect(),
        balance,
        findings: Vec::new(),
        warnings: Vec::new(),
    };
    record.findings = lowlat_pipeline::findings(&record);
    record.warnings = warnings(&record, ended, thread::available_parallelism().ok().map(usize::from));
    if asked.is_stepped() {
        record.warnings.push(
            "The run's time was that of the recording, and stood still while a node worked: latencies were not measured."
                .to_owned(),
        );
    }
    record
}

/// td's ledger; `None` if the master has none.
fn look(master: &Master) -> Option<Ledger<Arc<Memfd>>> {
    Ledger::look(Arc::clone(master.area(ledger::AREA)?)).ok()
}

/// Answers of td in all, from its ledger.
pub(super) fn totals(master: &Master) -> Totals {
    look(master).map_or_else(Totals::default, |ledger| ledger.totals())
}

/// Records of a node's stream; `None` if it has none, or its memory holds what nobody can have written.
fn in_stream(master: &Master, number: u32) -> Option<u64> {
    master.published(number).filter(|count| *count <= COUNT_MAX)
}

fn delivered(master: &Master, name: &str, of: fn(&Figures) -> Received) -> Delivered {
    let nodes = master.nodes();
    let writer = nodes.iter().find(|node| node.name == name);
    let published = writer.and_then(|node| in_stream(master, node.number)).unwrap_or(0);
    let of = nodes.iter().filter(|node| node.is_sender).map(|node| of(&node.figures));
    let (received, lost) = of.fold((0, 0), |(read, lost), more| (read + more.read, lost + more.lost));
    Delivered { published, received, lost }
}

/// True if strategies have everything that md and td published. Quotes count where none is passed over.
pub(super) fn has_arrived(master: &Master, overrun: QuoteOverrun) -> bool {
    let quotes = || delivered(master, MD_STREAM, |figures| figures.quotes);
    let answers = delivered(master, TD_STREAM, |figures| figures.answers);
    answers.has_arrived() && (overrun != QuoteOverrun::Gap || quotes().has_arrived())
}

/// Returns the records sent, from the memory of the streams, and those that arrived, from td's ledger and the counters
/// of strategies.
fn balance(
    parameters: &PipelineParameters,
    asked: &PipelineOptions,
    ended: &EndedRun<'_>,
    td: Option<&Tally<Arc<Memfd>>>,
) -> Balance {
    let master = &ended.watch.master;
    let nodes = master.nodes();
    let ledger = look(master);
    let totals = ledger.as_ref().map(Ledger::totals).unwrap_or_default();
    // The records of a stream are counted in its writer's memory too.
    let in_stream = |number| in_stream(master, number);
    let overwritten = nodes.iter().filter(|node| {
        node.figures.implausible > 0 || master.published(node.number).is_some_and(|count| count > COUNT_MAX)
    });
    let senders: Vec<_> = nodes.iter().filter(|node| node.is_sender).collect();
    // Those that spin follow md's stream, and count whatever they lost of it.
    let spins = plan::wait(ProcessRole::Strategies, parameters) == Wait::Fast;
    let counts_others = spins && senders.iter().any(|node| node.figures.quotes.lost > 0);
    let [orders_foreign, not_orders] = td.map_or([0; 2], Tally::refused);
    Balance {
        quotes: delivered(master, MD_STREAM, |figures| figures.quotes),
        answers: delivered(master, TD_STREAM, |figures| figures.answers),
        compares_deliveries: asked.overrun == QuoteOverrun::Gap
            && !counts_others
            && asked.instruments(parameters) == parameters.strategies
            && ended.watch.moved_out.is_empty()
            && ended.watch.own.is_empty()
            && senders.iter().all(|node| master.has_program(&node.name)),
        fills: totals.fills,
        cancelled: totals.cancelled,
        orders_foreign,
        not_orders,
        senders: senders
            .iter()
            .map(|node| SentOrders {
                name: node.name.clone(),
                sent: in_stream(node.number).unwrap_or(0),
                answered: ledger.as_ref().map_or(0, |ledger| ledger.answered_of(node.number)),
                unsent: node.figures.uncredited,
            })
            .collect(),
        implausible: overwritten.map(|node| node.name.clone()).collect(),
    }
}

/// Ticks by rate and duration, if md did not report the size of its schedule.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "both are checked to be above 0")]
fn by_rate(parameters: &PipelineParameters) -> u64 {
    (parameters.rate_per_s * parameters.duration_s).floor() as u64
}

fn warnings(record: &PipelineRecord, ended: &EndedRun<'_>, cpus: Option<usize>) -> Vec<String> {
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
    let unlocked = ended.watch.master.unlocked_bytes();
    if unlocked > 0 {
        warnings.push(format!(
            "{} KiB of the pipeline's memory are not locked and may be swapped out: raise the limit on locked memory (ulimit -l, LimitMEMLOCK=).",
            unlocked >> 10
        ));
    }
    let all = ended.watch.master.nodes().iter().fold(Figures::default(), |all, node| all.plus(node.figures));
    for (count, said) in [
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
    warnings.extend(ended.watch.incidents.iter().map(|incident| format!("During the run: {incident}.")));
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

/// Returns warnings that follow from the figures alone. `cpus` of this process: `None` if unknown.
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
    if record.has_missed_schedule() {
        warnings.push(
            "Latencies from the write hide the delay of a late md: use tick to order from the due time."
                .to_owned(),
        );
    }
    if let Some(busy) = record.others_busy().filter(|busy| *busy > OTHERS_BUSY_MAX) {
        warnings.push(format!(
            "Other programs kept {busy:.2} CPUs of this machine busy during the run: the figures are those of a shared machine."
        ));
    }
    for used in record.uses.iter().filter(|used| used.major_faults > 0) {
        warnings.push(format!(
            "{} read {} pages from a disk while quotes were published.",
            used.role, used.major_faults
        ));
    }
    warnings
}
