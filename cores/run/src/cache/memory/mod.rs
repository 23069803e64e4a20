//! Measures latency and bandwidth of memory between nodes.

mod buffer;
mod curves;
mod load;

use buffer::{Buffer, Chase, Line};
use curves::{Curves, OwnMemory};
use load::{Act, Bench, Chaser};
use lowlat_cache::memory::{MemoryPath, MemoryPlan, MemoryRecord, MemoryRound, NodePlan, Pages, median};
use lowlat_host::printable::without_hint;
use lowlat_host::{CpuSet, HostSnapshot, memory::NodeMemory, topology::Topology};
use lowlat_host_run::affinity::AffinityError;
use lowlat_host_run::{Root, control_group, snapshot::memory_nodes};
use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};
use thiserror::Error;

/// Share of the available memory that all buffers may take.
const ROOM_PER_BUFFERS: u64 = 2;
/// Time of each figure of a round.
const FIGURE: Duration = Duration::from_millis(20);
/// Share of a buffer that must be in huge pages for its figures to count as theirs.
const HUGE_SHARE_MIN: f64 = 0.9;

/// Error that prevents a measurement.
#[derive(Debug, Error)]
pub enum MemoryError {
    /// A thread could not run on its CPU.
    #[error("{0}\nhint: choose others with --cpus")]
    Cpu(AffinityError),
    /// The sizes of buffers do not fit into 64 bits.
    #[error("cannot plan buffers: their size is beyond 64 bits\nhint: choose one with --buffer")]
    Size,
}

#[derive(Debug, Clone)]
pub struct MemoryOptions {
    /// CPUs that may read.
    pub cpus: CpuSet,
    /// Size of each buffer; by the size of the caches if `None`.
    pub buffer_bytes: Option<u64>,
    /// Size up to which huge and small pages are compared.
    pub largest_bytes: u64,
    pub rounds: u32,
    /// Time by size, by load and by the number of chases is measured too.
    pub has_curves: bool,
}

/// A path to measure, with its buffer and its chase.
struct MeasuredPath<'a> {
    path: MemoryPath,
    /// Index of its buffer among all.
    buffer: usize,
    chase: Chase<'a, 1>,
    /// It could not be measured further.
    is_over: bool,
}

/// Returns what would be measured, without measuring it.
///
/// # Errors
/// [`MemoryError::Size`].
pub fn plan(root: &Root, host: &HostSnapshot, options: &MemoryOptions) -> Result<MemoryRecord, MemoryError> {
    let plan =
        MemoryPlan::of(&host.topology, &options.cpus, options.buffer_bytes).ok_or(MemoryError::Size)?;
    Ok(MemoryRecord { memory: memory_nodes(root, &host.topology), plan, ..MemoryRecord::default() })
}

