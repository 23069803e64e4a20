//! HdrHistogram's interval log, format version 1.3, so that HdrHistogram's own tools read what was measured: one
//! tagged interval per CPU, lengths in nanoseconds.
//!
//! Times are seconds since the epoch with nine digits; readers take any number of them. `Interval_Max` is in
//! milliseconds, as HdrHistogram's own writer gives nanoseconds.

use hdrhistogram::Histogram;
use lowlat_host::histogram::{self, HistogramError};
use lowlat_jitter::{JitterRecord, StudyError, lengths_of};
use lowlat_pipeline::Stages;
use std::{
    fmt::{self, Display, Formatter, Write as _},
    time::Duration,
};

const VERSION: &str = "[Histogram log format version 1.3]";
const LEGEND: &str =
    "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"";
const START_TIME: &str = "[StartTime: ";
const BASE_TIME: &str = "[BaseTime: ";
const NS_PER_S: u64 = 1_000_000_000;
/// What the histogram of a CPU without interruptions can hold: an hour, to three digits.
const EMPTY_NS_MAX: u64 = 3_600_000_000_000;
const EMPTY_DIGITS: u8 = 3;
/// Characters of a raw line that an error repeats.
const SHOWN_CHARS_MAX: usize = 120;

/// An interval log.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct HdrLog {
    /// Lines that begin with `#`, without it and without those that have a meaning of their own.
    pub comments: Vec<String>,
    /// When the measurement began, in nanoseconds since the epoch.
    pub start_time_ns: Option<u64>,
    /// What the intervals' starts are counted from; `None` for the epoch.
    pub base_time_ns: Option<u64>,
    /// The intervals, in the file's order.
    pub intervals: Vec<HdrInterval>,
}

/// One interval with its histogram.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct HdrInterval {
    /// Whose it is: "CPU5". [`HdrLog`]'s text leaves out what a tag can't hold: comma, white space, controls.
    pub tag: Option<String>,
    /// When it began, since the epoch or [`HdrLog::base_time_ns`].
    pub start_ns: u64,
    /// How long it took.
    pub length_ns: u64,
    /// The longest value, divided by what the writer liked to divide by: in lowlat's logs milliseconds.
    pub max: f64,
    /// The histogram as [`histogram::encode`] gives it; [`parse`] has checked that it decodes.
    pub histogram: String,
}

/// The log of a jitter record: one interval per CPU. `start_ns` is when the run began, in nanoseconds since the epoch.
///
/// # Errors
/// [`StudyError`] when a CPU's histogram does not decode or does not fit its count.
pub fn of_jitter(record: &JitterRecord, start_ns: u64) -> Result<HdrLog, StudyError> {
    let mut intervals = Vec::with_capacity(record.cpus.len());
    for cpu in &record.cpus {
        let histogram = match lengths_of(cpu)? {
            Some(lengths) => histogram::encode(&lengths),
            None => empty(),
        };
        intervals.push(HdrInterval {
            tag: Some(format!("CPU{}", cpu.cpu)),
            start_ns,
            length_ns: cpu.runtime_ns,
            max: cpu.interruption_ns_max as f64 / 1e6,
            histogram,
        });
    }
    let comments = vec![format!(
        "[lowlat jitter: lengths of interruptions of at least {} ns, in nanoseconds]",
        record.threshold_ns
    )];
    Ok(HdrLog { comments, start_time_ns: Some(start_ns), base_time_ns: None, intervals })
}

