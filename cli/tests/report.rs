//! `lowlat report` on stored documents.

use crate::common::{lowlat, text};
use serde_json::Value;
use std::path::Path;

fn fixture(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/results").join(name).display().to_string()
}

/// A copy of the jitter document with this many whole seconds, each with so many long interruptions on every CPU.
fn regular(folder: &Path, seconds: u64, long: u64) -> String {
    let text = std::fs::read_to_string(fixture("jitter.json")).expect("a fixture");
    let mut document: Value = serde_json::from_str(&text).expect("JSON");
    for cpu in document["measurements"][0]["record"]["cpus"].as_array_mut().expect("CPUs") {
        cpu["runtime_ns"] = (seconds * 1_000_000_000).into();
        let second = |at: u64| {
            let count = long + at % 2;
            serde_json::json!({ "count": count, "ns_total": count * 20_000, "ns_max": 20_000, "long_count": count })
        };
        cpu["seconds"] = (0..seconds).map(second).collect();
    }
    let path = folder.join(format!("{seconds}-s-{long}.json"));
    std::fs::write(&path, document.to_string()).expect("a file");
    path.display().to_string()
}

#[test]
fn a_worse_document_fails_with_code_1_and_the_same_one_does_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let [good, worse, short] =
        [(20, 10), (20, 40), (10, 40)].map(|(seconds, long)| regular(folder.path(), seconds, long));
    let compare =
        |after: &str, arguments: &[&str]| lowlat(&[&["report", "compare", &good, after], arguments].concat());
    let failed = compare(&worse, &["--fail-if-worse", "lost=5%"]);
    assert_eq!(failed.status.code(), Some(1), "{}", text(&failed.stderr));
    let words = text(&failed.stdout);
    assert!(
        words.contains("Worse after: time lost ") && words.contains("Worse by more than the limit (lost, "),
        "{words}"
    );
    assert_eq!(compare(&worse, &["--fail-if-worse", "lost=1000%,count>10us=1000%"]).status.code(), Some(0));
    assert_eq!(compare(&worse, &[]).status.code(), Some(0));
    let unjudged = compare(&short, &["--fail-if-worse", "5%"]);
    assert_eq!(unjudged.status.code(), Some(4), "{}", text(&unjudged.stderr));
    assert!(text(&unjudged.stdout).contains("Too short for a verdict: 20 whole seconds before and 10 after"));
    let same = compare(&good, &["--fail-if-worse", "5%", "--json"]);
    assert_eq!(same.status.code(), Some(0), "{}", text(&same.stderr));
    let json: Value = serde_json::from_slice(&same.stdout).expect("JSON");
    assert_eq!(json["comparisons"][0]["harm"]["verdict"], "no_difference_shown");
    assert_ne!(json["limits"][0]["verdict"], "worse");
}

#[test]
fn documents_in_pairs_are_pooled() {
    let folder = tempfile::tempdir().expect("a folder");
    let [a, b, more_a, more_b] =
        [(20, 10), (20, 40), (30, 10), (30, 40)].map(|(seconds, long)| regular(folder.path(), seconds, long));
    let compare = |files: &[&str]| {
        lowlat(&[&["report", "compare", "--pairs", "--fail-if-worse", "5%"], files].concat())
    };
    let page = folder.path().join("page.html").display().to_string();
    let pooled = compare(&[&a, &b, &more_a, &more_b, "--report", &page]);
    assert_eq!(pooled.status.code(), Some(1), "{}", text(&pooled.stderr));
    let words = text(&pooled.stdout);
    assert!(words.contains("\nB, D after A, C\n") && words.contains("Worse after: time lost "), "{words}");
    let page = std::fs::read_to_string(&page).expect("a page");
    assert_eq!([page.matches(">compared with<").count(), page.matches(">ratio of rates ").count()], [2, 2]);
    let json = compare(&[&a, &b, &more_a, &more_b, "--json"]);
    let json: Value = serde_json::from_slice(&json.stdout).expect("JSON");
    let counts = ["before", "after"].map(|side| json["comparisons"][0][side].as_array().map(Vec::len));
    assert_eq!((json["comparisons"][1].is_null(), counts), (true, [Some(2); 2]));
    let odd = compare(&[&a, &b, &more_a]);
    assert_eq!(odd.status.code(), Some(2));
    assert!(text(&odd.stderr).contains("in pairs, before and after: 3 were given"), "{}", text(&odd.stderr));
    let unmeasured =
        lowlat(&["report", "compare", "--pairs", &a, &b, &a, &fixture("assess-unmeasured.json")]);
    assert_eq!(unmeasured.status.code(), Some(2));
}

#[test]
fn a_comparison_is_no_document_of_a_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, document) = (folder.path().join("compared.json"), fixture("jitter.json"));
    let printed = lowlat(&["report", "compare", &document, &document, "--json"]);
    std::fs::write(&file, &printed.stdout).expect("a file");
    let refused = lowlat(&["report", "render", &file.display().to_string()]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        text(&refused.stderr).contains("compared.json is not a result document"),
        "{}",
        text(&refused.stderr)
    );
}