/// Measures every path of the host for some rounds. Ends early, with what it has, when `stop` is raised. Calls
/// `say` with each step of the work, for a line of progress.
///
/// # Errors
/// [`MemoryError::Size`].
pub fn run(
    root: &Root,
    host: &HostSnapshot,
    options: &MemoryOptions,
    stop: &AtomicBool,
    say: &mut dyn FnMut(String),
) -> Result<MemoryRecord, MemoryError> {
    let bench = Bench::new(root);
    let mut record = plan(root, host, options)?;
    let mut space = MemoryRoom::read(root, host, record.memory.nodes.len());
    record.left_out.extend(space.unknown.take());
    // Relaxed, here and below: set by the signal handler; orders nothing.
    let is_stopped = || stop.load(Ordering::Relaxed);
    let mut filled = Vec::new();
    for node in &record.memory.nodes {
        for pages in [Pages::Small, Pages::Huge] {
            say(format!("filling memory of node {}", node.node));
            if is_stopped() {
                return Ok(record);
            }
            match space.fill(node, (&[record.plan.chased_bytes], record.plan.read_bytes), pages) {
                Ok(buffer) => filled.push((node.node, pages, buffer)),
                Err(why) => record.left_out.push(why),
            }
        }
    }
    if filled.is_empty() {
        return Ok(record);
    }
    let mut curves = Curves::new(&mut space, &mut record, options, &mut |text| {
        say(text);
        is_stopped()
    });
    let (mut ways, mut fields) = (Vec::new(), Vec::new());
    for (to, pages, buffer) in &mut filled {
        let huge_share = buffer.huge_share;
        let (rings, field) = buffer.split();
        for ring in rings {
            let path = |from: &NodePlan| MemoryPath {
                from: from.node,
                cpus: from.cpus.clone(),
                to: *to,
                pages: *pages,
                huge_share,
                rounds: Vec::new(),
            };
            let way = |from| MeasuredPath {
                path: path(from),
                buffer: fields.len(),
                chase: ring.chase(),
                is_over: false,
            };
            ways.extend(record.plan.nodes.iter().map(way));
        }
        fields.push(field);
    }
    let mut own = options.has_curves.then(|| OwnMemory::among(&ways, &host.topology)).flatten();
    let mut waited = Vec::new();
    for number in 0..options.rounds {
        say(format!("measuring round {} of {}", number + 1, options.rounds));
        // Each round starts with another path, so that slow changes of the host do not favour one.
        let count = ways.len().max(1);
        for at in 0..ways.len() {
            if is_stopped() {
                break;
            }
            let Some(way) = ways.get_mut((at + number as usize) % count) else { continue };
            let Some(field) = fields.get_mut(way.buffer) else { continue };
            if way.is_over {
                continue;
            }
            match round(&bench, &host.topology, way, field) {
                Ok(round) => way.path.rounds.push(round),
                // A CPU that went offline ends its node's paths only.
                Err(error) => {
                    way.is_over = true;
                    let (from, to) = (way.path.from, way.path.to);
                    record.left_out.push(format!(
                        "Node {from} to node {to}, {}: ended in round {}: {}.",
                        words(way.path.pages),
                        number + 1,
                        without_hint(&error)
                    ));
                }
            }
        }
        if is_stopped() {
            break;
        }
        let mut measured = curves.by_size(&bench, &mut record.by_size);
        if let Some(own) = own.as_mut().filter(|_| measured.is_ok())
            && let Some(field) = ways.get(own.way).and_then(|way| fields.get_mut(way.buffer))
        {
            measured = own.round(&bench, field, &mut record);
        }
        if let Err(error) = measured {
            let why = without_hint(&error);
            record.left_out.push(format!("Curves, round {}: {why}.", number + 1));
        }
        waited.extend(bench.waited_share());
    }
    record.waited_share = median(waited).map(|of| of.median);
    record.paths = ways.into_iter().map(|way| way.path).filter(|path| !path.rounds.is_empty()).collect();
    Ok(record)
}

/// Memory that buffers may still take.
struct MemoryRoom<'a> {
    root: &'a Root,
    /// Number of nodes with memory.
    nodes: usize,
    /// Bytes that are left, and what limits them.
    left: Option<(u64, &'static str)>,
    /// A limit that could not be read: a sentence.
    unknown: Option<String>,
}

impl<'a> MemoryRoom<'a> {
    fn read(root: &'a Root, host: &HostSnapshot, nodes: usize) -> Self {
        let group = control_group::memory_left_bytes(root);
        let unknown = group.missing_in_words().filter(|_| !group.is_absent()).map(|why| {
            format!("The limit of this process's control group was not read ({why}): if it is small, the kernel may end the run.")
        });
        let bounds = [
            (group.into_known().flatten(), "its control group leaves"),
            (host.memory.available_bytes.known().copied(), "the host has available"),
        ];
        let bounds = bounds.into_iter().filter_map(|(bytes, what)| Some((bytes? / ROOM_PER_BUFFERS, what)));
        Self { root, nodes, left: bounds.min_by_key(|(bytes, _)| *bytes), unknown }
    }

