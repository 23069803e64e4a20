//! Measures latency and bandwidth of memory between nodes.

mod buffer;

use crate::{
    affinity::{self, AffinityError},
    clock::{ArchCounter, ClockError, Counter as _, TickScale, frequency_of},
    text::without_hint,
};
use buffer::{Buffer, Part};
use lowlat_cache::memory::{MemoryPath, MemoryRecord, MemoryRound, Pages};
use lowlat_host::{CpuId, CpuSet, Reading, memory::NodeMemory, topology::Topology};
use lowlat_sys::{Root, snapshot::memory_nodes};
use std::{
    sync::{
        Barrier,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};
use thiserror::Error;

/// Smallest buffer: above the caches of processors that do not tell their size.
const BUFFER_BYTES_MIN: u64 = 64 << 20;
/// Buffer for each byte of last-level cache. Half of it is chased, so a line is far out of the cache when it is next
/// loaded.
const BUFFER_PER_LLC: u64 = 4;
/// Share of a node's free memory that a buffer may take.
const FREE_PER_BUFFER: u64 = 2;
/// Huge pages of x86-64 and aarch64 with pages of 4 KiB; a buffer is a multiple of two.
const GRAIN_BYTES: u64 = 4 << 20;
/// Time of each figure of a round.
const FIGURE: Duration = Duration::from_millis(20);
/// Loads after which the time of one is estimated.
const STEPS_TO_ESTIMATE: u64 = 20_000;
/// Share of a buffer that must be in huge pages for its figures to count as theirs.
const HUGE_SHARE_MIN: f64 = 0.9;

/// Why nothing was measured.
#[derive(Debug, Error)]
pub enum MemoryError {
    /// No clock.
    #[error(transparent)]
    Clock(#[from] ClockError),
    /// A thread could not run on its CPU.
    #[error("{0}\nhint: choose others with --cpus")]
    Cpu(AffinityError),
}

/// What is measured, and how often.
#[derive(Debug, Clone)]
pub struct MemoryOptions {
    /// CPUs that may read.
    pub cpus: CpuSet,
    /// Size of each buffer; by the size of the caches if `None`.
    pub buffer_bytes: Option<u64>,
    /// Rounds.
    pub rounds: u32,
}

/// Where one path's memory is, and where its chase is.
struct Way {
    path: MemoryPath,
    /// Place of its buffer.
    buffer: usize,
    /// Place in the ring.
    place: usize,
    /// Whether it could not be measured further.
    is_over: bool,
}

/// Measures every path of the host for some rounds. Ends early, with what it has, when `stop` is raised. Calls
/// `say` with each step of the work, for a line of progress.
///
/// # Errors
/// [`MemoryError`] if there is no clock.
pub fn run(
    root: &Root,
    topology: &Topology,
    options: &MemoryOptions,
    stop: &AtomicBool,
    say: &mut dyn FnMut(String),
) -> Result<MemoryRecord, MemoryError> {
    let scale = TickScale::new(frequency_of(ArchCounter::KIND, root)?.hz);
    let llc_bytes = topology.caches.iter().filter_map(|cache| cache.size_bytes.known().copied()).max();
    let llc_bytes = llc_bytes.unwrap_or(0);
    let wanted = options.buffer_bytes.unwrap_or_else(|| (llc_bytes * BUFFER_PER_LLC).max(BUFFER_BYTES_MIN));
    let buffer_bytes = wanted.next_multiple_of(GRAIN_BYTES);
    let mut record = MemoryRecord {
        memory: memory_nodes(root, topology),
        llc_bytes,
        buffer_bytes,
        ..MemoryRecord::default()
    };
    let (mut buffers, mut ways) = (Vec::new(), Vec::new());
    for node in record.memory.nodes.clone() {
        for pages in [Pages::Small, Pages::Huge] {
            say(format!("filling memory of node {}", node.node));
            // Relaxed: set by the signal handler; orders nothing.
            if stop.load(Ordering::Relaxed) {
                return Ok(record);
            }
            match fill(root, &node, record.memory.nodes.len(), buffer_bytes, pages) {
                Ok(buffer) => {
                    let of_node = ways_to(&node, pages, &buffer, buffers.len(), topology, &options.cpus);
                    ways.extend(of_node);
                    buffers.push(buffer);
                }
                Err(why) => record.left_out.push(why),
            }
        }
    }
    for number in 0..options.rounds {
        say(format!("measuring round {} of {}", number + 1, options.rounds));
        // What changes slowly on the host must not favour one path.
        let count = ways.len().max(1);
        for at in 0..ways.len() {
            // Relaxed: as above.
            if stop.load(Ordering::Relaxed) {
                break;
            }
            let Some(way) = ways.get_mut((at + number as usize) % count) else { continue };
            let Some(buffer) = buffers.get(way.buffer) else { continue };
            if way.is_over {
                continue;
            }
            match round(&way.path.cpus, topology, buffer, scale, &mut way.place) {
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
    }
    record.paths = ways.into_iter().map(|way| way.path).filter(|path| !path.rounds.is_empty()).collect();
    Ok(record)
}

/// A buffer on a node, or a sentence that says why there is none.
fn fill(root: &Root, node: &NodeMemory, nodes: usize, bytes: u64, pages: Pages) -> Result<Buffer, String> {
    let id = node.node;
    if let Reading::Known(free) = node.free_bytes
        && free / FREE_PER_BUFFER < bytes
    {
        return Err(format!(
            "Node {id}, {}: not measured, because {} MiB of its memory are free and a buffer takes {} MiB. Choose a smaller one with --buffer.",
            words(pages),
            free >> 20,
            bytes >> 20
        ));
    }
    // On one node all memory is its own, also on a kernel without NUMA.
    let bound = (nodes > 1).then_some(id);
    let length = usize::try_from(bytes).unwrap_or(usize::MAX);
    let buffer = Buffer::new(root, bound, length, pages)
        .map_err(|error| format!("Node {id}, {}: not measured: {error}.", words(pages)))?;
    if pages == Pages::Huge && buffer.huge_share < HUGE_SHARE_MIN {
        return Err(format!(
            "Node {id}, huge pages: not measured, because the kernel gave {:.0} % of the buffer in huge pages (/sys/kernel/mm/transparent_hugepage/enabled, free memory in one piece).",
            buffer.huge_share * 100.0
        ));
    }
    Ok(buffer)
}

fn words(pages: Pages) -> &'static str {
    match pages {
        Pages::Small => "small pages",
        Pages::Huge => "huge pages",
    }
}

/// The ways from the CPUs of each node to a buffer.
fn ways_to(
    to: &NodeMemory,
    pages: Pages,
    buffer: &Buffer,
    place: usize,
    topology: &Topology,
    usable: &CpuSet,
) -> Vec<Way> {
    let nodes = topology.nodes.iter().map(|node| (node.id, node.cpus.intersection(usable)));
    let nodes = nodes.filter(|(_, cpus)| !cpus.is_empty());
    let path = |(from, cpus)| MemoryPath {
        from,
        cpus,
        to: to.node,
        pages,
        huge_share: buffer.huge_share,
        rounds: Vec::new(),
    };
    nodes.map(|node| Way { path: path(node), buffer: place, place: 0, is_over: false }).collect()
}

/// All figures of a path, one after the other.
fn round(
    cpus: &CpuSet,
    topology: &Topology,
    buffer: &Buffer,
    scale: TickScale,
    place: &mut usize,
) -> Result<MemoryRound, MemoryError> {
    let Some(first) = cpus.iter().next() else {
        return Ok(MemoryRound { idle_ns: 0.0, loaded_ns: None, bytes_per_s: 0.0 });
    };
    // A sibling would take from the chasing CPU's own core, not from its memory.
    let others = cpus.difference(&topology.siblings(first));
    let idle_ns = chase(first, buffer, place, scale)?;
    let loaded_ns = if others.is_empty() {
        None
    } else {
        Some(beside(&others, buffer, || chase(first, buffer, place, scale))?.0?)
    };
    let begun = Instant::now();
    let wait = || {
        thread::sleep(FIGURE);
        begun.elapsed()
    };
    let (_, bytes_per_s) = beside(cpus, buffer, wait)?;
    Ok(MemoryRound { idle_ns, loaded_ns, bytes_per_s })
}

/// Nanoseconds of one load on this CPU. Goes on where it ended before, so that no line is soon loaded again.
fn chase(cpu: CpuId, buffer: &Buffer, place: &mut usize, scale: TickScale) -> Result<f64, MemoryError> {
    let mut at = *place;
    let chased = || -> Result<f64, MemoryError> {
        affinity::pin_to(&CpuSet::of(cpu)).map_err(MemoryError::Cpu)?;
        let mut timed = |steps: u64| {
            let begun = ArchCounter.now();
            at = buffer.chase(at, steps);
            scale.ns(ArchCounter.now().saturating_sub(begun)).max(1)
        };
        let estimated_ns = timed(STEPS_TO_ESTIMATE);
        let figure_ns = u64::try_from(FIGURE.as_nanos()).unwrap_or(u64::MAX);
        let steps = (figure_ns * STEPS_TO_ESTIMATE / estimated_ns).max(STEPS_TO_ESTIMATE);
        Ok(timed(steps) as f64 / steps as f64)
    };
    // The thread keeps its CPU to itself: the caller's own affinity stays.
    let joined = thread::scope(|scope| scope.spawn(chased).join());
    let ns = joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
    *place = at;
    Ok(ns)
}

/// Does something while a thread on each of these CPUs reads. Returns what it gave, and the bytes per second of all
/// threads together.
fn beside<T>(cpus: &CpuSet, buffer: &Buffer, act: impl FnOnce() -> T) -> Result<(T, f64), MemoryError> {
    let readers: Vec<CpuId> = cpus.iter().collect();
    let (start, is_over) = (Barrier::new(readers.len() + 1), AtomicBool::new(false));
    let read = |cpu: CpuId, part: Option<Part<'_>>| -> Result<f64, MemoryError> {
        let pinned = affinity::pin_to(&CpuSet::of(cpu));
        // Also without its CPU, so that the others do not wait forever.
        start.wait();
        pinned.map_err(MemoryError::Cpu)?;
        let begun = Instant::now();
        // Relaxed: pairs with the store below; only its arrival matters.
        let bytes = part.map_or(0, |part| part.read_until(|| is_over.load(Ordering::Relaxed)));
        Ok(bytes as f64 / begun.elapsed().as_secs_f64().max(f64::MIN_POSITIVE))
    };
    thread::scope(|scope| {
        let mut parts = buffer.parts(readers.len()).into_iter();
        let read = &read;
        let threads: Vec<_> = readers
            .iter()
            .map(|cpu| {
                let part = parts.next();
                scope.spawn(move || read(*cpu, part))
            })
            .collect();
        start.wait();
        let result = act();
        // Relaxed: pairs with the loads of the readers.
        is_over.store(true, Ordering::Relaxed);
        let mut bytes_per_s = 0.0;
        for thread in threads {
            bytes_per_s += thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        }
        Ok((result, bytes_per_s))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowlat_sys::snapshot::read_without_knobs;

    fn options(rounds: u32) -> MemoryOptions {
        MemoryOptions { cpus: affinity::current().unwrap(), buffer_bytes: Some(8 << 20), rounds }
    }

    #[test]
    fn every_path_has_every_round() {
        let root = Root::live();
        let topology = read_without_knobs(&root).topology;
        let record = run(&root, &topology, &options(3), &AtomicBool::new(false), &mut |_| {}).unwrap();
        assert!(!record.paths.is_empty(), "{:?}", record.left_out);
        for path in &record.paths {
            assert_eq!(path.rounds.len(), 3);
            for round in &path.rounds {
                assert!(round.idle_ns > 0.0 && round.bytes_per_s > 0.0, "{round:?}");
                let has_others = path.cpus.iter().any(|cpu| {
                    let first = path.cpus.iter().next().unwrap();
                    cpu != first && !topology.siblings(first).contains(cpu)
                });
                assert_eq!(round.loaded_ns.is_some(), has_others);
            }
        }
    }

    #[test]
    fn a_node_without_room_is_left_out_with_a_reason() {
        let node = NodeMemory { free_bytes: Reading::Known(1 << 20), ..NodeMemory::default() };
        let Err(why) = fill(&Root::live(), &node, 1, 8 << 20, Pages::Small) else { panic!("filled") };
        assert!(why.contains("1 MiB of its memory are free") && why.contains("--buffer"), "{why}");
        let stopped = AtomicBool::new(true);
        let root = Root::live();
        let record = run(&root, &read_without_knobs(&root).topology, &options(1), &stopped, &mut |_| {});
        assert_eq!(record.unwrap().paths, []);
    }
}