#[test]
fn documents_without_a_measurement_cannot_be_checked_and_are_compared_by_settings() {
    let unmeasured = fixture("assess-unmeasured.json");
    let jitter = fixture("jitter.json");
    let refused = lowlat(&["report", "compare", &jitter, &unmeasured, "--fail-if-worse", "5%"]);
    assert_eq!(refused.status.code(), Some(2));
    let message = text(&refused.stderr);
    assert!(message.contains("contains no jitter measurement") && message.contains("hint: "), "{message}");
    let compared = lowlat(&["report", "compare", &jitter, &unmeasured]);
    assert_eq!(compared.status.code(), Some(0));
    assert!(text(&compared.stdout).contains("Only settings are compared"), "{}", text(&compared.stdout));
}

#[test]
fn several_documents_make_one_page() {
    let folder = tempfile::tempdir().expect("a folder");
    let page = folder.path().join("page.html");
    let (first, second) = (fixture("jitter.json"), fixture("assess.json"));
    let html = ["--report", &page.display().to_string()].map(str::to_owned);
    let written =
        lowlat(&[&["report".to_owned(), "render".into(), first.clone(), second][..], &html].concat());
    assert_eq!(written.status.code(), Some(0), "{}", text(&written.stderr));
    let page = std::fs::read_to_string(page).expect("a page");
    assert!(page.contains("id=\"d1-summary\"") && page.contains("id=\"d2-summary\""));
    let markdown = lowlat(&["report", "render", &first, "--format", "markdown"]);
    assert!(text(&markdown.stdout).contains("## Causes of interruptions"), "{}", text(&markdown.stdout));
}

#[test]
fn a_fleet_names_the_hosts_that_differ_and_ends_with_1() {
    let folder = tempfile::tempdir().expect("a folder");
    let text_of = std::fs::read_to_string(fixture("assess.json")).expect("a fixture");
    let mut odd: Value = serde_json::from_str(&text_of).expect("JSON");
    let findings = odd["audit"]["findings"].as_array_mut().expect("findings");
    let wrong = findings.iter_mut().find(|finding| finding["verdict"] == "wrong").expect("a fault");
    wrong["verdict"] = "good".into();
    let id = wrong["id"].as_str().expect("an id").to_owned();
    let mut files: Vec<String> = (1..4)
        .map(|at| {
            let path = folder.path().join(format!("desk{at}.json"));
            std::fs::write(&path, &text_of).expect("a file");
            path.display().to_string()
        })
        .collect();
    let fleet = |files: &[String], more: &[&str]| {
        let files = files.iter().map(String::as_str);
        lowlat(&["report", "fleet"].into_iter().chain(files).chain(more.iter().copied()).collect::<Vec<_>>())
    };
    let alike = fleet(&files, &[]);
    assert_eq!(alike.status.code(), Some(0), "{}", text(&alike.stderr));
    assert!(text(&alike.stdout).contains("no verdict differs"), "{}", text(&alike.stdout));
    let path = folder.path().join("odd.json");
    std::fs::write(&path, odd.to_string()).expect("a file");
    files.push(path.display().to_string());
    let found = fleet(&files, &["--json"]);
    assert_eq!(found.status.code(), Some(1), "{}", text(&found.stderr));
    let json: Value = serde_json::from_slice(&found.stdout).expect("JSON");
    assert_eq!(json["groups"][0]["hosts"], serde_json::json!([3]));
    assert_eq!(json["groups"][0]["differs"][&id], "good");
    assert_eq!(json["hosts"][3]["name"], "odd");
    let page = folder.path().join("fleet.html");
    assert_eq!(fleet(&files, &["--report", &page.display().to_string()]).status.code(), Some(1));
    let page = std::fs::read_to_string(page).expect("a page");
    assert!(
        page.contains("<h1 id=\"summary-title\">4 hosts</h1>") && page.contains(">odd<"),
        "{}",
        page.len()
    );
}

#[test]
fn a_bad_file_costs_that_file_and_other_documents_are_passed_over() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, content: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, content).expect("a file");
        path.display().to_string()
    };
    let good = std::fs::read_to_string(fixture("assess.json")).expect("a fixture");
    let (one, two) = (write("one.json", &good), write("two.json", &good));
    let verification =
        write("one.verification.json", "{\"document\": \"lowlat-verification\", \"schema_version\": 1}");
    let fleet = |files: &[&str]| lowlat(&[&["report", "fleet"], files].concat());
    let hosts = |shown: &std::process::Output| text(&shown.stdout).contains("2 hosts");
    let beside = fleet(&[&one, &verification, &two]);
    assert!(hosts(&beside), "{}", text(&beside.stdout));
    assert_eq!(beside.status.code(), Some(0), "{}", text(&beside.stderr));
    assert!(
        text(&beside.stderr).contains("passed over: ")
            && text(&beside.stderr).contains("one.verification.json")
    );
    for bad in ["", "{", "{\"document\": \"other\", \"schema_version\": 1}", &good[..good.len() / 2]] {
        let bad = write("bad.json", bad);
        let shown = fleet(&[&one, &bad, &two, "/nonexistent.json"]);
        assert!(hosts(&shown), "{}{}", text(&shown.stdout), text(&shown.stderr));
        assert_eq!(shown.status.code(), Some(2));
        let said = text(&shown.stderr);
        assert!(
            said.contains("bad.json") && said.contains("/nonexistent.json") && said.contains("hint: "),
            "{said}"
        );
    }
    let none = fleet(&[&verification]);
    assert_eq!(none.status.code(), Some(2));
    assert!(text(&none.stderr).contains("none of the files is a result document"), "{}", text(&none.stderr));
}