    /// Fills a buffer on a node, or says in a sentence why there is none.
    fn fill(
        &mut self,
        node: &NodeMemory,
        (rings, rest): (&[u64], u64),
        pages: Pages,
    ) -> Result<Buffer, String> {
        let id = node.node;
        // Only a curve has no lines to read.
        let option = if rest == 0 { "--largest" } else { "--buffer" };
        let bytes = rings.iter().fold(rest, |sum, ring| sum.saturating_add(*ring));
        let of_node =
            node.available_bytes.known().map(|bytes| (bytes / ROOM_PER_BUFFERS, "it has available"));
        let least = [self.left, of_node].into_iter().flatten().min_by_key(|(bytes, _)| *bytes);
        if let Some((left, what)) = least.filter(|(left, _)| *left < bytes) {
            return Err(format!(
                "Node {id}, {}: not measured, because a buffer takes {} MiB, and {} MiB are left of the half that all \
                 buffers may take of what {what}. Choose a smaller one with {option}.",
                words(pages),
                bytes >> 20,
                left >> 20,
            ));
        }
        // On one node all memory is its own, also on a kernel without NUMA.
        let bound = (self.nodes > 1).then_some(id);
        let buffer = Buffer::new(self.root, bound, rings, rest, pages)
            .map_err(|error| format!("Node {id}, {}: not measured: {error}.", words(pages)))?;
        if pages == Pages::Huge && buffer.huge_share < HUGE_SHARE_MIN {
            return Err(format!(
                "Node {id}, huge pages: not measured, because the kernel gave {:.0} % of {} MiB in huge pages (/sys/kernel/mm/transparent_hugepage/enabled, free memory in one piece).",
                buffer.huge_share * 100.0,
                bytes >> 20
            ));
        }
        if let Some((left, _)) = &mut self.left {
            *left = left.saturating_sub(bytes);
        }
        Ok(buffer)
    }
}

fn words(pages: Pages) -> &'static str {
    match pages {
        Pages::Small => "small pages",
        Pages::Huge => "huge pages",
    }
}

/// All figures of a path, one after the other.
fn round(
    bench: &Bench<'_>,
    topology: &Topology,
    way: &mut MeasuredPath<'_>,
    field: &mut [Line],
) -> Result<MemoryRound, MemoryError> {
    let cpus = &way.path.cpus;
    let Some(first) = cpus.lowest() else { return Ok(MemoryRound::default()) };
    let others = others(topology, cpus);
    let mut beside = |cpus: &CpuSet| {
        let mut chaser = Chaser { cpu: first, chase: &mut way.chase, warm_steps: 0, figure: FIGURE };
        bench.chase_beside(&mut chaser, cpus, field, Duration::ZERO).map(|(time, _)| time)
    };
    let idle = beside(&CpuSet::new())?;
    let loaded = if others.is_empty() { None } else { Some(beside(&others)?) };
    let mut together = |act| bench.throughput(cpus, field, act, FIGURE);
    Ok(MemoryRound {
        idle,
        loaded,
        read_bytes_per_s: together(Act::Read)?,
        write_bytes_per_s: together(Act::Write)?,
        copy_bytes_per_s: together(Act::Copy)?,
    })
}

