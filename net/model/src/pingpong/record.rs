//! Record of a ping-pong run.

use super::{
    Figures, Quantile, Scenario, Unsound,
    parts::{PartsFacts, SizeParts},
    quantile_ns,
};
use crate::xdp::XdpFacts;
use hdrhistogram::Histogram;
use lowlat_host::{
    CpuId,
    histogram::{self, HistogramError},
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Longest half round trip that a histogram tracks, in nanoseconds: an hour. Longer ones count as an hour.
const NS_MAX: u64 = 3_600_000_000_000;
/// Significant decimal digits of the histograms.
const DIGITS: u8 = 3;

/// Ratio of two controls between the same CPUs from which the figures measured around them are not comparable.
pub const CONTROL_RATIO_MAX: f64 = 1.5;

/// A figure holds up to about this many transfers between the CPUs: a control that moved by less than this part of it
/// did not move the figure by more than the rounds do.
const TRANSFERS_MAX: f64 = 50.0;

lowlat_host::measurement! {
    /// A run of ping-pong with its results.
    PingpongMeasurement { record: PingpongRecord, kind: "pingpong", command: "net pingpong" }
}

/// The raw facts of a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PingpongRecord {
    pub scenario: Scenario,
    /// The server as the user named it; empty for local transports.
    pub server_name: String,
    /// Command line of the client.
    pub command_line: String,
    pub client: EndFacts,
    pub server: EndFacts,
    /// True if both ends ran on one host.
    pub is_same_host: bool,
    /// Counter that timed the round trips.
    pub counter: String,
    pub counter_hz: u64,
    /// Percentile of [`Figures::percentile_ns`], between 0 and 100.
    pub percentile: f64,
    /// Results, in the order of measurement.
    pub sizes: Vec<SizeRecord>,
    /// Round trips of a cache line between the two CPUs, taken between sizes; empty if the ends were not pinned on one
    /// host.
    pub controls: Vec<ControlRow>,
    /// Reason why there are no controls.
    pub control_missing: Option<String>,
    /// Sources of the parts of the round trips, if they were asked for.
    pub parts: Option<PartsFacts>,
    /// Problems that make the set-up unsound.
    pub unsound: Vec<Unsound>,
    /// True if it ended before everything was measured; a warning gives the reason.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_ended_early: bool,
    /// Doubts about the figures, one sentence each.
    pub warnings: Vec<String>,
}

/// One end of a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct EndFacts {
    /// Boot id of its kernel: equal on both ends if they are on one host.
    pub boot_id: String,
    /// Release and architecture of its kernel.
    pub kernel: String,
    pub lowlat_version: String,
    /// CPU that its thread was pinned to.
    pub cpu: Option<CpuId>,
    /// CPUs that its process could use.
    pub cpus_allowed: u32,
    /// Address of its socket; empty for local transports.
    pub address: String,
    /// Id of the NIC queue that delivered the messages (SO_INCOMING_NAPI_ID). 0: none, so busy polling has no effect.
    pub napi_id: Option<u32>,
    /// Suspension of that queue's interrupts, if the waiting mode suspends them and the kernel reports it.
    pub irq_suspend: Option<IrqSuspend>,
    /// True if it held its CPUs out of idle states.
    pub holds_idle: bool,
    /// Library that replaces the kernel's sockets, if one was asked for.
    pub preload: Option<Preload>,
    /// Facts about AF_XDP, if it bypassed the kernel's network stack.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub xdp: Option<XdpFacts>,
    /// Requirements of its waiting mode that were not met, one sentence each.
    pub warnings: Vec<String>,
}

/// The NIC queue of a socket, and how long its interrupts stay suspended.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct IrqSuspend {
    pub interface: String,
    /// Its irq-suspend-timeout in nanoseconds; 0: never suspended.
    pub timeout_ns: u64,
}

/// A library in LD_PRELOAD that replaces the kernel's sockets.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Preload {
    /// Value of LD_PRELOAD, such as `libonload.so`.
    pub library: String,
    /// True if the process has mapped it. A static binary ignores LD_PRELOAD.
    pub is_loaded: bool,
    /// True if the measured socket belongs to the library; `None` if that is unknown.
    pub is_accelerated: Option<bool>,
    /// Variables of the library: `EF_POLL_USEC=100000`.
    pub variables: Vec<String>,
}

