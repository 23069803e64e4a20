//! Texts of `lowlat jitter` for terminals, compared with golden files.

use crate::common;
use lowlat_host::{CpuSet, Reading};
use lowlat_jitter::{Cause, CauseKind, GroupMember, Interruption, Sender, Stop, gate::Gate};
use lowlat_jitter_report::{JitterTextOptions, LiveCpu, LiveView, explain_text, gate_text, live_lines};
use lowlat_results::{
    ResultDocument,
    compare::{Comparison, SideBySide, compare_documents},
};
use lowlat_results_report::{comparison_text, jitter_run, jitter_text, side_by_side_html};

/// The text as a pipe sees it; no line is wider than the terminal, and no escape sequence comes from the host.
fn plain(text: &str, width: usize) -> String {
    let plain = anstream::adapter::strip_str(text).to_string();
    for line in plain.lines() {
        assert!(line.chars().count() <= width, "{} > {width}: {line}", line.chars().count());
        assert_eq!(line, line.trim_end(), "trailing space");
    }
    assert!(!plain.contains(|c: char| c.is_control() && c != '\n'));
    plain
}

fn text(document: &ResultDocument, width: usize, show_all: bool) -> String {
    plain(&jitter_text(document, JitterTextOptions { show_all, width }), width)
}

#[test]
fn a_run_with_causes_at_80_columns() {
    insta::assert_snapshot!(text(&common::traced(), 80, false));
}

#[test]
fn a_run_with_causes_uses_the_room_of_a_wide_terminal() {
    insta::assert_snapshot!(text(&common::traced(), 132, true));
}

/// With everything that is known of it, and with nothing.
#[test]
fn what_ended_a_run_is_said_before_its_figures() {
    let mut document = common::traced();
    let cause =
        Cause { number: Some(812), priority: Some("real-time 50".into()), ..Cause::of(CauseKind::Thread) };
    let hit = GroupMember {
        cpu: 5,
        interruption: Interruption { at_ns: 31_402_118_733, length_ns: 1_284_551 },
        cause: Cause { name: "irq/\u{1b}[31m".into(), ..cause },
    };
    let sender = Sender {
        thread: Some(7),
        name: "md\u{7}".into(),
        cpus: CpuSet::of(0),
        path: (0..30).map(|n| format!("__a_function_with_a_name_{n}")).collect(),
        ..Sender::default()
    };
    let known = Stop {
        on_ns: 50_000,
        hit: Some(hit),
        origin: Reading::Known(sender),
        origin_offset_ns: Some(-12_345),
        ..Stop::default()
    };
    let denied = Stop {
        origin: Reading::Denied,
        origin_reason: "the kernel hides the addresses of its functions (kernel.kptr_restrict)".into(),
        ..known.clone()
    };
    let none = Stop { on_ns: 50_000, ..Stop::default() };
    let mut all = String::new();
    for stop in [known, denied, none] {
        document.jitter_mut().unwrap().record.stop = Some(stop);
        let text = text(&document, 80, false);
        let (_, rest) = text.split_once("\nStop\n").unwrap();
        all.push_str(rest.split_once("\nPer CPU").unwrap().0);
        assert!(lowlat_results_report::html(&document).contains("or longer ended the run"));
    }
    insta::assert_snapshot!(all);
}

#[test]
fn a_run_with_counters_only_says_that_nothing_single_is_attributed() {
    let text = text(&common::counted(), 80, false);
    assert!(text.contains("individual interruptions have no cause"));
    insta::assert_snapshot!(text);
}

#[test]
fn a_quiet_run_has_its_interval_and_no_percentile_it_cannot_carry() {
    let text = text(&common::quiet(), 80, false);
    assert!(!text.contains("p99 "), "four interruptions carry no percentile");
    insta::assert_snapshot!(text);
}

