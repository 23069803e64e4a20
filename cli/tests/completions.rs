//! The completion script in bash: words that lowlat itself offers.

use crate::common;
use std::process::Command;

/// Words that bash offers for the last of these.
fn offered(words: &[&str]) -> Vec<String> {
    let script = "source \"$0\"; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); COMP_TYPE=9
        _clap_complete_lowlat lowlat \"${COMP_WORDS[COMP_CWORD]}\"; printf '%s\\n' \"${COMPREPLY[@]}\"";
    let folder = tempfile::tempdir().unwrap();
    let completions = folder.path().join("lowlat.bash");
    std::fs::write(&completions, common::lowlat(&["completions", "bash"]).stdout).unwrap();
    let path = std::env::var("PATH").unwrap();
    let output = Command::new("bash")
        .args(["-c", script])
        .arg(completions)
        .args(words)
        .current_dir(folder.path())
        .env("PATH", format!("{}:{path}", common::binary().parent().unwrap().display()))
        .output()
        .unwrap();
    assert!(output.stderr.is_empty(), "{}", common::text(&output.stderr));
    common::text(&output.stdout).lines().map(str::to_owned).collect()
}

#[test]
fn values_are_offered_at_every_depth_and_hidden_options_are_not() {
    assert_eq!(offered(&["lowlat", "tune", "plan", "--profile", ""]), ["trading", "guide-57037"]);
    assert_eq!(offered(&["lowlat", "audit", "--explain", "boot.nohz_f"]), ["boot.nohz_full"]);
    assert_eq!(offered(&["lowlat", "tune", "apply", "--role", "gui"]), ["guide-57037"]);
    assert_eq!(offered(&["lowlat", "pipeline", "run", "--pins", "p"]), ["platform="]);
    assert_eq!(offered(&["lowlat", "workload", "compare", "--b", "place=s"]), ["place=spread"]);
    assert_eq!(offered(&["lowlat", "net", "pingpong", "client", "unix-se"]), ["unix-seqpacket"]);
    let options = offered(&["lowlat", "tune", "apply", "--"]);
    assert!(options.contains(&"--accept-risk".to_owned()) && !options.contains(&"--state-dir".to_owned()));
    let roles = offered(&["lowlat", "cpus", "--role", ""]);
    assert!(roles.contains(&"lowlat.bash".to_owned()), "files too: {roles:?}");
}