/// The log of a run of the pipeline: one interval a stage. `start_ns` is when it began, in nanoseconds since the epoch.
///
/// # Errors
/// [`HistogramError`] when a stage's histogram does not decode.
pub fn of_stages(stages: &Stages, start_ns: u64, measured_s: f64) -> Result<HdrLog, HistogramError> {
    let length_ns = u64::try_from(Duration::try_from_secs_f64(measured_s).unwrap_or_default().as_nanos());
    let Stages { md, order, t2o, t2o_scheduled } = stages;
    let mut intervals = Vec::with_capacity(4);
    for (tag, of) in [("md", md), ("order", order), ("t2o", t2o), ("t2o_scheduled", t2o_scheduled)] {
        // A stage of which nothing was measured has no text.
        let histogram = if of.histogram.is_empty() {
            empty()
        } else {
            histogram::decode(&of.histogram)?;
            of.histogram.clone()
        };
        intervals.push(HdrInterval {
            tag: Some(tag.to_owned()),
            start_ns,
            length_ns: length_ns.unwrap_or(u64::MAX),
            max: of.max_ns.unwrap_or(0) as f64 / 1e6,
            histogram,
        });
    }
    let comments = vec!["[lowlat pipeline: latencies of the stages, in nanoseconds]".to_owned()];
    Ok(HdrLog { comments, start_time_ns: Some(start_ns), base_time_ns: None, intervals })
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
        for comment in self.comments.iter().flat_map(|comment| comment.lines()) {
            writeln!(f, "#{comment}")?;
        }
        for (name, time_ns) in [(START_TIME, self.start_time_ns), (BASE_TIME, self.base_time_ns)] {
            if let Some(time_ns) = time_ns {
                writeln!(f, "#{name}{} (seconds since epoch)]", Seconds(time_ns))?;
            }
        }
        writeln!(f, "{LEGEND}")?;
        for interval in &self.intervals {
            if let Some(tag) = &interval.tag {
                f.write_str("Tag=")?;
                for fitting in tag.chars().filter(|c| *c != ',' && !c.is_whitespace() && !c.is_control()) {
                    f.write_char(fitting)?;
                }
                f.write_char(',')?;
            }
            let HdrInterval { start_ns, length_ns, max, histogram, .. } = interval;
            writeln!(f, "{},{},{max:.6},{histogram}", Seconds(*start_ns), Seconds(*length_ns))?;
        }
        Ok(())
    }
}

/// Nanoseconds, shown as seconds.
struct Seconds(u64);

impl Display for Seconds {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09}", self.0 / NS_PER_S, self.0 % NS_PER_S)
    }
}

/// Why a text is no interval log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HdrLogError {
    /// A line is none of a log.
    #[error(
        "line {line}: \"{raw}\" where {expected} was expected; is it an interval log of HdrHistogram, version 1?"
    )]
    Line {
        /// Its number, from 1.
        line: usize,
        /// The line, cut when long.
        raw: String,
        /// What should stand there.
        expected: &'static str,
    },
    /// The histogram of an interval does not decode.
    #[error("line {line}: {source}; was the file cut off?")]
    Histogram {
        /// The line's number, from 1.
        line: usize,
        /// What is wrong.
        source: HistogramError,
    },
}

/// Reads an interval log, ours or another tool's. Each histogram is decoded once to check it.
///
/// # Errors
/// When a line is neither comment, legend nor interval, or a histogram does not decode.
pub fn parse(text: &str) -> Result<HdrLog, HdrLogError> {
    let mut log = HdrLog::default();
    for (index, line) in text.lines().enumerate() {
        let at = index + 1;
        let wrong = |expected| {
            let shown: String = line.chars().take(SHOWN_CHARS_MAX).collect();
            let cut = if shown.len() < line.len() { "..." } else { "" };
            HdrLogError::Line { line: at, raw: format!("{shown}{cut}"), expected }
        };
        if let Some(comment) = line.strip_prefix('#') {
            let time =
                |name| comment.strip_prefix(name).map(|rest| rest.split(' ').next().unwrap_or_default());
            let read = |text| ns_of(text).ok_or_else(|| wrong("a time in seconds since the epoch"));
            if let Some(text) = time(START_TIME) {
                log.start_time_ns = Some(read(text)?);
            } else if let Some(text) = time(BASE_TIME) {
                log.base_time_ns = Some(read(text)?);
            } else if !comment.starts_with("[Histogram log format") {
                log.comments.push(comment.to_owned());
            }
        } else if !line.trim().is_empty() && !line.starts_with("\"StartTimestamp\"") {
            let interval = interval_of(line)
                .ok_or_else(|| wrong("\"Tag=TAG,START,LENGTH,MAX,HISTOGRAM\" (the tag may be left out)"))?;
            histogram::decode(&interval.histogram)
                .map_err(|source| HdrLogError::Histogram { line: at, source })?;
            log.intervals.push(interval);
        }
    }
    Ok(log)
}

fn interval_of(line: &str) -> Option<HdrInterval> {
    let (tag, rest) = match line.strip_prefix("Tag=") {
        Some(rest) => rest.split_once(',').map(|(tag, rest)| (Some(tag.to_owned()), rest))?,
        None => (None, line),
    };
    let mut fields = rest.splitn(4, ',');
    let mut next = || fields.next().map(str::trim);
    Some(HdrInterval {
        tag,
        start_ns: ns_of(next()?)?,
        length_ns: ns_of(next()?)?,
        max: next()?.parse().ok().filter(|max: &f64| max.is_finite())?,
        histogram: next()?.to_owned(),
    })
}

