//! Documents side by side and together, as text.

use crate::common;
use lowlat_results_report::{documents_markdown, documents_text, fleet_text, side_by_side_text};

fn plain(text: &str, width: usize) -> String {
    let plain = anstream::adapter::strip_str(text).to_string();
    for line in plain.lines() {
        assert!(line.chars().count() <= width, "{} characters: {line}", line.chars().count());
    }
    plain
}

#[test]
fn two_documents_at_80_columns() {
    insta::assert_snapshot!(plain(&side_by_side_text(&common::side_by_side(2), 80), 80));
}

#[test]
fn a_document_without_a_measurement_is_compared_by_its_settings() {
    let text = plain(&side_by_side_text(&common::side_by_side(3), 100), 100);
    let (_, last) = text.split_once("C after A: settings-only.json").unwrap();
    assert!(
        last.contains("Only settings are compared") && last.contains("contains no jitter measurement"),
        "{last}"
    );
}

#[test]
fn a_fleet_at_80_columns() {
    insta::assert_snapshot!(plain(&fleet_text(&common::fleet(), 80), 80));
}

#[test]
fn documents_as_markdown_and_text() {
    let documents = common::three();
    let named = common::named(&documents);
    let markdown = documents_markdown(&named);
    assert!(markdown.starts_with("# Documents\n\n| Document | Host |"), "{markdown}");
    assert_eq!(markdown.matches("\n## Settings to change\n").count(), 3);
    assert_eq!(markdown.matches("\n## Causes of interruptions\n").count(), 2);
    assert!(markdown.contains("| boot.nohz\\_full |"), "{markdown}");
    let text = plain(&documents_text(&named, 80), 80);
    for name in ["== before.json", "== after.json", "== settings-only.json"] {
        assert!(text.contains(name), "{name}");
    }
}

#[test]
fn hostile_documents_have_no_markup_and_no_control_characters() {
    let document = common::hostile();
    let named = vec![("a|<b>\u{1b}.json".to_owned(), &document)];
    for text in [documents_markdown(&named), documents_text(&named, 80)] {
        let plain = anstream::adapter::strip_str(&text).to_string();
        assert!(!plain.contains(|c: char| c.is_control() && c != '\n') && !plain.contains('\u{202e}'));
    }
    assert!(!documents_markdown(&named).contains("<img"));
}
