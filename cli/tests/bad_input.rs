//! Unreadable input gives an answer or a clear error, never a panic.

use crate::common;
use rustix::{
    io::ioctl_fionbio,
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Winsize, tcsetwinsize},
};
use std::{fs, io::Read, path::Path};

/// Exit code 2 and an error that names the path; a panic would be 101.
fn refused(arguments: &[&str], parts: &[&str]) {
    let output = common::lowlat(arguments);
    let said = common::text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
    for part in parts {
        assert!(said.contains(part), "{arguments:?} does not say {part:?}: {said}");
    }
}

/// An answer, with findings or without: exit code 0 or 1; 4 if too little could be read to judge.
fn answered(arguments: &[&str], root: &str) {
    let output = common::lowlat(&[arguments, &["--root", root]].concat());
    let said = common::text(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 1 | 4)), "{arguments:?}: {said}");
}

#[test]
fn roots_that_are_no_host_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).display().to_string();
    fs::write(at("junk"), [7u8; 4_000]).unwrap();
    fs::write(at("empty"), []).unwrap();
    fs::create_dir(at("no-host")).unwrap();
    refused(&["audit", "--root", &at("none")], &["none", "capture file"]);
    refused(&["audit", "--root", &at("junk")], &["junk", "07", "tar archive"]);
    refused(
        &["audit", "--root", &at("empty")],
        &["empty", "it is empty, expected a tar archive", "\nhint: "],
    );
    refused(&["audit", "--root", &at("no-host")], &["no-host", "neither proc/ nor sys/"]);
}

#[test]
fn inputs_are_not_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).display().to_string();
    let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/results/jitter.json");
    let (_, capture) = common::fixtures().into_iter().next().expect("a fixture");
    let (a, b, host, link) = (at("a.json"), at("b.json"), at("host.tar.gz"), at("link.json"));
    for (from, to) in [(&results, &a), (&results, &b), (&capture, &host)] {
        fs::copy(from, to).unwrap();
    }
    std::os::unix::fs::symlink(&a, &link).unwrap();
    let before = [&a, &b, &host].map(|file| fs::read(file).unwrap());
    for (arguments, output, hint) in [
        (&["report", "render", &a, "--report", &a][..], &a, " with --report"),
        (&["report", "compare", &a, &b, "--report", &b], &b, " with --report"),
        (&["report", "fleet", &a, &b, "--report", &b], &b, " with --report"),
        (&["report", "render", &link, "--result", &a], &a, " with --result"),
        (&["assess", "--root", &host, "--report", &host], &host, " with --report"),
        (&["tune", "plan", "--root", &host, "--out", &host], &host, " with --out"),
        (&["host", "capture", &host, "--root", &host], &host, ""),
        (&["pipeline", "run", "--pins", &a, "--result", &a], &a, " with --result"),
    ] {
        let message = format!("cannot write {output}: it is also an input\nhint: name another file{hint}\n");
        refused(arguments, &[&message]);
    }
    assert_eq!([&a, &b, &host].map(|file| fs::read(file).unwrap()), before);
    let (new, same) = (at("new"), dir.path().join(".").join("new").display().to_string());
    let message = "--report and --result name the same file\nhint: name another file with --result\n";
    for file in [&new, &b] {
        let other = if *file == new { &same } else { file };
        refused(&["report", "render", &a, "--report", file, "--result", other], &[message]);
    }
    let traced = ["jitter", "--stop-on", "1us", "--save-trace", &new, "--result", &same];
    refused(&traced, &["--save-trace", "name the same file"]);
    assert!(!Path::new(&new).exists());
}

#[test]
fn messages_are_wrapped_on_terminals_alone() {
    let outside = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&outside).unwrap();
    unlockpt(&outside).unwrap();
    tcsetwinsize(&outside, Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    let name = ptsname(&outside, Vec::new()).unwrap();
    let inside = fs::File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    ioctl_fionbio(&outside, true).unwrap();
    let mut terminal = fs::File::from(outside);
    for arguments in
        [&["jitter", "--gate", "foo"][..], &["workload", "run", "nope"], &["jitter", "--duration", "0"]]
    {
        let piped = common::text(&common::lowlat(arguments).stderr);
        let mut command = std::process::Command::new(common::binary());
        let status =
            command.args(arguments).env("NO_COLOR", "1").stderr(inside.try_clone().unwrap()).status();
        assert_eq!(status.unwrap().code(), Some(2));
        let mut shown = Vec::new();
        assert!(terminal.read_to_end(&mut shown).is_err(), "the terminal stays open");
        let shown = common::text(&shown).replace('\r', "");
        assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(words(&shown), words(&piped));
    }
}

#[test]
fn the_quoted_line_of_a_role_file_is_cut() {
    let dir = tempfile::tempdir().unwrap();
    let role = dir.path().join("role.toml").display().to_string();
    fs::write(&role, format!("isolated = {}", "x".repeat(5_000))).unwrap();
    let said = common::text(&common::lowlat(&["audit", "--role", &role]).stderr);
    assert!(
        said.contains("1 | isolated = xxx") && said.contains("xxx...\n") && said.contains("\nhint: "),
        "{said}"
    );
    assert!(said.lines().all(|line| line.len() < 200), "{said}");
}

