//! Terminal texts.

use super::documents;
use lowlat_pipeline::{
    ExchangeDocument, Phase, Progress,
    size::{Answer, Fit, HugePages, SizeDocument},
    testing,
};
use lowlat_pipeline_report::{
    exchange_html, exchange_text, matrix_plan_text, matrix_text, pipeline_live_lines, pipeline_text,
    size_html, size_text,
};

/// The text as a pipe receives it; no line is wider than the terminal.
fn plain(text: &str, width: usize) -> String {
    let text = anstream::adapter::strip_str(text).to_string();
    for line in text.lines() {
        assert!(line.chars().count() <= width, "{} > {width}: {line}", line.chars().count());
        assert_eq!(line, line.trim_end(), "trailing space");
    }
    assert!(!text.contains(|c: char| c.is_control() && c != '\n'));
    text
}

#[test]
fn a_run_fits_a_terminal_of_80_by_24() {
    let text = plain(&pipeline_text(&documents::run(), 80), 80);
    assert!(text.lines().count() < 24);
    insta::assert_snapshot!(text);
}

#[test]
fn a_run_with_an_exchange_shows_tick_to_trade_by_part() {
    insta::assert_snapshot!(plain(&pipeline_text(&documents::wire_run(), 80), 80));
}

#[test]
fn a_failed_run_lists_every_problem() {
    insta::assert_snapshot!(plain(&pipeline_text(&documents::broken_run(), 80), 80));
}

