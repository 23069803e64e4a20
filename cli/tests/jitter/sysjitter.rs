//! Output in place of sysjitter's, for scripts written for it.

use crate::{common, jitter::runs};
use lowlat_jitter::sysjitter::{
    raw_file_name,
    testing::{parse_raw, parse_summary},
};
use std::{
    io::Write as _,
    process::{Command, Stdio},
};

/// The rows of sysjitter 1.4, in its order.
const ROWS: [&str; 18] = [
    "core_i:",
    "threshold(ns):",
    "cpu_mhz:",
    "runtime(ns):",
    "runtime(s):",
    "int_n:",
    "int_n_per_sec:",
    "int_min(ns):",
    "int_median(ns):",
    "int_mean(ns):",
    "int_90(ns):",
    "int_99(ns):",
    "int_999(ns):",
    "int_9999(ns):",
    "int_99999(ns):",
    "int_max(ns):",
    "int_total(ns):",
    "int_total(%):",
];

fn summary() -> String {
    let whole = runs::whole();
    common::text(&runs::shown(&whole.directory, &["--format", "sysjitter", "result.json"], 0).stdout)
}

/// Output of a command with this text as its input; `None` if it is not installed.
fn through(command: &[&str], text: &str) -> Option<String> {
    let (program, arguments) = command.split_first()?;
    let child = Command::new(program).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let Ok(mut child) = child else {
        say!("skipped: sysjitter's output through {program}: it is not installed");
        return None;
    };
    child.stdin.take()?.write_all(text.as_bytes()).expect("it reads");
    Some(common::text(&child.wait_with_output().expect("it ends").stdout))
}

#[test]
fn rows_stand_in_sysjitter_s_order_with_the_document_s_figures() {
    let text = summary();
    let names: Vec<&str> = text.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(names, ROWS);
    let parsed = parse_summary(&text).unwrap();
    let record = &runs::whole().document.jitter().unwrap().record;
    let of_text: Vec<_> =
        parsed.cores.iter().map(|core| (core.core, core.interruption_count, core.length_ns_max)).collect();
    let of_record: Vec<_> =
        record.cpus.iter().map(|cpu| (cpu.cpu, cpu.interruption_count, cpu.interruption_ns_max)).collect();
    assert_eq!(of_text, of_record);
}

#[test]
fn scripts_of_sysjitter_work() {
    let text = summary();
    let record = &runs::whole().document.jitter().unwrap().record;
    if let Some(laid_out) = through(&["column", "-t"], &text) {
        assert_eq!(laid_out.lines().count(), ROWS.len());
        assert_eq!(parse_summary(&laid_out).unwrap(), parse_summary(&text).unwrap());
    }
    if let Some(counts) = through(&["awk", "/^int_n:/ { for (i = 2; i <= NF; ++i) print $i }"], &text) {
        let wanted: Vec<String> = record.cpus.iter().map(|cpu| cpu.interruption_count.to_string()).collect();
        assert_eq!(counts.lines().collect::<Vec<_>>(), wanted);
    }
    let worst =
        "/^int_max\\(ns\\):/ { max = 0; for (i = 2; i <= NF; ++i) if ($i > max) max = $i; print max }";
    if let Some(longest) = through(&["awk", worst], &text) {
        let wanted = record.cpus.iter().map(|cpu| cpu.interruption_ns_max).max().unwrap();
        assert_eq!(longest.trim(), wanted.to_string());
    }
}

#[test]
fn verbose_adds_sysjitter_s_verbose_rows() {
    let whole = runs::whole();
    let arguments = ["--format", "sysjitter", "--verbose", "result.json"];
    let text = common::text(&runs::shown(&whole.directory, &arguments, 0).stdout);
    let parsed = parse_summary(&text).unwrap();
    assert!(parsed.is_verbose && parsed.cores.iter().all(|core| core.stop_ticks > core.start_ticks));
}

#[test]
fn raw_files_contain_every_interruption() {
    let whole = runs::whole();
    let record = &whole.document.jitter().unwrap().record;
    let highest = record.cpus.iter().map(|cpu| cpu.cpu).max().unwrap();
    for cpu in &record.cpus {
        let path = whole.directory.join(raw_file_name("raw", cpu.cpu, highest));
        let raw = parse_raw(&std::fs::read_to_string(&path).unwrap()).unwrap();
        assert_eq!(raw.head.interruption_count, raw.rows.len() as u64);
        assert_eq!(raw.head.threshold_ns, record.threshold_ns);
        assert!(raw.rows.is_sorted_by_key(|row| row.end_ns), "CPU {}", cpu.cpu);
        let has_lost = record.warnings.iter().any(|warning| warning.contains("missing in the raw files"));
        if has_lost {
            assert!(raw.head.interruption_count < cpu.interruption_count || record.cpus.len() > 1);
            say!("skipped: count of raw file {}: the ring lost some in this run", path.display());
        } else {
            assert_eq!(raw.head.interruption_count, cpu.interruption_count, "CPU {}", cpu.cpu);
            assert_eq!(raw.rows.iter().map(|row| row.length_ns).max().unwrap_or(0), cpu.interruption_ns_max);
        }
    }
    let names = std::fs::read_dir(&whole.directory).unwrap().map(|entry| entry.unwrap().file_name());
    let left: Vec<_> = names.filter(|name| name.to_string_lossy().ends_with(".part")).collect();
    assert!(left.is_empty(), "{left:?}");
}
