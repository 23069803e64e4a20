//! The page of a matrix.

use super::documents;
use lowlat_pipeline_report::{matrix_html, run_html};
use std::path::Path;

#[test]
fn the_page_has_every_row_and_names_the_other_machine() {
    let document = documents::matrix();
    let page = matrix_html(&document);
    // Written for manual inspection; the target directory is not kept.
    std::fs::write(Path::new(env!("CARGO_TARGET_TMPDIR")).join("matrix.html"), &page).unwrap();
    for row in &document.rows {
        assert!(
            page.contains(&format!("<th class=\"left\" scope=\"row\">{}</th>", row.id))
                || page.contains(&format!(">{}</th>", row.id)),
            "{}",
            row.id
        );
    }
    assert!(page.contains("in the report, on another machine") && page.contains("Xeon E5-2643"));
    assert!(page.contains("82 processes spin on 12 CPUs"), "rows that were not run say why");
    assert!(!page.contains("NaN") && !page.contains("inf"), "no figure without a value");
    assert!(
        page.contains("Finding 7 of the report") && page.contains("Q11 takes 2.00 times as long as O11.")
    );
}

#[test]
fn the_page_of_a_run_has_each_part_and_loads_nothing() {
    let page = run_html(&documents::wire_run());
    // Written for manual inspection; the target directory is not kept.
    std::fs::write(Path::new(env!("CARGO_TARGET_TMPDIR")).join("run.html"), &page).unwrap();
    for part in [
        "packet received to read by md",
        "send call to packet sent",
        "tick to trade",
        "order: written to read",
    ] {
        assert!(page.contains(&format!(">{part}</th>")), "{part}");
    }
    assert_eq!(page.matches("class=\"part p-").count(), 7, "the whole is no part");
    assert!(page.contains("8,000 of 8,000 messages, 0 missing"));
    assert!(!page.contains("NaN") && !page.contains("http://") && !page.contains("url("));
    let without = run_html(&documents::run());
    assert!(!without.contains("Parts of tick to trade") && without.contains("Stages of tick to order"));
    let mut hostile = documents::wire_run();
    hostile.options.feed = Some("<script>alert(1)</script>\u{1b}".to_owned());
    hostile.record.warnings.push("<img src=x>".to_owned());
    let page = run_html(&hostile);
    assert!(!page.contains("<script>alert") && !page.contains("<img src") && !page.contains('\u{1b}'));
}

#[test]
fn every_group_has_its_colour_on_either_ground() {
    let document = documents::matrix();
    let page = matrix_html(&document);
    for row in &document.rows {
        let letter = row.group.to_ascii_lowercase();
        assert_eq!(
            page.matches(&format!("--g-{letter}: light-dark(")).count(),
            1,
            "{letter}: light and dark"
        );
        assert!(
            page.contains(&format!(".g-{letter} {{")) || page.contains(&format!(".g-{letter}{{")),
            "{letter}"
        );
    }
}

#[test]
fn the_page_loads_nothing_and_runs_no_script_of_the_document() {
    for document in [documents::matrix(), documents::hostile_matrix()] {
        let page = matrix_html(&document);
        assert!(!page.contains("http://") && !page.contains("https://") && !page.contains("url("));
        assert!(!page.contains("<script>alert") && !page.contains("<img src"));
        assert!(!page.contains(['\u{1b}', '\u{202e}']));
    }
    assert!(matrix_html(&documents::hostile_matrix()).contains("No row was measured."));
}

#[test]
fn a_rate_beyond_the_report_s_is_drawn_at_its_place() {
    let mut document = documents::matrix();
    document.rows.retain(|row| row.id == "A12");
    assert!(!matrix_html(&document).contains(">1,000,000</text>"));
    document.rows[0].parameters.rate_per_s = 200_000.0;
    assert!(matrix_html(&document).contains(">1,000,000</text>"));
}