/// Nanoseconds of "12.345"; digits beyond the ninth are cut.
fn ns_of(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_number(whole) || !is_number(fraction) {
        return None;
    }
    let nine: u64 = format!("{fraction:0<9}").get(..9)?.parse().ok()?;
    whole.parse::<u64>().ok()?.checked_mul(NS_PER_S)?.checked_add(nine)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::serialization::V2DeflateSerializer;
    use hdrhistogram::serialization::interval_log::{
        IntervalLogIterator, IntervalLogWriterBuilder, LogEntry, Tag,
    };
    use lowlat_jitter::JitterCpu;
    use proptest::prelude::*;
    use std::time::{Duration, SystemTime};

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

    /// What HdrHistogram's own reader (its Rust port) makes of our log.
    #[test]
    fn hdr_histograms_reader_reads_ours() {
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

    /// What we make of a log that its own writer wrote.
    #[test]
    fn we_read_hdr_histograms_log() {
        let mut bytes = Vec::new();
        let mut serializer = V2DeflateSerializer::new();
        let start = SystemTime::UNIX_EPOCH + Duration::from_millis(1_790_000_000_125);
        let mut builder = IntervalLogWriterBuilder::new();
        builder.add_comment("by another tool").with_start_time(start).with_base_time(start);
        let mut writer = builder.begin_log_with(&mut bytes, &mut serializer).unwrap();
        let one = Duration::from_millis(1_500);
        writer.write_histogram(&held(&[250]), one, one, Tag::new("md")).unwrap();
        writer.write_histogram(&held(&[]), Duration::ZERO, one, None).unwrap();
        let log = parse(&String::from_utf8(bytes).unwrap()).unwrap();
        assert_eq!(log.comments, ["by another tool"]);
        assert_eq!(
            (log.start_time_ns, log.base_time_ns),
            (Some(1_790_000_000_125_000_000), log.start_time_ns)
        );
        let times: Vec<_> =
            log.intervals.iter().map(|one| (one.tag.as_deref(), one.start_ns, one.length_ns)).collect();
        assert_eq!(times, [(Some("md"), 1_500_000_000, 1_500_000_000), (None, 0, 1_500_000_000)]);
        assert_eq!(histogram::decode(&log.intervals[0].histogram).unwrap(), held(&[250]));
    }

    #[test]
    fn the_text_is_that_of_the_format() {
        let log = of_jitter(&record(), START_NS).unwrap();
        let text = log.to_string();
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
        assert_eq!(parse(&text).unwrap(), log);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let error = |text: &str| parse(text).unwrap_err().to_string();
        assert!(error("#x\njunk\n").starts_with("line 2: \"junk\" where \"Tag=TAG,START,LENGTH,"));
        assert!(error("#[StartTime: x (seconds)]\n").contains("line 1: "));
        assert!(error("1.0,2.0,NaN,HISTF").contains("line 1: "));
        assert!(error("-1.0,2.0,3,HISTF").contains("line 1: "));
        assert!(error("99999999999.0,2.0,3,HISTF").contains("line 1: "), "beyond 64 bits");
        assert!(error("\n\n1.0,2.0,3,HISTFA").starts_with("line 3: histogram is not "));
        let mut damaged = record();
        damaged.cpus[0].histogram = "x".into();
        assert!(of_jitter(&damaged, 0).is_err());
    }

    proptest! {
        #[test]
        fn no_text_panics(lines in proptest::collection::vec("(Tag=[a-z]{0,3},|#\\[(Start|Base)Time: |)[0-9.,A-Z\"é -]{0,30}", 0..8)) {
            let _ = parse(&lines.join("\n"));
        }

        #[test]
        fn what_is_written_is_read(
            start_time_ns: Option<u64>, base_time_ns: Option<u64>, comment in "[a-z][a-z ]{0,20}",
            times in proptest::collection::vec((proptest::option::of("[!-+--~]{0,9}"), any::<u64>(), any::<u64>(), any::<u32>()), 0..4),
        ) {
            let intervals = times.into_iter().map(|(tag, start_ns, length_ns, max)| {
                HdrInterval { tag, start_ns, length_ns, max: f64::from(max), histogram: empty() }
            }).collect();
            let log = HdrLog { comments: vec![comment], start_time_ns, base_time_ns, intervals };
            prop_assert_eq!(parse(&log.to_string()).unwrap(), log);
        }
    }
}
