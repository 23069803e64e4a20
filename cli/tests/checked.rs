//! Claims of commands about a host of which little can be read.

use crate::common;
use std::{fs, path::Path};

/// Runs a command, and returns its exit code and what it printed.
fn run(arguments: &[&str]) -> (i32, String) {
    let output = common::lowlat(arguments);
    (output.status.code().unwrap_or(-1), common::text(&output.stdout))
}

fn write(host: &Path, path: &str, text: &str) {
    let path = host.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Four CPUs and nothing else, so no setting can be judged.
#[test]
fn a_host_that_was_hardly_read_is_not_judged() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().display().to_string();
    write(dir.path(), "sys/devices/system/cpu/online", "0-3\n");
    write(dir.path(), "proc/stat", "cpu0 1\ncpu1 1\ncpu2 1\ncpu3 1\n");
    for command in [&["audit"][..], &["tune", "plan"]] {
        let (code, said) = run(&[command, &["--root", &root]].concat());
        assert_eq!(code, 4, "{command:?}: {said}");
        assert!(said.contains("Could not judge: "), "{command:?}: {said}");
        assert!(
            !said.contains("Nothing to change") && !said.contains("match profile"),
            "{command:?}: {said}"
        );
    }
    assert_eq!(run(&["net", "nics", "--root", &root]).0, 4, "no interface was seen");
    assert_eq!(run(&["audit", "--root", &root, "--fail-on", "none"]).0, 0, "nothing was asked");
    assert_eq!(run(&["audit", "--root", &root, "--fail-on", "unknown"]).0, 1, "findings win");
}

/// One attribute of many, with the wanted value.
#[test]
fn a_server_with_one_known_attribute_is_not_judged() {
    let dir = tempfile::tempdir().unwrap();
    let text =
        r##"{"@odata.type": "#Bios.v1_1_0.Bios", "Attributes": {"BootModes_SystemBootMode": "UEFIMode"}}"##;
    write(dir.path(), "bios.json", text);
    let file = dir.path().join("bios.json").display().to_string();
    let (code, said) = run(&["bios", "audit", "--file", &file]);
    assert_eq!(code, 4, "{said}");
    assert!(said.contains("Could not judge: ") && !said.contains("all match"), "{said}");
}

/// Every judgement of a host whose processor is not supported starts with that.
#[test]
fn unsupported_processors_are_named_first() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().display().to_string();
    write(dir.path(), "sys/devices/system/cpu/online", "0-1\n");
    write(dir.path(), "proc/cpuinfo", "processor\t: 0\nhart\t\t: 1\nisa\t\t: rv64imafdc\nmmu\t\t: sv48\n");
    for command in [&["audit"][..], &["tune", "plan"], &["host", "show"]] {
        let (_, said) = run(&[command, &["--root", &root]].concat());
        assert!(said.starts_with("lowlat does not support riscv64 processors"), "{command:?}: {said}");
    }
    let (_, said) = run(&["audit", "--root", &root, "--json"]);
    let audit: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert!(audit["warnings"][0].as_str().is_some_and(|text| text.contains("riscv64")), "{said}");
}
