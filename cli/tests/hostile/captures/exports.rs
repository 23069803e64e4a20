//! Values of a captured host in the files of `lowlat tune export` and `lowlat tune plan`: nothing of them is code.

use super::host::{Host, Node};
use crate::common::{lowlat, text};
use lowlat_catalogue::CATALOGUE;
use lowlat_host::{Allocation, Profile, Role};
use lowlat_host_run::{Root, snapshot};
use lowlat_plan::export::{ExportedFile, FORMATS};
use lowlat_settings::Context;
use std::collections::BTreeMap;

/// Part of every payload, by which it is found again.
const MARK: &str = "LLMARK";

/// Texts that an attacker writes in place of a value, with `LLMARK` in place of a command.
const PAYLOADS: &[&str] = &[
    "${f:exec:/bin/LLMARK}",
    "$(LLMARK)",
    "`LLMARK`",
    "0;LLMARK&",
    "0|LLMARK|",
    "'\"LLMARK'\"",
    "0\n[script]\nscript=LLMARK'",
    "0\r\n- hosts:'LLMARK",
    "%n{LLMARK}%h",
    "{{lookup('pipe','LLMARK')}}",
    "{%LLMARK%}",
    "--{LLMARK}",
    "0\0{LLMARK}",
    "\u{2028}-\u{202e}'LLMARK",
    "<(LLMARK>)\\",
];
const FORMAT_NAMES: &[&str] = &["tuned", "sysctl", "systemd", "shell"];
const PROFILES: &[&str] = &["trading", "guide-57037"];

