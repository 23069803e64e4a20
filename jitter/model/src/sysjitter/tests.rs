//! sysjitter's formats: real output is read and written back byte for byte, and lowlat's output can be read
//! in the same way.

use super::{
    RawHead, RawRow, SysjitterCore, raw_file_name, raw_header, raw_row, summary,
    testing::{parse_raw, parse_summary},
};
use crate::{JitterCpu, JitterRecord};
use hdrhistogram::Histogram;
use lowlat_host::histogram;
use proptest::prelude::*;
use std::{
    io::Write,
    process::{Command, Stdio},
};

macro_rules! real {
    ($name:literal) => {
        ($name, include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/sysjitter/", $name)))
    };
}

const SUMMARIES: [(&str, &str); 4] =
    [real!("timed.txt"), real!("sorted.txt"), real!("quiet.txt"), real!("padded.txt")];

const RAW: [(&str, &str); 6] = [
    real!("timed.0"),
    real!("timed.1"),
    real!("quiet.1"),
    real!("padded.01"),
    real!("padded.03"),
    real!("padded.12"),
];

fn cpu(number: u32, lengths: &[u64]) -> JitterCpu {
    let mut held = Histogram::<u64>::new_with_bounds(1, 3_600_000_000_000, 3).unwrap();
    for length in lengths {
        held.record(*length).unwrap();
    }
    JitterCpu {
        cpu: number,
        runtime_ns: 610_000_000_000,
        start_ticks: 0x1b4f_f87e_75a7,
        stop_ticks: 0x1b50_933a_838d,
        interruption_count: lengths.len() as u64,
        interruption_ns_total: lengths.iter().sum(),
        interruption_ns_min: lengths.iter().copied().min().unwrap_or(0),
        interruption_ns_max: lengths.iter().copied().max().unwrap_or(0),
        histogram: histogram::encode(&held),
        ..JitterCpu::default()
    }
}

fn record(cpus: Vec<JitterCpu>) -> JitterRecord {
    JitterRecord { counter_hz: 2_596_999_871, threshold_ns: 100, cpus, ..JitterRecord::default() }
}

/// The record that sysjitter would have made of the same interruptions, from its own raw file.
fn record_of_raw(text: &str, core: &SysjitterCore) -> JitterRecord {
    let file = parse_raw(text).unwrap();
    let lengths: Vec<u64> = file.rows.iter().map(|row| row.length_ns).collect();
    JitterRecord {
        counter_hz: file.head.counter_hz,
        threshold_ns: file.head.threshold_ns,
        cpus: vec![JitterCpu { runtime_ns: core.runtime_ns, ..cpu(core.core, &lengths) }],
        ..JitterRecord::default()
    }
}

#[test]
fn real_summaries_are_written_back_byte_for_byte() {
    for (name, text) in SUMMARIES {
        let read = parse_summary(text).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(read.to_string(), text, "{name}");
    }
    let padded = parse_summary(SUMMARIES[3].1).unwrap();
    assert_eq!(padded.cores.iter().map(|core| core.core).collect::<Vec<_>>(), [3, 12, 1]);
    assert!(padded.is_verbose && padded.cores[0].start_ticks == 0x1b4f_f87e_75a7);
}

#[test]
fn real_raw_files_are_written_back_byte_for_byte() {
    for (name, text) in RAW {
        let read = parse_raw(text).unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut written = raw_header(&read.head);
        written.extend(read.rows.iter().map(raw_row));
        assert_eq!(written, text, "{name}");
    }
}

/// The delta of a row, from the time stamps. sysjitter computes it from cycles, which may round to a
/// microsecond less or more.
#[test]
fn deltas_and_time_stamps_are_of_the_ends() {
    for (name, text) in [RAW[0], RAW[1], RAW[3]] {
        let rows = parse_raw(text).unwrap().rows;
        let mut previous = None;
        for row in rows {
            let ours = RawRow::timed(row.end_ns, previous, row.ticks, row.length_ns);
            assert!(ours.delta_us.abs_diff(row.delta_us) <= 1, "{name}: {row:?}");
            assert!(
                row.end_ns + 1 >= previous.unwrap_or(0) + row.length_ns,
                "{name}: {row:?} began too early"
            );
            previous = Some(row.end_ns);
        }
    }
}

/// Lowlat's summary of sysjitter's own interruptions: counts and sums are equal, percentiles within a cell.
#[test]
fn the_same_interruptions_give_the_same_summary() {
    for (summary_text, raw, column) in [(SUMMARIES[0].1, RAW[0].1, 0), (SUMMARIES[0].1, RAW[1].1, 1)] {
        let theirs = parse_summary(summary_text).unwrap().cores[column];
        let ours = summary(&record_of_raw(raw, &theirs), false).unwrap();
        let ours = parse_summary(&ours).unwrap().cores[0];
        for (ours, theirs) in [
            (ours.length_ns_median, theirs.length_ns_median),
            (ours.length_ns_p90, theirs.length_ns_p90),
            (ours.length_ns_p99, theirs.length_ns_p99),
            (ours.length_ns_p99_9, theirs.length_ns_p99_9),
            (ours.length_ns_p99_99, theirs.length_ns_p99_99),
            (ours.length_ns_p99_999, theirs.length_ns_p99_999),
        ] {
            assert!(ours >= theirs && ours <= theirs + theirs / 1_000 + 1, "{ours} for {theirs}");
        }
        // Each row's nanoseconds are rounded down, so their sum and mean are below those of the cycles.
        assert!(theirs.length_ns_total - ours.length_ns_total <= theirs.interruption_count);
        assert!(theirs.length_ns_mean - ours.length_ns_mean <= 2);
        let exact = |core: SysjitterCore| {
            (
                core.threshold_ns,
                core.cpu_mhz,
                core.runtime_ns,
                core.runtime_s.to_bits(),
                core.interruptions_per_s.to_bits(),
            )
        };
        assert_eq!(exact(ours), exact(theirs));
        assert_eq!(
            (ours.interruption_count, ours.length_ns_min, ours.length_ns_max),
            (theirs.interruption_count, theirs.length_ns_min, theirs.length_ns_max)
        );
    }
}

/// The sizes in the guide's result: 56 bytes without, 386 with one, 537 to 539 with four interruptions.
#[test]
fn files_are_as_long_as_in_the_guide() {
    let head = |count, ticks| RawHead {
        counter_hz: 3_194_000_000,
        threshold_ns: 100,
        interruption_count: count,
        interruption_ticks: ticks,
        runtime_ticks: 1_948_340_000_000,
    };
    let size = |count: usize, ticks| {
        let rows: String = (0..count).map(|_| raw_row(&RawRow::timed(9_000, None, 320, 100))).collect();
        (raw_header(&head(count as u64, ticks)) + &rows).len()
    };
    assert_eq!(size(0, 0), 56);
    assert_eq!(size(1, 320), 386);
    assert!((536..=539).contains(&size(4, 12_800)), "{}", size(4, 12_800));
}

#[test]
fn names_of_files_are_padded_to_the_highest_cpu() {
    let names: Vec<String> =
        [(3, 12), (12, 12), (5, 9), (7, 1_023)].map(|(cpu, max)| raw_file_name("out/jit", cpu, max)).to_vec();
    assert_eq!(names, ["out/jit.03", "out/jit.12", "out/jit.5", "out/jit.0007"]);
}

#[test]
fn ours_has_the_rows_of_the_real_one() {
    let record = record(vec![cpu(1, &[120, 900, 130, 140]), cpu(12, &[])]);
    for (is_verbose, real) in [(false, SUMMARIES[0].1), (true, SUMMARIES[3].1)] {
        let ours = summary(&record, is_verbose).unwrap();
        let names = |text: &str| {
            text.lines().map(|line| line.split(' ').next().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(names(&ours), names(real));
        assert_eq!(parse_summary(&ours).unwrap().to_string(), ours);
    }
    insta::assert_snapshot!(summary(&record, true).unwrap(), @r"
    core_i: 1 12
    threshold(ns): 100 100
    cpu_mhz: 2597 2597
    runtime(ns): 610000000000 610000000000
    runtime(s): 610.000 610.000
    int_n: 4 0
    int_n_per_sec: 0.007 0.000
    int_min(ns): 120 0
    int_median(ns): 140 0
    int_mean(ns): 322 0
    int_90(ns): 900 0
    int_99(ns): 900 0
    int_999(ns): 900 0
    int_9999(ns): 900 0
    int_99999(ns): 900 0
    int_max(ns): 900 0
    int_total(ns): 1290 0
    int_total(%): 0.000 0.000
    frc_start: 1b4ff87e75a7 1b4ff87e75a7
    frc_stop: 1b50933a838d 1b50933a838d
    ");
}

/// The output of `column -t` and the usual awk lines for lowlat's file and the real one.
#[test]
fn scripts_read_ours_as_they_read_the_real_one() {
    let ours = summary(&record(vec![cpu(1, &[120, 900, 130, 140]), cpu(2, &[])]), false).unwrap();
    let awk = [
        ("/^int_n:/ {print $3}", "0", "239"),
        ("/^int_max/ {m=0; for (i=2;i<=NF;i++) if ($i>m) m=$i; print m}", "900", ""),
        ("$1==\"int_n:\" {s=0; for (i=2;i<=NF;i++) s+=$i; print s}", "4", "430"),
    ];
    for (script, for_ours, for_real) in awk {
        for (text, wanted) in [(ours.as_str(), for_ours), (SUMMARIES[0].1, for_real)] {
            let Some(found) = pipe("awk", &[script], text) else { return };
            let laid_out = pipe("column", &["-t"], text).and_then(|text| pipe("awk", &[script], &text));
            assert_eq!(laid_out.as_ref().unwrap_or(&found), &found);
            assert!(wanted.is_empty() || found.trim() == wanted, "{script}: {found}, not {wanted}");
        }
    }
    let Some(laid_out) = pipe("column", &["-t"], &ours) else { return };
    assert_eq!(parse_summary(&laid_out).unwrap(), parse_summary(&ours).unwrap());
    let shape = |text: &str| text.lines().map(|line| line.split_whitespace().count()).collect::<Vec<_>>();
    assert_eq!(shape(&laid_out), [3; 18], "a name and two values in each row");
}

/// A program's output for the text; `None`, with a message, if it is not installed.
fn pipe(program: &str, arguments: &[&str], text: &str) -> Option<String> {
    let started = Command::new(program).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let Ok(mut child) = started else {
        eprintln!("skipped: {program} is not installed");
        return None;
    };
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{program} {arguments:?}");
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn older_records_have_the_shortest_from_the_histogram() {
    let older = JitterCpu { interruption_ns_min: 0, ..cpu(0, &[120, 900]) };
    let read = parse_summary(&summary(&record(vec![older]), false).unwrap()).unwrap();
    assert_eq!(read.cores[0].length_ns_min, 120);
    let empty = JitterRecord { cpus: vec![JitterCpu::default()], ..JitterRecord::default() };
    assert!(summary(&empty, false).unwrap().contains("int_n_per_sec: 0.000\n"));
    let damaged = JitterCpu { histogram: "x".into(), ..cpu(0, &[1]) };
    assert!(summary(&record(vec![damaged]), false).is_err());
}

#[test]
fn what_is_wrong_is_named_with_its_line() {
    let error = |text: &str| parse_summary(text).unwrap_err().to_string();
    assert!(
        error("").starts_with("line 1: found \"end of file\", expected the rows core_i, threshold(ns), ")
    );
    assert!(error("core_i 0\n").contains("line 1: found \"core_i 0\", expected \"name: value ...\""));
    assert!(
        error("core_i: 0\nint_m: 1\n")
            .contains("line 2: found \"int_m: 1\", expected one of the rows core_i, ")
    );
    assert!(error("int_n: 1\n").contains("the row core_i before all others"));
    assert!(error("core_i: 0\ncore_i: 1\n").contains("the row core_i only once"));
    assert!(error("core_i: 0 1\nint_n: 7\n").contains("2 values, one per core"));
    assert!(error("core_i: 0\nint_n: -7\n").contains("(\"-7\" is invalid in the row int_n)"));
    assert!(error("core_i: 0\nint_total(%): NaN\n").contains("\"NaN\" is invalid"));
    let half = SUMMARIES[3].1.lines().take(19).fold(String::new(), |text, line| text + line + "\n");
    assert!(
        error(&half).contains("line 20: found \"end of file\", expected the rows frc_stop"),
        "{}",
        error(&half)
    );

    let error = |text: &str| parse_raw(text).unwrap_err().to_string();
    assert!(error("").contains("line 1: found \"end of file\", expected \"# cpu_mhz: NUMBER\""));
    assert!(error("# cpu_mhz: x\n").contains("line 1: found \"# cpu_mhz: x\""));
    let cut = RAW[0].1.trim_end().rsplit_once('\n').unwrap().0;
    assert!(error(cut).contains("191 rows, as in the header, not 190"), "{}", error(cut));
    let bad = RAW[0].1.replacen("\n     ", "\n   x ", 1);
    assert!(
        error(&bad).contains("line 12: ") && error(&bad).contains("four whole numbers"),
        "{}",
        error(&bad)
    );
    let titles = RAW[0].1.replace("(usec)", "(msec)");
    assert!(error(&titles).contains("line 11: "), "{}", error(&titles));
}

/// Texts similar to the formats: pieces of real files, shuffled.
fn near(files: &'static [(&'static str, &'static str)]) -> impl Strategy<Value = String> {
    let lines: Vec<&str> = files.iter().flat_map(|(_, text)| text.lines().take(14)).collect();
    let piece = prop_oneof![
        6 => proptest::sample::select(lines).prop_map(str::to_owned),
        1 => "[#a-z_:%() 0-9.]{0,24}",
        1 => ".{0,12}",
    ];
    proptest::collection::vec(piece, 0..24).prop_map(|lines| lines.join("\n"))
}

proptest! {
    #[test]
    fn no_text_panics(summary in near(&SUMMARIES), raw in near(&RAW), any in ".{0,200}") {
        for text in [summary, raw, any] {
            let _ = (parse_summary(&text), parse_raw(&text));
        }
    }

    #[test]
    fn what_is_written_is_read(
        rows in proptest::collection::vec((any::<u64>(), any::<u64>(), any::<u64>(), any::<u64>()), 1..20),
        mhz in 1u64..100_000, threshold_ns: u64, interruption_ticks: u64, runtime_ticks: u64,
    ) {
        let rows: Vec<RawRow> = rows.into_iter().map(|(end_ns, delta_us, ticks, length_ns)| {
            RawRow { end_ns, delta_us, ticks, length_ns }
        }).collect();
        let head = RawHead {
            counter_hz: mhz * 1_000_000, threshold_ns, interruption_count: rows.len() as u64,
            interruption_ticks, runtime_ticks,
        };
        let text = raw_header(&head) + &rows.iter().map(raw_row).collect::<String>();
        let read = parse_raw(&text).unwrap();
        prop_assert_eq!((read.head, read.rows), (head, rows));
    }

    #[test]
    fn summaries_of_any_record_are_read(
        count: u64, runtime_ns: u64, total: u64, min: u64, max: u64, hz: u64, is_verbose: bool, length in 1u64..1 << 41,
    ) {
        let one = JitterCpu {
            runtime_ns, interruption_ns_total: total, interruption_ns_min: min, interruption_ns_max: max,
            ..cpu(3, &[length])
        };
        let lying = JitterCpu { interruption_count: count, ..one.clone() };
        for cpu in [one, lying] {
            let record = JitterRecord { counter_hz: hz, cpus: vec![cpu], ..JitterRecord::default() };
            if let Ok(text) = summary(&record, is_verbose) {
                prop_assert_eq!(parse_summary(&text).unwrap().to_string(), text);
            }
        }
    }
}
