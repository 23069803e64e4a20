//! HdrHistogram's interval log, format version 1.3, so that HdrHistogram's own tools can read the
//! measurements: one tagged interval per CPU, lengths in nanoseconds.
//!
//! Times are seconds since the epoch with nine digits; readers accept any number of digits. `Interval_Max` is
//! in milliseconds, as HdrHistogram's own writer does for nanoseconds.

use hdrhistogram::Histogram;
use lowlat_host::histogram::{self, HistogramError};
use lowlat_jitter::{JitterRecord, StudyError, lengths_of};
use lowlat_net::pingpong::PingpongRecord;
use lowlat_pipeline::Stages;
use std::{
    fmt::{self, Display, Formatter},
    time::Duration,
};

const VERSION: &str = "[Histogram log format version 1.3]";
const LEGEND: &str =
    "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"";
const START_TIME: &str = "[StartTime: ";
const NS_PER_S: u64 = 1_000_000_000;
/// Range of the histogram of a CPU without interruptions: an hour, with three digits.
const EMPTY_NS_MAX: u64 = 3_600_000_000_000;
const EMPTY_DIGITS: u8 = 3;

#[derive(Debug, Clone, PartialEq, Default)]
pub struct HdrLog {
    /// A line that describes the content.
    pub comment: String,
    /// Start of the measurement, in nanoseconds since the epoch.
    pub start_ns: u64,
    /// The intervals, in file order.
    pub intervals: Vec<HdrInterval>,
}

/// One interval with its histogram.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct HdrInterval {
    /// Owner of the interval: "CPU5", "t2o".
    pub tag: String,
    pub length_ns: u64,
    /// The longest value, divided by the writer's unit: in lowlat's logs milliseconds.
    pub max: f64,
    /// The histogram as encoded by [`histogram::encode`].
    pub histogram: String,
}

/// Returns the log of a jitter record: one interval per CPU. `start_ns` is the start of the run, in
/// nanoseconds since the epoch.
///
/// # Errors
/// [`StudyError`] if a CPU's histogram cannot be decoded or does not match its count.
pub fn of_jitter(record: &JitterRecord, start_ns: u64) -> Result<HdrLog, StudyError> {
    let mut intervals = Vec::with_capacity(record.cpus.len());
    for cpu in &record.cpus {
        let histogram = match lengths_of(cpu)? {
            Some(lengths) => histogram::encode(&lengths),
            None => empty(),
        };
        intervals.push(HdrInterval {
            tag: format!("CPU{}", cpu.cpu),
            length_ns: cpu.runtime_ns,
            max: cpu.interruption_ns_max as f64 / 1e6,
            histogram,
        });
    }
    let comment = format!(
        "[lowlat jitter: lengths of interruptions of at least {} ns, in nanoseconds]",
        record.threshold_ns
    );
    Ok(HdrLog { comment, start_ns, intervals })
}

/// Returns the log of a pipeline run: one interval per stage. `start_ns` is its start, in nanoseconds since
/// the epoch.
///
/// # Errors
/// [`HistogramError`] if a stage's histogram cannot be decoded.
pub fn of_stages(stages: &Stages, start_ns: u64, measured_s: f64) -> Result<HdrLog, HistogramError> {
    let length_ns = u64::try_from(Duration::try_from_secs_f64(measured_s).unwrap_or_default().as_nanos());
    let Stages { md, order, t2o, t2o_scheduled } = stages;
    let mut intervals = Vec::with_capacity(4);
    for (tag, of) in [("md", md), ("order", order), ("t2o", t2o), ("t2o_scheduled", t2o_scheduled)] {
        // A stage without measurements has no text.
        let histogram = if of.histogram.is_empty() {
            empty()
        } else {
            histogram::decode(&of.histogram)?;
            of.histogram.clone()
        };
        intervals.push(HdrInterval {
            tag: tag.to_owned(),
            length_ns: length_ns.unwrap_or(u64::MAX),
            max: of.max_ns.unwrap_or(0) as f64 / 1e6,
            histogram,
        });
    }
    let comment = "[lowlat pipeline: latencies of the stages, in nanoseconds]".to_owned();
    Ok(HdrLog { comment, start_ns, intervals })
}

