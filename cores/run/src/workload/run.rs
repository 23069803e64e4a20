//! Rounds of cells in random order.

use super::{
    Kind, Scale, Workload, WorkloadError,
    pace::Times,
    programs::Task,
    team::{Frame, Outcome, run as run_team},
};
use lowlat_host::{CpuId, CpuSet, topology::Topology};
use lowlat_host_run::{Root, idle_hold::IdleHold};
use lowlat_workload::{
    Cell, CellRun, Idle, Missing, Place, Purpose, Setting, WorkloadRecord, cpus_of, why_not,
};
use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

/// Part of a run before the count.
const WARM_UP_PARTS: u32 = 8;

/// Load of the host from which figures are doubtful, per CPU.
const LOAD_PER_CPU_MAX: f64 = 0.5;

/// Host and CPUs on which workloads run.
#[derive(Debug, Clone, Copy)]
pub struct WorkloadSite<'a> {
    pub root: &'a Root,
    pub topology: &'a Topology,
    /// CPUs that may be used.
    pub usable: &'a CpuSet,
}

/// Cells to be measured, and how often.
#[derive(Default)]
pub struct Order {
    pub purpose: Purpose,
    /// Workload, copies and setting of each cell.
    pub cells: Vec<(&'static Workload, u32, Setting)>,
    /// Rounds, each of every cell once.
    pub rounds: u32,
    /// Counted time of one run. Other programs run for whole seconds.
    pub time: Duration,
}

/// Measures every cell in every round. Ends early, with what it has, when `stop` is raised. Cells that cannot be
/// measured are in the record with the reason. `on_run` gets the round, from 0, and the cell that starts.
pub fn run(
    site: WorkloadSite<'_>,
    order: &Order,
    stop: &AtomicBool,
    on_run: &dyn Fn(u32, &Cell),
) -> WorkloadRecord {
    let mut record =
        WorkloadRecord { purpose: order.purpose, rounds: order.rounds, ..WorkloadRecord::default() };
    record.warnings.extend(busy(site));
    let mut workloads = Vec::new();
    for (workload, copies, setting) in &order.cells {
        if let Some(missing) = obstacle(site, order.purpose, workload, *copies, *setting) {
            if !record.missing.contains(&missing) {
                record.missing.push(missing);
            }
        } else if record.find(workload.name, *copies, *setting).is_none() {
            // A cell that was named twice is measured once.
            let mut cell = workload.cell(*copies, *setting);
            cell.cpus = cpus_for(site, workload, &cell);
            record.cells.push(cell);
            workloads.push(*workload);
        }
    }
    let mut failed = vec![false; workloads.len()];
    for round in 0..order.rounds {
        let mut places: Vec<usize> =
            (0..workloads.len()).filter(|place| failed.get(*place) == Some(&false)).collect();
        fastrand::shuffle(&mut places);
        for place in places {
            let (Some(cell), Some(workload)) = (record.cells.get(place), workloads.get(place)) else {
                continue;
            };
            // Relaxed: set by the signal handler; orders nothing.
            if stop.load(Ordering::Relaxed) {
                return finished(record);
            }
            on_run(round, cell);
            match measure(site, workload, cell, order.time, stop) {
                Ok(Some(outcome)) => record.runs.push(outcome.of(round, place)),
                Ok(None) => {}
                Err(error) => {
                    let is_new = !record.runs.iter().any(|run| usize::try_from(run.cell) == Ok(place));
                    if is_new && let Some(failed) = failed.get_mut(place) {
                        *failed = true;
                        record.missing.push(missing(cell, error.to_string()));
                    } else {
                        let sentence = format!("{}, {}: {error}.", cell.workload, cell.setting);
                        if !record.warnings.contains(&sentence) {
                            record.warnings.push(sentence);
                        }
                    }
                }
            }
        }
    }
    finished(record)
}

/// Returns a warning if other programs load the host.
fn busy(site: WorkloadSite<'_>) -> Option<String> {
    let text = site.root.read("/proc/loadavg");
    let load: f64 = text.known()?.split_whitespace().next()?.parse().ok()?;
    let is_busy = load > LOAD_PER_CPU_MAX * site.usable.len() as f64;
    is_busy.then(|| {
        format!("The host was busy: its load average was {load} at the start, so other programs took part of the CPUs.")
    })
}

/// Adds the doubts about a whole record.
fn finished(mut record: WorkloadRecord) -> WorkloadRecord {
    let counts = (0..record.cells.len())
        .map(|place| record.runs.iter().filter(|run| usize::try_from(run.cell) == Ok(place)).count());
    let counts: Vec<usize> = counts.filter(|count| *count > 0).collect();
    if counts.iter().min() != counts.iter().max() {
        record.warnings.push("Some rounds lack some runs, so ratios are over fewer rounds.".to_owned());
    }
    record
}

fn missing(cell: &Cell, why: String) -> Missing {
    Missing { workload: cell.workload.clone(), copies: Some(cell.copies), setting: Some(cell.setting), why }
}

/// Reason why a cell is not measured.
fn obstacle(
    site: WorkloadSite<'_>,
    purpose: Purpose,
    workload: &Workload,
    copies: u32,
    setting: Setting,
) -> Option<Missing> {
    if let Some(why) = workload.why_not() {
        return Some(Missing { workload: workload.name.to_owned(), why, ..Missing::default() });
    }
    let why = |why: String| Some(missing(&workload.cell(copies, setting), why));
    if site.usable.is_empty() {
        return why("no CPU can be used".to_owned());
    }
    // Cells that the user named are measured; the article's tables leave out those that cannot differ.
    if purpose != Purpose::Article {
        return None;
    }
    let processes = workload.processes(copies);
    if workload.is_program()
        && matches!(setting.place, Place::Pack | Place::Spread)
        && processes >= site.usable.len()
    {
        return why(format!("{processes} threads or processes may use every CPU anyway"));
    }
    if let Some(reason) = why_not(setting.place, site.topology, site.usable, processes) {
        return why(reason);
    }
    let is_busy = workload.keeps_cpus_busy() && processes >= site.usable.len();
    (setting.idle == Idle::None && is_busy)
        .then(|| missing(&workload.cell(copies, setting), "no CPU is idle: each has a copy".to_owned()))
}

impl Workload {
    /// True if its processes never wait.
    fn keeps_cpus_busy(&self) -> bool {
        self.unit == "blocks"
    }
}

/// The CPUs that a cell uses.
fn cpus_for(site: WorkloadSite<'_>, workload: &Workload, cell: &Cell) -> Vec<CpuId> {
    let processes = workload.processes(cell.copies);
    let cpus = cpus_of(cell.setting.place, site.topology, site.usable, processes);
    // A program gets the set, and places its threads in it as the kernel likes.
    if workload.is_program() { cpus.into_iter().collect::<CpuSet>().iter().collect() } else { cpus }
}

impl Outcome {
    fn of(self, round: u32, place: usize) -> CellRun {
        CellRun {
            round,
            cell: u32::try_from(place).unwrap_or(u32::MAX),
            per_s: self.figures.per_s,
            bytes_per_s: self.figures.bytes_per_s,
            latency: self.figures.latency,
            operations: self.figures.operations,
            elapsed_ns: self.elapsed_ns,
        }
    }
}

fn measure(
    site: WorkloadSite<'_>,
    workload: &Workload,
    cell: &Cell,
    time: Duration,
    stop: &AtomicBool,
) -> Result<Option<Outcome>, WorkloadError> {
    let _awake = match cell.setting.idle {
        Idle::Allowed => None,
        Idle::None => Some(IdleHold::new().map_err(|error| {
            WorkloadError(format!(
                "cannot keep CPUs out of idle states through /dev/cpu_dma_latency: {error}"
            ))
        })?),
    };
    let copies = usize::try_from(cell.copies).unwrap_or(usize::MAX);
    match &workload.kind {
        Kind::Processes { make, per_copy } => {
            let job = make(Scale { copies, topology: site.topology })?;
            let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
            let times = Times { warm_up_ns: ns(time / WARM_UP_PARTS), measured_ns: ns(time) };
            let (cpus, policy) = (cell.cpus.as_slice(), cell.setting.policy);
            let frame = Frame { per_copy: *per_copy, cpus, policy, times };
            run_team(&job, workload.processes(cell.copies), frame, stop)
        }
        Kind::Program { run, .. } => {
            let cpus = (!cell.cpus.is_empty()).then(|| cell.cpus.iter().copied().collect());
            let seconds = u32::try_from(time.as_millis().div_ceil(1_000)).unwrap_or(u32::MAX).max(1);
            run(&Task { copies, cpus, policy: cell.setting.policy, seconds }, stop)
        }
    }
}