/// Results of one message size.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SizeRecord {
    pub size_bytes: u32,
    /// Columns of sfnt-pingpong; with a rate from the time when the messages were due.
    pub figures: Figures,
    /// Quantiles that the count supports, from the samples themselves.
    pub quantiles: Vec<Quantile>,
    /// Half round trips in nanoseconds: HdrHistogram V2, deflated, base64.
    pub histogram: String,
    /// With a rate: the same from the time of sending, which hides delays that a late answer causes to the next
    /// messages.
    pub from_send: Option<Figures>,
    /// Half round trips in nanoseconds in the order of sending, if the run keeps them. Documents have the histogram.
    #[serde(skip)]
    pub samples_ns: Vec<u64>,
    /// Length of the measurement of this size.
    pub elapsed_ns: u64,
    /// Messages that were lost on the way, there or back; they are in no figure.
    pub lost_count: u64,
    /// Messages that came after they had been given up, at either end; they are in no figure.
    pub late_count: u64,
    /// Messages that came again, at either end; they are in no figure.
    pub duplicate_count: u64,
    /// For how long a quota of CPU time stopped threads of the client and of the server.
    pub throttled_ns: [u64; 2],
    /// CPU time of the client's thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_cpu: Option<CpuUse>,
    /// CPU time of the server's thread, if the server reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_cpu: Option<CpuUse>,
    /// Parts of the round trips, from separate rounds with time stamps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parts: Option<SizeParts>,
}

/// CPU time of one end during the measured batches of a size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CpuUse {
    /// CPU time of the thread that passes messages. The client's excludes the time in which it spins until a scheduled
    /// message is due: an application does not.
    pub cpu_ns: u64,
    /// Total length of the measured batches.
    pub elapsed_ns: u64,
}

/// One control: the time that a cache line takes between the CPUs of both ends.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ControlRow {
    /// Sizes that had been measured before it.
    pub sizes_before: u32,
    pub client_cpu: CpuId,
    pub server_cpu: CpuId,
    /// Figures of half a round trip.
    pub figures: Figures,
}

impl SizeRecord {
    /// Returns a quantile that the count supports.
    pub fn quantile_ns(&self, quantile: f64) -> Option<u64> {
        quantile_ns(&self.quantiles, quantile)
    }

    /// Makes the record from samples of half round trips, which it sorts.
    pub fn of(size_bytes: u32, samples_ns: &mut [u64], percentile: f64, elapsed_ns: u64) -> Option<Self> {
        let figures = Figures::of(samples_ns, percentile)?;
        Some(Self {
            size_bytes,
            figures,
            quantiles: Figures::quantiles(samples_ns),
            histogram: encoded(samples_ns),
            elapsed_ns,
            ..Self::default()
        })
    }

    /// Decodes the histogram.
    ///
    /// # Errors
    /// [`HistogramError`] if the document is damaged.
    pub fn half_round_trips(&self) -> Result<Histogram<u64>, HistogramError> {
        histogram::decode(&self.histogram)
    }
}

impl CpuUse {
    /// Share of one CPU, 0 to 1; `None` without time.
    pub fn share(&self) -> Option<f64> {
        (self.elapsed_ns > 0).then(|| (self.cpu_ns as f64 / self.elapsed_ns as f64).min(1.0))
    }

    pub fn add(&mut self, batch: Self) {
        // The server's numbers come over the network.
        self.cpu_ns = self.cpu_ns.saturating_add(batch.cpu_ns);
        self.elapsed_ns = self.elapsed_ns.saturating_add(batch.elapsed_ns);
    }
}

impl PingpongRecord {
    /// Ratio of the slowest to the fastest control, by median, if it matters to the shortest median; `None` if not.
    pub fn control_moved(&self) -> Option<f64> {
        control_moved(&self.controls, self.sizes.iter().map(|size| size.figures.median_ns as f64))
    }
}

/// Returns the ratio of the slowest to the fastest control, by median, for the pair of CPUs that moved most; `None` if
/// no pair has two controls.
pub fn control_ratio<'a>(rows: impl IntoIterator<Item = &'a ControlRow>) -> Option<f64> {
    spans(rows).map(|[low, high]| high / low).max_by(f64::total_cmp)
}

/// Returns the ratio of a control that moved by more than [`CONTROL_RATIO_MAX`], and by enough nanoseconds for the
/// shortest figure measured around it; `None` if none did.
pub fn control_moved<'a>(
    rows: impl IntoIterator<Item = &'a ControlRow>,
    figures_ns: impl IntoIterator<Item = f64>,
) -> Option<f64> {
    let shortest_ns = figures_ns.into_iter().min_by(f64::total_cmp).unwrap_or(0.0);
    let matters =
        |[low, high]: &[f64; 2]| high / low > CONTROL_RATIO_MAX && (high - low) * TRANSFERS_MAX > shortest_ns;
    spans(rows).filter(matters).map(|[low, high]| high / low).max_by(f64::total_cmp)
}