#[test]
fn a_run_in_progress() {
    let live = |phase, height| {
        let now = Progress {
            phase,
            joined: 0,
            processes: 0,
            elapsed_s: 4.0,
            ticks_published: 3_200,
            orders: 3_199,
            lost: 0,
            t2o_p50_ns: (phase != Phase::Joining).then_some(37_100),
        };
        pipeline_live_lines("run 3 of 96, C11: 80 strategies, 800 quotes/s, parked", 10.0, &now, (80, height))
    };
    insta::assert_snapshot!(plain(&live(Phase::Publishing, 24).join("\n"), 80), @r"
    run 3 of 96, C11: 80 strategies, 800 quotes/s, parked
    4 s of 10 s [######          ] 3,200 ticks, 3,199 orders, 0 lost
    tick to order 37.1 us at p50
    ");
    assert_eq!(live(Phase::Joining, 24).last().map(String::as_str), Some("starting processes"));
    assert_eq!(live(Phase::Publishing, 3).len(), 2, "a terminal of three lines");
}

#[test]
fn the_matrix_at_80_and_at_160_columns() {
    for (name, width) in [("matrix_narrow", 80), ("matrix_wide", 160)] {
        insta::assert_snapshot!(name, plain(&matrix_text(&documents::matrix(), width), width));
    }
}

#[test]
fn what_a_matrix_would_run_fits_80_columns() {
    let mut document = documents::matrix();
    document.rows.retain(|row| ['A', 'B', 'F'].contains(&row.group));
    for row in &mut document.rows {
        row.runs.clear();
    }
    insta::assert_snapshot!(plain(&matrix_plan_text(&document, 588.0, 80), 80));
    document.pinning.clear();
    assert!(!matrix_text(&document, 80).contains("  \n"), "no blank line");
}

#[test]
fn an_interrupted_run_is_not_called_too_fast_for_the_host() {
    let mut document = documents::broken_run();
    document.record.is_cut_short = true;
    let text = plain(&pipeline_text(&document, 80), 80);
    assert!(text.contains("was interrupted") && !text.contains("cannot keep up"), "{text}");
}

#[test]
fn hostile_texts_are_cleaned() {
    let text = plain(&matrix_text(&documents::hostile_matrix(), 80), 80);
    assert!(text.contains("Not run") && !text.contains('\u{202e}'), "{text}");
}

#[test]
fn a_sizing_shows_the_runs_behind_its_answer() {
    insta::assert_snapshot!(plain(&size_text(&documents::size(), 80), 80));
}

#[test]
fn huge_pages_beside_usual_ones() {
    let mut document = documents::size();
    let runs = |ns: [u64; 2]| ns.map(|ns| testing::run(5_000, ns)).to_vec();
    document.huge_pages = Some(HugePages {
        strategies: 80,
        usual: runs([40_000, 41_000]),
        huge: runs([32_000, 33_000]),
        not_tried: None,
    });
    let text = plain(&size_text(&document, 80), 80);
    assert!(text.contains("Huge pages\n") && text.contains("4 KiB pages take 1.2"), "{text}");
}

#[test]
fn a_finding_says_what_its_groups_show() {
    let text = plain(&matrix_text(&documents::matrix(), 80), 80);
    let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(joined.contains("Q10 takes 2.00 times as long as O10."), "{text}");
    assert!(joined.contains("X10 and Y10: no difference shown"), "{text}");
    assert!(joined.contains("L10-L12: its CPUs share one last-level cache"), "{text}");
}

#[test]
fn a_number_that_no_run_confirms_is_called_predicted() {
    let mut document = documents::size();
    for point in &mut document.checked {
        point.measured.stages.t2o.p99_ns = None;
    }
    document.costs.is_tail_from_max = true;
    let text = answered(&mut document);
    assert!(text.starts_with("Predicted, not checked: 779 strategies of 100 quotes/s each"), "{text}");
    assert!(
        !text.contains("within 500 us at p99\n") && text.contains("no run had enough orders for a p99"),
        "{text}"
    );
    assert!(text.contains("--duration") && text.contains("too few orders for a p99"), "{text}");

    document.answer.predicted_range = Some([640, 1_000]);
    document.checked[0].measured.others_cpu_s = None;
    let text = plain(&size_text(&document, 80), 80);
    assert!(text.contains("(640 to\n1,000 by the spread of the runs)"), "{text}");
    assert!(text.contains("other programs kept 0.02 CPUs busy during the runs"), "{text}");
    for point in &mut document.checked {
        point.measured.others_cpu_s = None;
    }
    assert!(size_text(&document, 80).contains("it is unknown what else ran on the machine"));
}

#[test]
fn a_run_that_missed_the_goal_is_in_the_headline() {
    let mut document = documents::size();
    document.checked[0].measured.stages.t2o.p99_ns = Some(521_000);
    let text = answered(&mut document);
    assert!(text.starts_with("The run with 10 strategies of 100 quotes/s each"), "{text}");
    assert!(
        text.contains("predicted, not checked: 9 strategies") && text.contains("521 us at p99"),
        "{text}"
    );
}

/// The text, with the answer that its runs and model give.
fn answered(document: &mut SizeDocument) -> String {
    document.fit = Fit::of(&document.checked);
    document.answer = Answer::of(&document.checked, &document.goal, &document.capacity, None);
    plain(&size_text(document, 80), 80)
}

#[test]
fn a_host_that_carries_nothing_says_so() {
    let text = plain(&size_text(&documents::nothing_fits(), 80), 80);
    assert!(text.starts_with("Predicted, not checked: not even one strategy of 100 quotes/s"), "{text}");
    assert!(text.contains("predicted for 1 strategy") && !text.contains("one more"), "{text}");
    assert!(text.contains("no run was checked"), "{text}");
}

#[test]
fn a_sizing_and_an_exchange_have_pages_with_the_figures_of_their_texts() {
    let exchange = ExchangeDocument {
        published: 20_000,
        refused: vec!["its message has 7 bytes".to_owned()],
        quote_to_order: testing::run(1, 1).stages.t2o,
        ..ExchangeDocument::default()
    };
    let size = documents::size();
    for (page, text) in
        [(size_html(&size), size_text(&size, 200)), (exchange_html(&exchange), exchange_text(&exchange, 200))]
    {
        let text = anstream::adapter::strip_str(&text).to_string();
        let figures = text.split_whitespace().filter(|word| word.contains(|c: char| c.is_ascii_digit()));
        for figure in figures {
            assert!(page.contains(figure.trim_end_matches(['.', ',', ';'])), "{figure}: {text}");
        }
        assert!(page.contains("<table") && page.contains("class=\"note\""), "{page}");
    }
}
