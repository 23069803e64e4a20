//! The scripts that run before a package is removed.

use crate::common::{programs::write_program, text};
use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

// Output and exit code of `lowlat tune status --json`, as shell scripts.
const KNOWN: &str = "echo '{ \"in_force\": {'; echo '  \"known\": {} } }'\nexit 1\n";
const DAMAGED: &str = "echo '{ \"in_force\": { \"unparsable\": {} } }'\nexit 1\n";
const ABSENT: &str = "echo '{ \"in_force\": \"absent\" }'\n";

/// Debian's script and RPM's, with the argument of a removal.
fn scripts() -> [(String, &'static str); 2] {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| fs::read_to_string(here.join(path)).unwrap();
    let script = read("packaging/deb/prerm");
    assert!(read("packaging/lowlat.spec").contains("\n%preun -f %{top}/cli/packaging/deb/prerm\n"));
    [(script.clone(), "remove"), (script, "0")]
}

#[test]
fn a_package_goes_when_no_plan_is_in_force_whatever_the_program_says() {
    let directory = tempfile::tempdir().unwrap();
    let record = directory.path().join("in-force.json");
    let program = directory.path().join("lowlat");
    let path = format!("{}:{}", directory.path().display(), std::env::var("PATH").unwrap());
    let remove = |script: &str, argument: &str| -> Output {
        let script = script.replace("/var/lib/lowlat/in-force.json", &record.display().to_string());
        Command::new("sh").args(["-c", &script, "prerm", argument]).env("PATH", &path).output().unwrap()
    };
    for (script, argument) in scripts() {
        for says in [KNOWN, DAMAGED, ABSENT, "kill -9 $$\n"] {
            write_program(&program, &format!("#!/bin/sh\n{says}"));
            let _ = fs::remove_file(&record);
            assert!(remove(&script, argument).status.success(), "no plan was ever in force: {says}");
            fs::write(&record, "?").unwrap();
            let refused = remove(&script, argument);
            let said = text(&refused.stderr);
            assert_eq!(refused.status.success(), says == ABSENT, "{says}: {said}");
            let hint = match says {
                ABSENT => "",
                KNOWN => "hint: run `lowlat tune rollback` first",
                _ => "cannot tell whether a plan is in force\nhint: ",
            };
            assert!(said.contains(hint), "{says}: {said}");
            // An upgrade.
            assert!(remove(&script, "1").status.success() && remove(&script, "upgrade").status.success());
        }
    }
}

/// systemd takes the unit that the packages install, and finds little that it leaves open.
#[test]
fn the_unit_of_a_pipeline_is_valid_and_hardened() {
    let name = "lowlat-pipeline@.service";
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| fs::read_to_string(here.join(path)).unwrap();
    let unit = read(&format!("../contrib/{name}"));
    for file in ["Cargo.toml", "packaging/lowlat.spec"] {
        assert!(read(file).contains(&format!("contrib/{name}")), "{file}");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lowlat-pipeline@desk.service");
    fs::write(&path, unit.replace("/usr/bin/lowlat", "/bin/true")).unwrap();
    let analyze = |words: &[&str]| Command::new("systemd-analyze").args(words).arg(&path).output();
    // `--offline` came with systemd 250.
    let Ok(security) = analyze(&["security", "--offline=true", "--threshold=25"]) else {
        eprintln!("skipped: the_unit_of_a_pipeline_is_valid_and_hardened: no systemd-analyze");
        return;
    };
    if text(&security.stderr).contains("offline") {
        eprintln!("skipped: the_unit_of_a_pipeline_is_valid_and_hardened: systemd-analyze is too old");
        return;
    }
    assert!(security.status.success(), "exposure above 2.5: {}", text(&security.stdout));
    let verified = analyze(&["verify", "--man=no"]).unwrap();
    assert!(verified.status.success() && verified.stderr.is_empty(), "{}", text(&verified.stderr));
}