/// The fastest and the slowest control of each pair of CPUs that has two, by median, in nanoseconds.
fn spans<'a>(rows: impl IntoIterator<Item = &'a ControlRow>) -> impl Iterator<Item = [f64; 2]> {
    let mut pairs: BTreeMap<_, (u64, u64, usize)> = BTreeMap::new();
    for row in rows {
        let (a, b) = (row.client_cpu, row.server_cpu);
        let ns = row.figures.median_ns.max(1);
        let (low, high, count) = pairs.entry((a.min(b), a.max(b))).or_insert((ns, ns, 0));
        (*low, *high, *count) = ((*low).min(ns), (*high).max(ns), *count + 1);
    }
    let repeated = pairs.into_values().filter(|(.., count)| *count > 1);
    repeated.map(|(low, high, _)| [low as f64, high as f64])
}

fn encoded(samples_ns: &[u64]) -> String {
    // The bounds are constants that the histogram accepts; samples are cut to them.
    let Ok(mut held) = Histogram::<u64>::new_with_bounds(1, NS_MAX, DIGITS) else { return String::new() };
    for ns in samples_ns {
        held.saturating_record(*ns);
    }
    histogram::encode(&held)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_of_samples_reads_back() {
        let mut samples: Vec<u64> = (1..=1_000).map(|n| n * 10).collect();
        let record = SizeRecord::of(32, &mut samples, 99.0, 5).unwrap();
        let held = record.half_round_trips().unwrap();
        assert_eq!((held.len(), record.figures.iterations), (1_000, 1_000));
        assert_eq!(held.value_at_quantile(1.0) / 10, 1_000);
        assert_eq!(record.quantiles.iter().map(|q| q.ns).collect::<Vec<_>>(), [5_010, 9_010, 9_910]);
        assert_eq!(SizeRecord::of(32, &mut [], 99.0, 5), None);
    }

    #[test]
    fn the_control_s_movement_needs_two_rows() {
        let row = |median_ns| ControlRow {
            figures: Figures { median_ns, ..Figures::default() },
            ..ControlRow::default()
        };
        let mut record = PingpongRecord { controls: vec![row(60)], ..PingpongRecord::default() };
        assert_eq!(record.control_moved(), None);
        record.controls.push(row(240));
        assert!((record.control_moved().unwrap() - 4.0).abs() < 1e-9);
    }

    #[test]
    fn a_pair_of_cpus_is_compared_with_itself_in_either_direction() {
        let row = |client_cpu, server_cpu, median_ns| ControlRow {
            client_cpu,
            server_cpu,
            figures: Figures { median_ns, ..Figures::default() },
            ..ControlRow::default()
        };
        assert_eq!(control_ratio(&[row(0, 1, 60), row(0, 2, 240)]), None, "two pairs, one control each");
        let rows = [row(0, 1, 60), row(1, 0, 240), row(0, 2, 100), row(0, 2, 110)];
        assert_eq!(control_ratio(&rows), Some(4.0));
        assert_eq!(control_ratio(&[row(0, 1, 0), row(0, 1, 0)]), Some(1.0));
        // 180 ns matter to a figure of 3 us, and not to one of 25 us; 10 ns are within the ratio.
        assert_eq!(control_moved(&rows, [25_000.0, 3_000.0]), Some(4.0));
        assert_eq!(control_moved(&rows, [25_000.0]), None);
        assert_eq!(control_moved(&rows, []), Some(4.0), "nothing is known of what was measured");
        assert_eq!(control_moved(&rows[2..], [100.0]), None);
    }

    #[test]
    fn a_share_needs_time_and_is_at_most_one_cpu() {
        let mut all = CpuUse::default();
        assert_eq!(all.share(), None);
        all.add(CpuUse { cpu_ns: 10, elapsed_ns: 40 });
        all.add(CpuUse { cpu_ns: 30, elapsed_ns: 40 });
        assert_eq!(all.share(), Some(0.5));
        all.add(CpuUse { cpu_ns: u64::MAX, elapsed_ns: 1 });
        assert_eq!(all.share(), Some(1.0));
    }
}