#[test]
fn a_vast_host_shows_its_worst_cpus_and_the_sum() {
    let document = common::vast(1_024);
    let short = text(&document, 80, false);
    assert!(short.lines().count() < 140, "{short}");
    assert!(short.contains("10 of 1,024 CPUs with the longest interruptions"));
    // Lists of CPUs are cut, and no advice is.
    assert!(
        short.contains("nohz_full=1-63,65-127,129-191,193-255,257-319,321-383,385-447,449-511,...\n"),
        "{short}"
    );
    let words = short.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains(",... into an isolated cpuset partition, so that no other thread runs there"),
        "{short}"
    );
    let row = short.lines().find(|line| line.trim_start().starts_with("all ")).expect("a row of the sum");
    assert!(row.contains("1.28 ms"), "{row}");
    assert!(text(&document, 80, true).lines().count() > 1_024);
}

#[test]
fn documents_without_causes_or_without_jitter_have_a_text() {
    assert!(!text(&common::epyc(), 80, false).contains("Causes"));
    assert_eq!(text(&common::bare(), 80, false), "Jitter was not measured in this run.\n");
    let mut off = common::traced();
    let record = &mut off.jitter_mut().unwrap().record;
    record.causes = Some(lowlat_jitter::JitterCauses::default());
    assert!(!text(&common::with_study(off), 80, false).contains("Causes"));
}

#[test]
fn a_run_that_was_cut_short_says_how_long_it_was() {
    let mut document = common::epyc();
    for cpu in &mut document.jitter_mut().unwrap().record.cpus {
        cpu.runtime_ns = 20_000_000_000;
    }
    assert!(text(&document, 80, false).contains(" CPUs for 20 s, "), "{}", text(&document, 80, false));
    let page = lowlat_results_report::html(&document);
    assert!(page.contains("20 s") && !page.contains("610 s"));
}

#[test]
fn damaged_histograms_are_reported_below_the_table() {
    let mut document = common::epyc();
    document.jitter_mut().unwrap().record.cpus[3].histogram = "damaged".into();
    let text = text(&document, 80, false);
    assert!(text.contains("CPU 3: "), "{text}");
    assert!(text.lines().any(|line| line.starts_with("    3  chosen") && line.contains("7.67 us")), "{text}");
}

#[test]
fn the_timeline_of_the_longest_interruption() {
    let document = common::traced();
    insta::assert_snapshot!(plain(&explain_text(&jitter_run(&document), 1, 80).unwrap(), 80));
}

#[test]
fn timelines_of_every_kind_have_a_text() {
    let document = common::traced();
    let mut seen = String::new();
    for rank in 1..=160 {
        seen.push_str(&plain(&explain_text(&jitter_run(&document), rank, 80).unwrap(), 80));
    }
    for name in
        ["irq 36 nvme0q3", "call function flush_tlb_func", "page fault", "unexplained", "systemd-journald"]
    {
        assert!(seen.contains(name), "{name}");
    }
}

#[test]
fn missing_ranks_are_errors() {
    let document = common::traced();
    let error = |rank| explain_text(&jitter_run(&document), rank, 80).unwrap_err();
    assert_eq!(error(0), "ranks start at 1, the longest interruption");
    assert_eq!(
        error(usize::MAX),
        format!("there is no interruption of rank {}: the document keeps the 160 longest", usize::MAX)
    );
    assert_eq!(
        explain_text(&jitter_run(&common::bare()), 1, 80).unwrap_err(),
        "the document has no jitter measurement"
    );
    let old = explain_text(&jitter_run(&common::epyc()), 1, 80).unwrap();
    assert!(old.contains("from a version of lowlat without causes"), "{old}");
}

fn live(cpus: u32) -> Vec<LiveCpu> {
    (0..cpus)
        .map(|cpu| LiveCpu {
            cpu,
            count: u64::from(cpu) * 31,
            ns_total: u64::from(cpu) * 71_000,
            ns_max: u64::from(cpu) * 1_913,
        })
        .collect()
}

