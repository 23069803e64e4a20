//! The dashboard and the alert rules in contrib/ use metrics that exist.

use crate::metric_names;
use std::{collections::BTreeSet, path::PathBuf, process::Command};

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../contrib").join(name)
}

fn text(name: &str) -> String {
    std::fs::read_to_string(path(name)).expect("a file of contrib/")
}

/// Words that start like a metric of lowlat.
fn metrics(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("lowlat_")).collect()
}

#[test]
fn every_metric_of_dashboard_and_rules_is_exported() {
    let exported = metric_names();
    for name in ["grafana-dashboard.json", "lowlat.rules.yml"] {
        let text = text(name);
        let named = metrics(&text);
        assert!(named.len() > 5, "{name}: {named:?}");
        for metric in named {
            assert!(exported.contains(&metric), "{name} uses {metric}, which is not exported");
        }
    }
}

#[test]
fn the_dashboard_shows_every_kind_of_metric_in_panels_that_do_not_overlap() {
    let dashboard: serde_json::Value = serde_json::from_str(&text("grafana-dashboard.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let (mut ids, mut cells) = (BTreeSet::new(), BTreeSet::new());
    for panel in panels {
        let title = panel["title"].as_str().unwrap();
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "{title}: another panel has its id");
        let side = |name: &str| panel["gridPos"][name].as_u64().unwrap();
        assert!(side("x") + side("w") <= 24, "{title} is outside the grid");
        for x in side("x")..side("x") + side("w") {
            for y in side("y")..side("y") + side("h") {
                assert!(cells.insert((x, y)), "{title} overlaps another panel");
            }
        }
        for target in panel["targets"].as_array().unwrap() {
            assert!(!metrics(target["expr"].as_str().unwrap()).is_empty(), "{title} shows no metric");
        }
    }
    assert_eq!(dashboard["templating"]["list"].as_array().unwrap().len(), 2, "data source and host");
}

/// Checks a file of rules with Prometheus's own program. `None` if it is not installed.
fn promtool(test: &str, rules: &std::path::Path) -> Option<(bool, String)> {
    match Command::new("promtool").args(["check", "rules"]).arg(rules).output() {
        Ok(checked) => {
            let said = String::from_utf8_lossy(&checked.stdout) + String::from_utf8_lossy(&checked.stderr);
            Some((checked.status.success(), said.into_owned()))
        }
        Err(error) => {
            eprintln!("skipped: {test}: promtool: {error}");
            None
        }
    }
}

#[test]
fn prometheus_accepts_the_rules() {
    if let Some((is_good, said)) = promtool("prometheus_accepts_the_rules", &path("lowlat.rules.yml")) {
        assert!(is_good && said.contains("8 rules found"), "{said}");
    }
}

#[test]
fn prometheus_accepts_the_queries_of_the_dashboard() {
    let dashboard: serde_json::Value = serde_json::from_str(&text("grafana-dashboard.json")).unwrap();
    let targets =
        dashboard["panels"].as_array().unwrap().iter().flat_map(|panel| panel["targets"].as_array().unwrap());
    // Rules that record each query, as JSON, which is YAML too.
    let rules: Vec<serde_json::Value> = targets
        .enumerate()
        .map(|(number, target)| {
            // Grafana replaces its variables before it asks Prometheus.
            let query =
                target["expr"].as_str().unwrap().replace("$__rate_interval", "1m").replace("$instance", ".*");
            serde_json::json!({ "record": format!("query_{number}"), "expr": query })
        })
        .collect();
    assert!(rules.len() >= 10);
    let file = serde_json::json!({ "groups": [{ "name": "dashboard", "rules": rules }] });
    let rules = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("dashboard.rules.yml");
    std::fs::write(&rules, file.to_string()).unwrap();
    if let Some((is_good, said)) = promtool("prometheus_accepts_the_queries_of_the_dashboard", &rules) {
        assert!(is_good, "{said}");
    }
}