/// Returns the log of a ping-pong record: one interval per size, tagged with its bytes. `start_ns` is the start of the
/// run, in nanoseconds since the epoch.
///
/// # Errors
/// [`HistogramError`] if a size's histogram cannot be decoded.
pub fn of_pingpong(record: &PingpongRecord, start_ns: u64) -> Result<HdrLog, HistogramError> {
    let mut intervals = Vec::with_capacity(record.sizes.len());
    for size in &record.sizes {
        size.half_round_trips()?;
        intervals.push(HdrInterval {
            tag: format!("{}B", size.size_bytes),
            length_ns: size.elapsed_ns,
            max: size.figures.max_ns as f64 / 1e6,
            histogram: size.histogram.clone(),
        });
    }
    let comment = "[lowlat net pingpong: half round trips by size of messages, in nanoseconds]".to_owned();
    Ok(HdrLog { comment, start_ns, intervals })
}

fn empty() -> String {
    // The bounds are constants that the histogram accepts.
    Histogram::new_with_bounds(1, EMPTY_NS_MAX, EMPTY_DIGITS)
        .map(|empty| histogram::encode(&empty))
        .unwrap_or_default()
}

impl Display for HdrLog {
    /// The text of the file.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "#{VERSION}")?;
        let start = Seconds(self.start_ns);
        writeln!(f, "#{}\n#{START_TIME}{start} (seconds since epoch)]\n{LEGEND}", self.comment)?;
        for HdrInterval { tag, length_ns, max, histogram } in &self.intervals {
            writeln!(f, "Tag={tag},{start},{},{max:.6},{histogram}", Seconds(*length_ns))?;
        }
        Ok(())
    }
}

/// A time in nanoseconds, shown in seconds.
struct Seconds(u64);

impl Display for Seconds {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09}", self.0 / NS_PER_S, self.0 % NS_PER_S)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
    use lowlat_jitter::JitterCpu;

    const START_NS: u64 = 1_790_000_000_123_456_789;

    fn held(lengths: &[u64]) -> Histogram<u64> {
        let mut held = Histogram::new_with_bounds(1, EMPTY_NS_MAX, 3).unwrap();
        for length in lengths {
            held.record(*length).unwrap();
        }
        held
    }

    fn record() -> JitterRecord {
        let busy = JitterCpu {
            cpu: 5,
            runtime_ns: 10_000_000_123,
            interruption_count: 3,
            interruption_ns_max: 47_000,
            histogram: histogram::encode(&held(&[100, 250, 47_000])),
            ..JitterCpu::default()
        };
        let quiet = JitterCpu { cpu: 12, runtime_ns: 10_000_000_000, ..JitterCpu::default() };
        JitterRecord { threshold_ns: 100, cpus: vec![busy, quiet], ..JitterRecord::default() }
    }

    /// Reads lowlat's log with HdrHistogram's own reader (its Rust port).
    #[test]
    fn hdr_histograms_own_reader_reads_the_log() {
        let text = of_jitter(&record(), START_NS).unwrap().to_string();
        let start = Duration::from_nanos(START_NS);
        let near = |a: Duration, b: Duration| a.abs_diff(b) < Duration::from_micros(1);
        let mut found = Vec::new();
        for entry in IntervalLogIterator::new(text.as_bytes()) {
            match entry.unwrap() {
                LogEntry::StartTime(time) => assert!(near(time, start), "{time:?}"),
                LogEntry::BaseTime(_) => panic!("no base time is written"),
                LogEntry::Interval(one) => {
                    assert!(
                        near(one.start_timestamp(), start) && near(one.duration(), Duration::from_secs(10))
                    );
                    let lengths = histogram::decode(one.encoded_histogram()).unwrap();
                    found.push((one.tag().unwrap().as_str().to_owned(), lengths, one.max().to_string()));
                }
            }
        }
        let wanted = [("CPU5", held(&[100, 250, 47_000]), "0.047"), ("CPU12", held(&[]), "0")];
        assert_eq!(found, wanted.map(|(tag, lengths, max)| (tag.to_owned(), lengths, max.to_owned())));
    }

    #[test]
    fn the_text_has_the_format_of_hdr_histogram() {
        let text = of_jitter(&record(), START_NS).unwrap().to_string();
        let start: Vec<&str> = text.lines().take(4).collect();
        assert_eq!(
            start,
            [
                "#[Histogram log format version 1.3]",
                "#[lowlat jitter: lengths of interruptions of at least 100 ns, in nanoseconds]",
                "#[StartTime: 1790000000.123456789 (seconds since epoch)]",
                "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"",
            ]
        );
        assert!(text.contains("\nTag=CPU5,1790000000.123456789,10.000000123,0.047000,HISTF"), "{text}");
    }

    #[test]
    fn a_damaged_histogram_is_an_error() {
        let mut damaged = record();
        damaged.cpus[0].histogram = "x".into();
        assert!(of_jitter(&damaged, 0).is_err());
    }
}