/// A name, and a function that puts a payload into a host.
type Place = (&'static str, fn(&mut Host, &str));

/// Places for the payload: one attack each.
const PLACES: &[Place] = &[
    ("sysctls that are only kept", |host, payload| {
        for key in
            ["kernel/nmi_watchdog", "net/core/busy_poll", "kernel/hung_task_timeout_secs", "vm/swappiness"]
        {
            host.write(&format!("proc/sys/{key}"), format!("{payload}\n"));
        }
    }),
    ("the command line", |host, payload| {
        host.write("proc/cmdline", format!("ro x={payload} nohz_full={payload} isolcpus={payload} quiet\n"));
    }),
    ("lowlat's own sysctl file", |host, payload| {
        let lines =
            format!("kernel.core_pattern = |/{payload}\nkernel.{payload} = 1\nvm.swappiness = {payload}\n");
        for name in ["99-zz-lowlat.conf", "zz-lowlat.conf", "zzzz-lowlat.conf"] {
            host.write(&format!("etc/sysctl.d/{name}"), lines.clone());
        }
    }),
    ("TuneD's profile", |host, payload| {
        host.write("etc/tuned/active_profile", format!("{payload}\n"));
        host.write("etc/tuned/bootcmdline", format!("TUNED_BOOT_CMDLINE=\"{payload}\"\n"));
        host.write("etc/tuned/tuned-main.conf", format!("rollback = {payload}\n"));
    }),
    ("names of interrupt handlers", |host, payload| host.rename("i8042", payload)),
    ("names of threads", |host, payload| {
        host.rename("(rcu_preempt)", &format!("(rcu_{payload})"));
        host.rename("(kcompactd0)", &format!("(kcompactd{payload})"));
    }),
    ("the name of an interface", |host, payload| host.rename("ens1", &payload.replace(['/', '\0'], "_"))),
    ("the name of a disk", |host, payload| host.rename("nvme0n1", &payload.replace(['/', '\0'], "_"))),
    ("states of units", |host, payload| {
        let payload = serde_json::to_string(payload).expect("a string");
        host.rename(
            "\"active\":\"active\"",
            &format!("\"active\":\"active\",\"sub\":{payload},\"x\":{payload}"),
        );
        host.rename("\"enabled\"", &payload);
    }),
    ("names of the machine and the kernel", |host, payload| {
        for name in ["sys_vendor", "product_name", "bios_vendor"] {
            host.write(&format!("sys/devices/virtual/dmi/id/{name}"), payload);
        }
        host.write("proc/sys/kernel/osrelease", payload);
        host.write("usr/lib/os-release", format!("ID={payload}\nPRETTY_NAME=\"{payload}\"\n"));
    }),
];

/// True if a line of an exported file contains a payload where a program would read it.
fn is_live(file: &str, line: &str) -> bool {
    line.contains(MARK) && !line.trim_start().starts_with('#') && !file.ends_with("README")
}

/// The lines of exported files that hold a payload where a program would read it, and the characters that would end a
/// comment or hide a part of it.
fn live_lines(files: &[(String, String)]) -> Vec<String> {
    let is_wild =
        |c: char| (c.is_control() && !matches!(c, '\n' | '\t')) || matches!(c, '\u{2028}' | '\u{202e}');
    let mut found = Vec::new();
    for (path, text) in files {
        let lines = text.split('\n').filter(|line| is_live(path, line) || line.contains(is_wild));
        found.extend(lines.map(|line| format!("{path}: {line}")));
    }
    found
}

/// The files that `tune export` printed.
fn printed(output: &str, format: &str) -> Vec<(String, String)> {
    if !output.starts_with("==> ") {
        return vec![(format.to_owned(), output.to_owned())];
    }
    let parts = output.split("==> ").skip(1);
    parts
        .map(|part| {
            let (path, text) = part.split_once(" <==\n").unwrap_or((part, ""));
            (path.to_owned(), text.to_owned())
        })
        .collect()
}

#[test]
fn no_value_of_a_captured_host_is_code_in_an_export() {
    let directory = tempfile::tempdir().expect("a directory");
    let fixture = Host::fixture("epyc-7f32-stock");
    let mut live = Vec::new();
    for (at, pair) in PLACES.chunks(2).enumerate() {
        for (nth, payload) in PAYLOADS.iter().enumerate() {
            let mut host = fixture.clone();
            for (_, attack) in pair {
                attack(&mut host, payload);
            }
            let root = host.pack(directory.path());
            // Every place meets every payload; formats and profiles take turns, so that all pairs come up.
            let format = FORMAT_NAMES[(at + nth) % FORMAT_NAMES.len()];
            let profile = PROFILES[(at + nth / FORMAT_NAMES.len()) % PROFILES.len()];
            let places: Vec<_> = pair.iter().map(|(place, _)| *place).collect();
            let root = root.to_str().expect("a path in UTF-8");
            let output =
                lowlat(&["tune", "export", "--format", format, "--profile", profile, "--root", root]);
            assert!(output.status.success(), "{places:?}, {payload:?}: {}", text(&output.stderr));
            for line in live_lines(&printed(&text(&output.stdout), format)) {
                live.push(format!("{places:?}, {payload:?}, {format}, {profile}: {line}"));
            }
        }
    }
    assert!(live.is_empty(), "{} lines:\n{}", live.len(), live.join("\n"));
}

#[test]
fn a_plan_writes_no_value_of_a_captured_host_that_does_not_fit_its_type() {
    let directory = tempfile::tempdir().expect("a directory");
    let fixture = Host::fixture("epyc-7f32-stock");
    let mut written = Vec::new();
    for (place, attack) in PLACES.iter().filter(|(place, _)| *place != "the command line") {
        for payload in ["${f:exec:/bin/LLMARK}", "0\n[script]\nscript=LLMARK'"] {
            let mut host = fixture.clone();
            attack(&mut host, payload);
            let root = host.pack(directory.path());
            let output =
                lowlat(&["tune", "plan", "--json", "--root", root.to_str().expect("a path in UTF-8")]);
            let plan: serde_json::Value = serde_json::from_slice(&output.stdout).expect("a plan in JSON");
            for change in plan["changes"].as_array().expect("changes") {
                let is_marked = |part: &serde_json::Value| part.to_string().contains(MARK);
                let is_line = change["target"]["kind"] == "command_line";
                if is_marked(&change["after"]) || (!is_line && is_marked(&change["target"])) {
                    written.push(format!("{place}, {payload:?}: {}", change["target"]));
                }
            }
        }
    }
    assert!(written.is_empty(), "{}", written.join("\n"));
}

/// A path with a placeholder for each number, so that one CPU stands for all.
fn class_of(path: &str) -> String {
    let mut class = String::new();
    for c in path.chars() {
        let c = if c.is_ascii_digit() { 'N' } else { c };
        if c != 'N' || !class.ends_with('N') {
            class.push(c);
        }
    }
    class
}

fn exported(host: &Host, profile: Profile) -> Vec<(String, String)> {
    let root = Root::from_capture("host", host.tar().as_slice()).expect("a capture");
    let host = snapshot::read(&root, CATALOGUE);
    let accepted_risks = CATALOGUE.settings().map(|setting| setting.id.to_owned()).collect();
    let role = Role { profile, accepted_risks, ..Role::default() };
    let allocation = Allocation::choose(&host, &role);
    let context =
        Context { host: &host, role: &role, allocation: &allocation, profile, catalogue: CATALOGUE };
    let files = FORMATS.iter().flat_map(|format| format.files(&context, "0.0.0"));
    files.map(|ExportedFile { path, text, .. }| (path, text)).collect()
}

/// Files whose invalid content may leave no CPU to plan for, which would hide the effect of the other files of a batch.
const SHAPE: &[&str] = &["sys/devices/system/", "proc/cpuinfo", "proc/stat", "proc/self/", ".lowlat/"];
/// Other files that are changed at once.
const BATCH: usize = 16;

/// One file of each kind, those of [`SHAPE`] alone and the others in batches.
fn batches(host: &Host) -> Vec<Vec<usize>> {
    let mut one_of_each: BTreeMap<String, usize> = BTreeMap::new();
    for (at, (path, node)) in host.nodes.iter().enumerate() {
        if matches!(node, Node::File(_)) && path != ".lowlat/manifest.json" {
            one_of_each.insert(class_of(path), at);
        }
    }
    assert!(one_of_each.len() > 400, "the fixture has {} kinds of files", one_of_each.len());
    let is_shape = |at: &usize| SHAPE.iter().any(|start| host.nodes[*at].0.starts_with(start));
    let (alone, others): (Vec<usize>, Vec<usize>) = one_of_each.into_values().partition(is_shape);
    alone.into_iter().map(|at| vec![at]).chain(others.chunks(BATCH).map(<[usize]>::to_vec)).collect()
}

/// Every kind of file of a capture: replaced, with the payload behind its text, or with the payload as its last word.
#[test]
fn no_file_of_a_capture_can_put_code_into_an_export() {
    let fixture = Host::fixture("epyc-7f32-stock");
    let mut live = Vec::new();
    for (nth, batch) in batches(&fixture).into_iter().enumerate() {
        let mut host = fixture.clone();
        let mut changed = Vec::new();
        for at in batch {
            let payload = PAYLOADS[(nth + at) % PAYLOADS.len()];
            let (path, node) = &mut host.nodes[at];
            let Node::File(bytes) = node else { continue };
            let old = String::from_utf8_lossy(bytes).trim_end().to_owned();
            *bytes = match at % 3 {
                0 => payload.to_owned(),
                1 => format!("{old}{payload}\n"),
                _ => format!("{} {payload}\n", old.rsplit_once(char::is_whitespace).unwrap_or_default().0),
            }
            .into_bytes();
            changed.push(path.clone());
        }
        let profile = Profile::ALL[nth % Profile::ALL.len()];
        for line in live_lines(&exported(&host, profile)) {
            live.push(format!("{}, {profile}: {line}", changed.join(" ")));
        }
    }
    assert!(live.is_empty(), "{} lines:\n{}", live.len(), live.join("\n"));
}
