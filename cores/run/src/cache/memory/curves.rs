//! Time of a load by size, by load and by the number of chases, on the first node that has CPUs and memory.

use super::{
    FIGURE, MeasuredPath, MemoryError, MemoryOptions, MemoryRoom,
    buffer::{Buffer, Chase, Line},
    load::{Act, Bench, Chaser},
    others, words,
};
use lowlat_cache::memory::{ByChains, ByPause, BySize, MemoryRecord, NodePlan, Pages};
use lowlat_host::{CpuId, CpuSet, topology::Topology};
use std::time::Duration;

/// Smallest size: any first-level cache holds it.
const BYTES_MIN: u64 = 16 << 10;
/// Pauses of the readers, in nanoseconds.
const PAUSES_NS: [u64; 6] = [10_000, 3_000, 1_000, 300, 100, 0];
/// Time of a figure by size: there are many.
const FIGURE_BY_SIZE: Duration = Duration::from_millis(5);

/// Buffers with a ring of each size, and where they are chased.
pub struct Curves {
    cpu: CpuId,
    buffers: Vec<(Pages, Buffer)>,
    sizes: Vec<u64>,
    /// Bytes up to which a ring is followed once before it is measured, so that its lines are where they fit.
    warm_bytes: u64,
}

impl Curves {
    /// Fills the buffers, and adds what is left out to the record; `say` returns true to end.
    pub fn new(
        room: &mut MemoryRoom<'_>,
        record: &mut MemoryRecord,
        options: &MemoryOptions,
        say: &mut dyn FnMut(String) -> bool,
    ) -> Self {
        let of_node = |node: &NodePlan| {
            let memory = record.memory.nodes.iter().find(|memory| memory.node == node.node)?;
            Some((node.clone(), memory.clone()))
        };
        let mut curves = Self { cpu: 0, buffers: Vec::new(), sizes: Vec::new(), warm_bytes: 0 };
        let Some((plan, memory)) = record.plan.nodes.iter().find_map(of_node) else { return curves };
        curves.cpu = plan.cpus.lowest().unwrap_or(0);
        curves.warm_bytes = plan.llc_bytes.known().copied().unwrap_or(record.plan.chased_bytes);
        let largest = options.largest_bytes.max(BYTES_MIN).checked_next_power_of_two().unwrap_or(u64::MAX);
        curves.sizes = if options.has_curves {
            std::iter::successors(Some(BYTES_MIN), |bytes| bytes.checked_mul(2))
                .take_while(|bytes| *bytes <= largest)
                .collect()
        } else {
            vec![largest]
        };
        for pages in [Pages::Small, Pages::Huge] {
            if say(format!("filling {} MiB of {}", largest >> 20, words(pages))) {
                break;
            }
            match room.fill(&memory, (&curves.sizes, 0), pages) {
                Ok(buffer) => curves.buffers.push((pages, buffer)),
                Err(why) => record.left_out.push(format!("Time by size: {why}")),
            }
        }
        let sizes = &curves.sizes;
        record.by_size = curves
            .buffers
            .iter()
            .flat_map(|(pages, _)| {
                sizes.iter().map(|bytes| BySize { bytes: *bytes, pages: *pages, ns: Vec::new() })
            })
            .collect();
        curves
    }

    /// Measures one round by size.
    pub fn by_size(&mut self, bench: &Bench<'_>, points: &mut [BySize]) -> Result<(), MemoryError> {
        let mut points = points.iter_mut();
        for (_, buffer) in &mut self.buffers {
            let (rings, _) = buffer.split();
            for (ring, bytes) in rings.into_iter().zip(&self.sizes) {
                let warm_steps = if *bytes <= self.warm_bytes { ring.len() } else { 0 };
                let chaser = Chaser {
                    cpu: self.cpu,
                    chase: &mut ring.chase::<1>(),
                    warm_steps,
                    figure: FIGURE_BY_SIZE,
                };
                let time = bench.chase(chaser)?;
                if let Some(point) = points.next() {
                    point.ns.push(time.ns);
                }
            }
        }
        Ok(())
    }
}

/// Maximum number of chases at once.
const CHAINS_MAX: usize = 32;

/// A node's own memory in small pages: curves by load and by the number of chases.
pub struct OwnMemory<'a> {
    /// Index of its path among the ways.
    pub way: usize,
    cpu: CpuId,
    /// CPUs that read during a chase.
    others: CpuSet,
    chase: Chase<'a, 1>,
    chases: Chase<'a, CHAINS_MAX>,
}

impl<'a> OwnMemory<'a> {
    /// The first of these paths that stays on its node.
    pub fn among(ways: &[MeasuredPath<'a>], topology: &Topology) -> Option<Self> {
        let is_own = |way: &MeasuredPath<'_>| way.path.pages == Pages::Small && way.path.from == way.path.to;
        let place = ways.iter().position(is_own)?;
        let way = ways.get(place)?;
        Some(Self {
            way: place,
            cpu: way.path.cpus.lowest()?,
            others: others(topology, &way.path.cpus),
            chase: way.chase,
            chases: way.chase.ring().chase(),
        })
    }

    pub fn round(
        &mut self,
        bench: &Bench<'_>,
        field: &mut [Line],
        record: &mut MemoryRecord,
    ) -> Result<(), MemoryError> {
        if !self.others.is_empty() {
            if record.by_pause.is_empty() {
                record.by_pause =
                    PAUSES_NS.map(|pause_ns| ByPause { pause_ns, ..ByPause::default() }).to_vec();
            }
            for point in &mut record.by_pause {
                let mut chaser =
                    Chaser { cpu: self.cpu, chase: &mut self.chase, warm_steps: 0, figure: FIGURE };
                let pause = Duration::from_nanos(point.pause_ns);
                let (time, bytes_per_s) = bench.chase_beside(&mut chaser, &self.others, field, pause)?;
                point.times.push(time);
                point.bytes_per_s.push(bytes_per_s);
            }
        }
        let figures = [
            self.chases::<1>(bench, field)?,
            self.chases::<2>(bench, field)?,
            self.chases::<4>(bench, field)?,
            self.chases::<8>(bench, field)?,
            self.chases::<16>(bench, field)?,
            self.chases::<CHAINS_MAX>(bench, field)?,
        ];
        for (chains, ns) in figures {
            match record.by_chains.iter_mut().find(|point| point.chains == chains) {
                Some(point) => point.ns.push(ns),
                None => record.by_chains.push(ByChains { chains, ns: vec![ns] }),
            }
        }
        Ok(())
    }

    /// `N`, and the time of a load where so many chases go on.
    fn chases<const N: usize>(
        &self,
        bench: &Bench<'_>,
        field: &mut [Line],
    ) -> Result<(u32, f64), MemoryError> {
        // Lines that the chases before have loaded must leave the caches.
        bench.throughput(&CpuSet::of(self.cpu), field, Act::Read, FIGURE)?;
        let mut chase = self.chases.some::<N>();
        let time = bench.chase(Chaser { cpu: self.cpu, chase: &mut chase, warm_steps: 0, figure: FIGURE })?;
        Ok((u32::try_from(N).unwrap_or(u32::MAX), time.ns))
    }
}