#[test]
fn a_capture_cut_short_anywhere_is_refused_or_read() {
    let (_, path) = common::fixtures().into_iter().next().expect("a fixture");
    let whole = fs::read(path).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let cut = dir.path().join("cut.tar.gz");
    for tenth in 0..10 {
        fs::write(&cut, &whole[..whole.len() * tenth / 10]).unwrap();
        refused(&["cpus", "isolated", "--root", &cut.display().to_string()], &["cut.tar.gz"]);
    }
    let mut damaged = whole.clone();
    let middle = damaged.len() / 2;
    damaged[middle..middle + 64].fill(0xaa);
    fs::write(&cut, &damaged).unwrap();
    refused(&["cpus", "isolated", "--root", &cut.display().to_string()], &["cut.tar.gz", "damaged"]);
}

#[test]
fn a_host_without_sys_is_judged_with_what_there_is() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("proc")).unwrap();
    let root = dir.path().display().to_string();
    for arguments in
        [&["audit"][..], &["host", "show"], &["cpus", "housekeeping"], &["host", "show", "--json"]]
    {
        answered(arguments, &root);
    }
}

#[test]
fn junk_in_any_file_is_an_answer() {
    let dir = tempfile::tempdir().unwrap();
    let junk: Vec<u8> =
        (0..2_000u32).map(|i| u8::try_from(i * 7 % 256).expect("a remainder of 256")).collect();
    for path in [
        "proc/cpuinfo",
        "proc/cmdline",
        "proc/interrupts",
        "proc/meminfo",
        "proc/stat",
        "proc/swaps",
        "proc/irq/1/smp_affinity_list",
        "proc/2/stat",
        "proc/2/status",
        "proc/sys/kernel/numa_balancing",
        "proc/sys/kernel/osrelease",
        "proc/config.gz",
        "sys/devices/system/cpu/online",
        "sys/devices/system/cpu/possible",
        "sys/devices/system/cpu/cpu0/topology/core_cpus_list",
        "sys/devices/system/node/online",
        "sys/devices/system/node/node0/cpulist",
        "sys/devices/system/node/node0/meminfo",
        "sys/firmware/dmi/tables/DMI",
        "sys/firmware/dmi/tables/smbios_entry_point",
        "sys/class/net/eth0/speed",
        "sys/kernel/mm/transparent_hugepage/enabled",
        "etc/sysctl.d/1.conf",
        "etc/tuned/active_profile",
        "etc/os-release",
    ] {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap_or(Path::new("/"))).unwrap();
        fs::write(path, &junk).unwrap();
    }
    let root = dir.path().display().to_string();
    for arguments in [&["audit", "--all"][..], &["host", "show"], &["cpus", "isolated", "--why"]] {
        answered(arguments, &root);
    }
}

#[test]
fn a_role_that_does_not_fit_points_at_the_place() {
    let dir = tempfile::tempdir().unwrap();
    let role = dir.path().join("role.toml").display().to_string();
    let fixture = common::capture("epyc-7f32-2x8");
    let root = fixture.display().to_string();
    fs::write(&role, "housekeeping = \"0,8\"\nisolated = \"1-99\"\n").unwrap();
    refused(
        &["audit", "--root", &root, "--role", &role],
        &["role.toml:2:12", "no CPU 16-99", "it has CPUs 0-15", "^^^"],
    );
    fs::write(&role, "isolated = [\n").unwrap();
    refused(&["audit", "--root", &root, "--role", &role], &["role.toml:"]);
    refused(&["audit", "--root", &root, "--role", "/nonexistent/role"], &["/nonexistent/role"]);
    refused(
        &["audit", "--explain", "sysctl.kernel.numa_balance"],
        &["did you mean \"sysctl.kernel.numa_balancing\""],
    );
}

#[test]
fn what_was_meant_is_named() {
    for (arguments, tip) in [
        (&["assess", "--html", "x"][..], "'--report'"),
        (&["cpus", "isolated", "--hex"], "'--mask'"),
        (&["net", "pingpong", "tcp", "desk8"], "'client tcp'"),
        (&["jitter", "--seconds", "5"], "'--duration'"),
    ] {
        refused(arguments, &[&format!("exists: {tip}")]);
    }
    let result = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/results/jitter.json");
    let result = result.to_str().unwrap();
    refused(
        &["tune", "apply", "--plan", result, "--yes"],
        &[
            "is not a plan of lowlat: found a \"lowlat-result\"",
            "hint: save one with `lowlat tune plan --out FILE`",
        ],
    );
    refused(
        &["bios", "apply", "--file", result],
        &["hint: add --dry-run, or name the service with --redfish"],
    );
}

/// Words like the hidden `pipeline-role`, and one that it takes.
#[test]
fn hidden_commands_are_not_meant() {
    for (word, said) in
        [("pipelin", "exists: 'pipeline'"), ("hel", "exists: 'help'"), ("strategies", "unrecognized")]
    {
        refused(&[word], &[said]);
        assert!(!common::text(&common::lowlat(&[word]).stderr).contains("pipeline-role"), "{word}");
    }
}