#[test]
fn the_live_view_fits_the_terminal() {
    for (cpus, width, height) in [(14, 80, 24), (1_024, 80, 24), (1_024, 20, 1), (0, 80, 24), (3, 500, 300)] {
        let cpus = live(cpus);
        let view =
            LiveView { cpus: &cpus, elapsed_ns: 12_400_000_000, duration_ns: 610_000_000_000, width, height };
        let lines = live_lines(&view);
        assert!(lines.len() < height.max(5), "{} lines of {height}", lines.len());
        assert!(lines.iter().all(|line| line.chars().count() <= width.max(40)), "{lines:#?}");
        assert!(!lines.concat().contains('\u{1b}'));
    }
    let cpus = live(60);
    let view = LiveView {
        cpus: &cpus,
        elapsed_ns: 12_400_000_000,
        duration_ns: 610_000_000_000,
        width: 80,
        height: 16,
    };
    insta::assert_snapshot!(live_lines(&view).join("\n"));
}

#[test]
fn the_live_view_of_a_run_that_has_just_begun_divides_by_nothing() {
    let cpus = [LiveCpu::default()];
    let lines = live_lines(&LiveView { cpus: &cpus, elapsed_ns: 0, duration_ns: 0, width: 80, height: 24 });
    assert!(lines.concat().contains('-') && !lines.concat().contains("NaN"), "{lines:?}");
}

#[test]
fn hostile_documents_neither_colour_nor_widen_the_terminal() {
    let mut document = common::hostile();
    let record = &mut document.jitter_mut().unwrap().record;
    for cpu in &mut record.causes.as_mut().unwrap().cpus {
        cpu.totals.iter_mut().for_each(|total| (total.count, total.ns_total) = (u64::MAX, u64::MAX));
        cpu.counters.iter_mut().for_each(|counter| counter.count = u64::MAX);
        (cpu.ring_lost_count, cpu.event_lost_count, cpu.event_count) = (u64::MAX, u64::MAX, u64::MAX);
        for step in cpu.worst.iter_mut().flat_map(|of| &mut of.timeline) {
            (step.offset_ns, step.depth) = (i64::MAX - 1, 255);
        }
    }
    for width in [0, 40, 80, 132, 10_000] {
        let mut texts = vec![jitter_text(&document, JitterTextOptions { show_all: true, width })];
        texts.extend((1..=20).map(|rank| explain_text(&jitter_run(&document), rank, width).unwrap()));
        for text in texts {
            let plain = anstream::adapter::strip_str(&text).to_string();
            assert!(!plain.contains(|c: char| c.is_control() && c != '\n'), "{plain}");
            assert!(!plain.contains('\u{202e}'));
        }
    }
}

#[test]
fn a_comparison_at_80_columns() {
    insta::assert_snapshot!(plain(&comparison_text(&common::comparison(), 80), 80));
}

#[test]
fn a_run_held_against_itself_shows_no_difference() {
    let document = common::traced();
    let comparison = compare_documents(&[&document], &[&document]).unwrap();
    let text = plain(&comparison_text(&comparison, 132), 132);
    assert!(text.starts_with("No difference beyond 10 % is shown: time lost"), "{text}");
    assert!(!text.contains("Settings that differ"), "{text}");
}

#[test]
fn a_gate_names_the_rows_that_broke_it() {
    let document = common::traced();
    let study = document.jitter().unwrap().study.as_ref().unwrap();
    let outcome = |gate: &str| Gate::parse(gate).unwrap().evaluate(study);
    insta::assert_snapshot!(plain(&gate_text(&outcome("max<20us,p99.9<10us,lost<50%,named>80%"), 80), 80));
    assert_eq!(gate_text(&outcome("max<1s"), 80).lines().count(), 1);
}

#[test]
fn hostile_and_empty_comparisons_have_a_text_and_a_page() {
    let document = common::hostile();
    let comparisons = [
        compare_documents(&[&document], &[&common::traced()]).unwrap(),
        compare_documents(&[&document], &[&document]).unwrap(),
        Comparison::default(),
    ];
    for comparison in comparisons {
        let page =
            side_by_side_html(&SideBySide { comparisons: vec![comparison.clone()], ..SideBySide::default() });
        assert!(!page.contains("<img") && page.ends_with("</html>"));
        for text in [comparison_text(&comparison, 40), page] {
            let plain = anstream::adapter::strip_str(&text).to_string();
            assert!(!plain.contains(|c: char| c.is_control() && c != '\n'));
            assert!(!plain.contains('\u{202e}') && !plain.contains("NaN"));
        }
    }
}
