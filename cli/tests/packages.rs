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
