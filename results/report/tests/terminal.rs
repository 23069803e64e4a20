//! Terminal texts of handmade documents, compared with golden files.

use crate::common;
use lowlat_host_report::{host_diff_text, host_text};
use lowlat_results_report::{Outcome, brief, summary};
use lowlat_tune_report::{AuditTableOptions, audit_table, explain};

/// The text as a pipe sees it.
fn plain(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

/// No line is wider than the terminal, and no escape sequence comes from the host.
fn assert_fits(text: &str, width: usize) {
    for line in plain(text).lines() {
        assert!(line.chars().count() <= width, "{} > {width}: {line}", line.chars().count());
        assert_eq!(line, line.trim_end(), "trailing space");
    }
    assert!(!plain(text).contains(|c: char| c.is_control() && c != '\n'));
}

#[test]
fn summary_at_80_columns() {
    let text = summary(&common::epyc(), 80);
    assert_fits(&text, 80);
    insta::assert_snapshot!(plain(&text));
}

#[test]
fn summary_of_a_host_that_could_not_be_measured() {
    let text = summary(&common::bare(), 80);
    assert_fits(&text, 80);
    insta::assert_snapshot!(plain(&text));
}

/// One screen of 24 lines holds the text, the command before it and the prompt after it.
#[test]
fn a_run_fits_on_one_screen_and_ends_with_the_next_command() {
    let outcome = Outcome {
        page: "lowlat-report.html",
        result: "lowlat-result.json",
        plan_command: "lowlat tune plan",
    };
    let documents = vec![
        ("epyc", common::epyc()),
        ("traced", common::traced()),
        ("counted", common::counted()),
        ("quiet", common::quiet()),
        ("vast", common::vast(512)),
        ("bare", common::bare()),
        ("hostile", common::hostile()),
    ];
    for (name, document) in documents {
        let text = brief(&document, &outcome, 80);
        assert_fits(&text, 80);
        let lines: Vec<String> = plain(&text).lines().map(str::to_owned).collect();
        assert!(lines.len() <= 20, "{name}: {} lines\n{text}", lines.len());
        let last = lines.last().unwrap();
        let has_faults = document.audit.faults().next().is_some();
        assert_eq!(last.contains("lowlat tune plan"), has_faults, "{name}: {last}");
        if has_faults {
            assert!(lines.iter().any(|line| line == "Change first"), "{name}\n{text}");
        }
        insta::assert_snapshot!(format!("brief_{name}"), lines.join("\n"));
    }
}

#[test]
fn audit_table_at_80_and_140_columns() {
    let document = common::epyc();
    for (name, width, show_all) in [("narrow", 80, false), ("wide", 140, false), ("wide_all", 140, true)] {
        let text = audit_table(&document.audit, AuditTableOptions { show_all, width });
        assert_fits(&text, width);
        insta::assert_snapshot!(name, plain(&text));
    }
}

#[test]
fn the_whole_story_of_one_setting() {
    let document = common::epyc();
    let finding = document.audit.findings.iter().find(|f| f.id == "boot.nohz_full").unwrap();
    let text = explain(finding, 80);
    assert_fits(&text, 80);
    insta::assert_snapshot!(plain(&text));
}

#[test]
fn host_at_100_columns() {
    let document = common::epyc();
    let text = host_text(&document.snapshot, Some(&document.allocation), 100);
    assert_fits(&text, 100);
    insta::assert_snapshot!(plain(&text));
}

#[test]
fn tree_of_a_host_with_clusters_and_of_one_with_smt_and_many_nodes() {
    for (name, shape) in [("clusters", common::Shape::CLUSTERS), ("many_nodes", common::Shape::WIDE)] {
        let text = plain(&host_text(&common::host(&shape), None, 100));
        let tree = text.split("\n\n").find(|part| part.starts_with("Topology")).unwrap();
        insta::assert_snapshot!(name, tree);
    }
}

#[test]
fn difference_of_two_hosts() {
    let (a, mut b) = (common::host(&common::Shape::EPYC_7F32), common::host(&common::Shape::EPYC_7F32));
    b.kernel.release = lowlat_host::Reading::Known("6.12.4-amd64".into());
    b.nics.retain(|nic| nic.name != "lo");
    let differences = lowlat_host::diff::diff(&a, &b, lowlat_host::diff::DiffScope::Lasting);
    let text = host_diff_text(&differences, 80);
    assert_fits(&text, 80);
    assert!(plain(&text).contains("kernel.release\n  - 6.1.0-25-amd64\n  + 6.12.4-amd64\n"), "{text}");
    assert!(plain(&text).contains("nics[lo]"));
    assert!(host_diff_text(&[], 80).contains("no lasting differences"));
}

#[test]
fn hostile_texts_neither_colour_nor_widen_the_terminal() {
    let document = common::hostile();
    for width in [0, 40, 80, 132, 10_000] {
        for text in [
            summary(&document, width),
            audit_table(&document.audit, AuditTableOptions { show_all: true, width }),
            explain(&document.audit.findings[0], width),
            host_text(&document.snapshot, Some(&document.allocation), width),
        ] {
            let plain = plain(&text);
            assert!(!plain.contains(|c: char| c.is_control() && c != '\n'), "{plain}");
            assert!(!plain.contains('\u{202e}'));
        }
    }
}

#[test]
fn the_catalogue_names_every_setting() {
    let text = plain(&lowlat_tune_report::catalogue_table(lowlat_catalogue::CATALOGUE.settings(), 80));
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    // Long names are wrapped.
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for setting in lowlat_catalogue::CATALOGUE.settings() {
        assert!(text.contains(setting.id) && text.contains(setting.name), "{}", setting.id);
    }
}