/// CPUs that read while the first one chases. A sibling would take from the core of the chasing CPU, not its memory.
fn others(topology: &Topology, cpus: &CpuSet) -> CpuSet {
    cpus.lowest().map_or_else(CpuSet::new, |first| cpus.difference(&topology.siblings(first)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowlat_host::Reading;
    use lowlat_host_run::affinity;
    use lowlat_host_run::snapshot::read_without_knobs;

    fn options(rounds: u32, has_curves: bool) -> MemoryOptions {
        MemoryOptions {
            cpus: affinity::current().unwrap(),
            buffer_bytes: Some(8 << 20),
            largest_bytes: 32 << 20,
            rounds,
            has_curves,
        }
    }

    #[test]
    fn every_path_and_curve_has_every_round() {
        let root = Root::live();
        let host = read_without_knobs(&root);
        let record = run(&root, &host, &options(3, true), &AtomicBool::new(false), &mut |_| {}).unwrap();
        assert!(!record.paths.is_empty(), "{:?}", record.left_out);
        for path in &record.paths {
            assert_eq!(path.rounds.len(), 3);
            for round in &path.rounds {
                assert!(round.idle.ns > 0.0, "{round:?}");
                for figure in [round.read_bytes_per_s, round.write_bytes_per_s, round.copy_bytes_per_s] {
                    assert!(figure > 0.0, "{round:?}");
                }
                assert_eq!(round.loaded.is_some(), !others(&host.topology, &path.cpus).is_empty());
            }
        }
        assert!(record.by_size.iter().all(|point| point.ns.len() == 3), "{:?}", record.by_size);
        assert_eq!(record.by_chains.len(), 6, "{:?}", record.left_out);
        assert!(record.by_chains.iter().all(|point| point.ns.len() == 3), "{:?}", record.by_chains);
        assert!(record.by_pause.iter().all(|point| point.times.len() == 3), "{:?}", record.by_pause);
        // The first-level cache is faster than memory on any processor, busy or not.
        let ns = |at: &lowlat_cache::memory::BySize| median(at.ns.clone()).unwrap().median;
        let small = record.by_size.iter().filter(|point| point.pages == Pages::Small);
        let small: Vec<f64> = small.map(ns).collect();
        assert!(small.is_empty() || small.last() > small.first(), "{small:?}");
    }

    /// A host with this much available memory, in a control group that leaves this much.
    fn room(available: u64, group: Option<u64>) -> MemoryRoom<'static> {
        let mut files = vec![("/proc/self/cgroup".to_owned(), b"0::/desk\n".to_vec())];
        if let Some(bytes) = group {
            let limit = format!("{}\n", bytes + 4_096);
            files.push(("/sys/fs/cgroup/desk/memory.max".to_owned(), limit.into_bytes()));
            files.push(("/sys/fs/cgroup/desk/memory.current".to_owned(), b"4096\n".to_vec()));
        }
        let root = Box::leak(Box::new(Root::in_memory("test", files)));
        let mut host = HostSnapshot::default();
        host.memory.available_bytes = Reading::Known(available);
        MemoryRoom::read(root, &host, 1)
    }

    #[test]
    fn what_has_no_room_is_left_out_with_a_reason() {
        let node = |bytes| NodeMemory { available_bytes: Reading::Known(bytes), ..NodeMemory::default() };
        let why = |mut room: MemoryRoom<'_>, node: &NodeMemory| {
            room.fill(node, (&[4 << 20], 4 << 20), Pages::Small).err().unwrap_or_default()
        };
        let full = why(room(1 << 40, None), &node(1 << 20));
        assert!(full.contains("0 MiB are left") && full.contains("--buffer"), "{full}");
        let limited = why(room(1 << 40, Some(10 << 20)), &node(1 << 40));
        assert!(
            limited.contains("5 MiB are left of the half") && limited.contains("control group"),
            "{limited}"
        );
        assert!(why(room(12 << 20, None), &node(1 << 40)).contains("6 MiB are left"));
        // Each buffer leaves less for the next.
        let mut room = room(40 << 20, None);
        let node = node(1 << 40);
        assert!(room.fill(&node, (&[4 << 20], 4 << 20), Pages::Small).is_ok());
        assert!(room.fill(&node, (&[4 << 20], 4 << 20), Pages::Small).is_ok());
        assert!(room.fill(&node, (&[4 << 20], 4 << 20), Pages::Small).is_err());
    }

    #[test]
    fn a_limit_that_cannot_be_read_is_told() {
        let files = [("/proc/self/cgroup", "0::/desk\n"), ("/sys/fs/cgroup/desk/memory.max", "much\n")];
        let files = files.map(|(path, text)| (path.to_owned(), text.as_bytes().to_vec()));
        let room = MemoryRoom::read(
            Box::leak(Box::new(Root::in_memory("test", files))),
            &HostSnapshot::default(),
            1,
        );
        assert!(room.unknown.unwrap().contains("was not read"));
    }

    #[test]
    fn a_run_that_is_stopped_at_once_measured_nothing() {
        let root = Root::live();
        let host = read_without_knobs(&root);
        let record = run(&root, &host, &options(1, false), &AtomicBool::new(true), &mut |_| {});
        assert_eq!(record.unwrap().paths, []);
    }
}
