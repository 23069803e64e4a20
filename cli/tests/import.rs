//! `lowlat import` on captured hosts.

#[path = "import/oracle.rs"]
mod oracle;

use crate::common::{fixtures, lowlat, text};
use serde_json::Value;

fn import(arguments: &[&str]) -> (Option<i32>, Value) {
    let output = lowlat(&[&["import"], arguments, &["--json"]].concat());
    let document = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", text(&output.stderr)));
    (output.status.code(), document)
}

/// A plan that was exported to TuneD's format and imported again still matches what lowlat wants on the host.
#[test]
fn an_exported_profile_agrees_with_the_profile_that_it_came_from() {
    for (name, host) in fixtures() {
        let dir = tempfile::tempdir().unwrap();
        let (root, out) = (host.to_str().unwrap(), dir.path().to_str().unwrap());
        let exported = lowlat(&["tune", "export", "--format", "tuned", "--root", root, "--out", out]);
        assert_eq!(exported.status.code(), Some(0), "{name}: {}", text(&exported.stderr));
        // TuneD's own profiles may not be installed here; what they set is not compared.
        let file = dir.path().join("lowlat-trading/tuned.conf");
        let text = std::fs::read_to_string(&file).unwrap();
        let own: Vec<&str> =
            text.lines().filter(|line| !line.starts_with("include=") || line.contains('/')).collect();
        std::fs::write(&file, own.join("\n")).unwrap();
        let (code, document) = import(&["tuned", file.to_str().unwrap(), "--root", root]);
        let requests = document["requests"].as_array().unwrap();
        let differ: Vec<&Value> =
            requests.iter().filter(|request| request["effect"]["kind"] == "differs").collect();
        assert!(differ.is_empty() && code == Some(0), "{name}: {differ:#?}");
        let agree = requests.iter().filter(|request| request["effect"]["kind"] == "agrees").count();
        assert!(agree >= 5, "{name}: {document:#}");
        assert!(document["faults_then"].as_u64() < document["faults_now"].as_u64(), "{name}");
    }
}

#[test]
fn harmful_values_are_named_with_the_wanted_ones() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("config.yaml");
    std::fs::write(&file, "kernel_cmdline:\n  isolcpus: \"0-3\"\n  nohz_full: \"1-7,9-15\"\n").unwrap();
    let host = crate::common::capture("epyc-7f32-stock");
    let (code, document) = import(&["rt-conf", file.to_str().unwrap(), "--root", host.to_str().unwrap()]);
    assert_eq!(code, Some(1), "{document:#}");
    let request = &document["requests"][0];
    assert_eq!(request["value"], "isolcpus=0-3");
    assert_eq!(request["effect"]["settings"][0]["id"], "boot.isolcpus", "{document:#}");
    assert!(request["effect"]["settings"][0]["wanted"].as_str().unwrap().contains("1-7,9-15"));
    assert_eq!(document["requests"][1]["effect"]["kind"], "agrees", "{document:#}");
}

#[test]
fn parameters_that_the_kernel_ignores_and_values_that_cannot_be_parsed_are_findings() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("tuned.conf");
    let host = crate::common::capture("epyc-7f32-stock");
    for (text, piece) in [
        ("[bootloader]\ncmdline_x=isolcpus=abc\n", "boot.isolcpus: wanted managed_irq,domain,1-7,9-15"),
        ("[sysctl]\nvm.stat_interval=abc\n", "Cannot be parsed\n  [sysctl] vm.stat_interval"),
    ] {
        std::fs::write(&file, text).unwrap();
        let arguments = ["import", "tuned", file.to_str().unwrap(), "--root", host.to_str().unwrap()];
        let output = lowlat(&arguments);
        let shown = crate::common::text(&output.stdout);
        assert_eq!(output.status.code(), Some(1), "{shown}");
        assert!(shown.contains(piece), "{shown}");
    }
}

#[test]
fn a_file_that_cannot_be_used_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("tuned.conf");
    let path = file.to_str().unwrap();
    let refused = |tool: &str| {
        let output = lowlat(&["import", tool, path]);
        assert_eq!(output.status.code(), Some(2), "{tool}");
        text(&output.stderr)
    };
    assert!(refused("tuned").contains(path));
    std::fs::write(&file, "[main]\ninclude=no-such-profile\n").unwrap();
    assert!(refused("tuned").contains("includes the profile no-such-profile"));
    std::fs::write(&file, "nothing here\n").unwrap();
    assert!(
        refused("tuned").contains("line 1 is not in a section: \"nothing here\"\nhint: pass a TuneD profile")
    );
    std::fs::write(&file, "[main]\nsummary=empty\n").unwrap();
    assert!(refused("tuned").contains("it sets nothing\nhint: pass a TuneD profile"));
    std::fs::write(&file, "{\"a\": 1}\n").unwrap();
    assert!(
        refused("lltune")
            .contains("no part of it can be judged (a: lowlat has no counterpart)\nhint: pass LLTune")
    );
    assert!(refused("rt-conf").contains("hint: pass rt-conf"));
    std::fs::write(&file, "a: [\n").unwrap();
    assert!(refused("lltune").contains("as a file of lltune"));
    assert!(refused("ansible").contains("tuned, lltune, rt-conf"));
}
