//! The page of a matrix.

use super::documents;
use lowlat_pipeline_report::matrix_html;
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
