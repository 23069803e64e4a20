//! The document of a run: complete and consistent.

use crate::{common, jitter::runs};
use lowlat_jitter::{CauseSource, JitterMeasurement, JitterRecord};
use lowlat_results::ResultDocument;

fn measurement() -> &'static JitterMeasurement {
    runs::whole().document.jitter().expect("a measurement")
}

fn record() -> &'static JitterRecord {
    &measurement().record
}

#[test]
fn stdout_and_the_file_are_the_same_document() {
    let whole = runs::whole();
    let printed: ResultDocument = serde_json::from_slice(&whole.stdout).expect("nothing but the document");
    assert_eq!(printed, whole.document);
    assert_eq!((printed.command.as_str(), printed.is_interrupted), ("jitter", false));
    let ids: Vec<&str> = printed.readiness.iter().map(|point| point.id.as_str()).collect();
    assert_eq!(ids, ["load", "affinity", "profile", "swap", "governor", "busy_threads"]);
    for point in printed.readiness.iter().filter(|point| !point.action.is_empty()) {
        assert!(point.action.ends_with('.') && !point.observed.ends_with('.'), "{point:?}");
    }
}

#[test]
fn every_cpu_was_sampled_for_the_whole_time() {
    let record = record();
    let cpus: Vec<u32> = record.cpus.iter().map(|cpu| cpu.cpu).collect();
    assert!(cpus.is_sorted() && !cpus.is_empty() && record.counter_hz > 0);
    for cpu in &record.cpus {
        assert!(cpu.runtime_ns >= 1_000_000_000 && cpu.loop_count > 0 && !cpu.has_moved, "{cpu:?}");
        let (count, ns): (u64, u64) =
            cpu.seconds.iter().fold((0, 0), |sum, second| (sum.0 + second.count, sum.1 + second.ns_total));
        assert_eq!((count, ns), (cpu.interruption_count, cpu.interruption_ns_total), "CPU {}", cpu.cpu);
    }
}

#[test]
fn record_and_study_count_alike() {
    let (record, study) = (record(), measurement().study.as_ref().expect("a study"));
    let of_record: Vec<_> = record.cpus.iter().map(|cpu| (cpu.cpu, cpu.interruption_count)).collect();
    let of_study: Vec<_> = study.cpus.iter().map(|cpu| (cpu.cpu, cpu.count)).collect();
    assert_eq!(of_record, of_study);
    assert_eq!(study.all.count, of_record.iter().map(|(_, count)| count).sum::<u64>());
}

#[test]
fn causes_come_from_the_trace_or_a_reason_is_there() {
    let causes = record().causes.as_ref().expect("causes were looked for");
    if runs::may_trace("causes from the trace") {
        assert_eq!((causes.source, causes.reason.as_str()), (CauseSource::Trace, ""), "{causes:?}");
        assert!(!causes.trace_clock.is_empty());
    } else if causes.source == CauseSource::Counters {
        assert!(causes.reason.contains("--no-causes"), "says what to do: {}", causes.reason);
    }
}

#[test]
fn causes_add_up_to_the_time_of_the_interruptions() {
    let record = record();
    let causes = record.causes.as_ref().expect("causes were looked for");
    if causes.source != CauseSource::Trace {
        say!("skipped: sums of causes: this run was not traced ({})", causes.reason);
        return;
    }
    for (cpu, of) in record.cpus.iter().zip(&causes.cpus) {
        assert_eq!(cpu.cpu, of.cpu);
        assert_eq!(of.attributed_count + of.ring_lost_count, cpu.interruption_count, "CPU {}", cpu.cpu);
        let ns: u64 = of.totals.iter().map(|total| total.ns_total).sum();
        if of.ring_lost_count == 0 {
            assert_eq!(ns, cpu.interruption_ns_total, "CPU {}", cpu.cpu);
        }
        for explained in of.worst.iter().chain(&of.first) {
            let parts: u64 = explained.parts.iter().map(|part| part.ns).sum();
            assert_eq!(parts, explained.interruption.length_ns, "{explained:?}");
        }
        if of.ring_lost_count == 0 {
            let kept: Vec<_> = of.worst.iter().map(|explained| explained.interruption).collect();
            assert_eq!(kept, cpu.worst, "the longest of CPU {} are explained", cpu.cpu);
        }
    }
}

#[test]
fn shares_make_a_whole() {
    let study = measurement().study.as_ref().expect("a study");
    let Some(shares) = &study.shares else {
        say!("skipped: shares of causes: this run was not traced, or nothing interrupted it");
        return;
    };
    let parts = [
        shares.named,
        shares.entry_exit,
        shares.firmware_or_hypervisor,
        shares.unexplained,
        shares.not_traced,
    ];
    assert!(parts.iter().all(|share| (0.0..=1.0).contains(share)), "{shares:?}");
    assert!((parts.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{shares:?}");
    let of_causes: f64 = study.causes.iter().map(|cause| cause.share).sum();
    assert!((of_causes - 1.0).abs() < 1e-9, "{of_causes}");
}

#[test]
fn the_hdr_log_holds_every_interruption() {
    let text = std::fs::read_to_string(runs::whole().path("run.hlog")).unwrap();
    let found: Vec<_> = text
        .lines()
        .filter_map(|line| line.strip_prefix("Tag=")?.split_once(','))
        .map(|(tag, rest)| {
            let histogram = rest.rsplit(',').next().unwrap();
            (tag.to_owned(), lowlat_host::histogram::decode(histogram).unwrap().len())
        })
        .collect();
    let expected: Vec<_> =
        record().cpus.iter().map(|cpu| (format!("CPU{}", cpu.cpu), cpu.interruption_count)).collect();
    assert_eq!(found, expected);
}

#[test]
fn the_page_has_its_sections() {
    let page = std::fs::read_to_string(runs::whole().path("report.html")).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.trim_end().ends_with("</html>"));
    for section in ["jitter-title", "Per CPU", "Number and length", "When", "warnings-title"] {
        assert!(page.contains(section), "{section}");
    }
    let causes = record().causes.as_ref().expect("causes were looked for");
    if causes.source == CauseSource::Trace {
        for section in ["Causes and remedies", "Causes per CPU", "How causes were found"] {
            assert!(page.contains(section), "{section}");
        }
    }
}

#[test]
fn without_causes_nobody_looks() {
    let directory = tempfile::tempdir().unwrap();
    let document = runs::measure(directory.path(), &["--duration", "500ms", "--no-causes"]);
    let record = &document.jitter().expect("a measurement").record;
    assert!(record.causes.as_ref().is_none_or(|causes| causes.source == CauseSource::Off));
    assert_eq!(document.jitter().unwrap().study.as_ref().expect("a study").shares, None);
    let text = common::text(&runs::shown(directory.path(), &["result.json"], 0).stdout);
    assert!(text.contains("Per CPU") && !text.contains("Of the interruption time"), "{text}");
}
