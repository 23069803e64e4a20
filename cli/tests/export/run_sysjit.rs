//! The guide's measuring script, with programs that only write down how they were called.

use super::{HostWithRole, SHELLS, find, stock};
use crate::common::programs::write_program;
use lowlat_host::Profile;
use std::{fs, path::Path, process::Command};

/// The prefix of the guide's own files: `sysjitter.hpe-lowlat.20200622172324PDT.01` and so on.
const GUIDE_FILES: &str = "sysjitter.hpe-lowlat.20200622172324PDT";

fn program(directory: &Path, name: &str, text: &str) {
    write_program(&directory.join(name), &format!("#!/bin/sh\n{text}\n"));
}

#[test]
fn files_are_named_as_in_the_guide() {
    let desk = HostWithRole::of(&stock(), Profile::Guide57037, false);
    let files = desk.files("systemd");
    let script = find(&files, "opt/run_sysjit.sh");
    for (measurer, raw) in [("lowlat", "--raw"), ("sysjitter", "--raw")] {
        for shell in SHELLS {
            let directory = tempfile::tempdir().unwrap();
            let (results, programs) = (directory.path().join("results"), directory.path().join("bin"));
            fs::create_dir(&programs).unwrap();
            program(&programs, "date", "echo 20200622172324PDT");
            program(&programs, "uname", "echo hpe-lowlat.amd.com");
            program(&programs, "taskset", "shift 2; exec \"$@\"");
            let called = directory.path().join("called");
            program(&programs, measurer, &format!("echo \"$@\" > {}; echo core_i: 1 2", called.display()));
            let text = script.replace("/lowlatency/", &format!("{}/", results.display()));
            assert_ne!(text, script, "the guide's directory");
            let path =
                std::env::join_paths([programs.as_path(), Path::new("/usr/bin"), Path::new("/bin")].iter());
            let output = Command::new(shell)
                .args(["-c", &text, "run_sysjit.sh", "100", "610"])
                .env("PATH", path.unwrap())
                .output()
                .expect("a shell");
            assert!(output.status.success(), "{shell}: {}", String::from_utf8_lossy(&output.stderr));
            let folder = results.join("20200622172324PDT");
            let prefix = folder.join(GUIDE_FILES).display().to_string();
            let called = fs::read_to_string(called).unwrap();
            assert!(called.contains(&format!("{raw} {prefix} ")), "{measurer}: {called}");
            assert!(called.contains("610") && called.contains("100"), "{called}");
            assert_eq!(fs::read_to_string(format!("{prefix}.txt")).unwrap(), "core_i: 1 2\n");
        }
    }
    let name = |cpu| lowlat_jitter::sysjitter::raw_file_name(GUIDE_FILES, cpu, 15);
    assert_eq!((name(1), name(15)), (format!("{GUIDE_FILES}.01"), format!("{GUIDE_FILES}.15")));
}
