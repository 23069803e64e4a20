//! `lowlat cache false-sharing --pid PID` and `-- CMD`.

use crate::common::{self, binary, programs::copy_binary, running::Running, text};
use serde_json::Value;
use std::{
    io::{BufRead, BufReader, Read, Write},
    os::unix::{
        fs::PermissionsExt,
        process::{CommandExt, ExitStatusExt},
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};
use tempfile::TempDir;

/// The program with lines that threads share; `None` without a C compiler, or without the rights to watch it.
fn planted(test: &str) -> Option<(TempDir, PathBuf)> {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: {test}: needs root");
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("planted");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../jitter/run/tests/finder/planted.c");
    let built = Command::new("cc").args(["-O1", "-g", "-pthread", "-o"]).arg(&program).arg(source).status();
    if !built.is_ok_and(|status| status.success()) {
        eprintln!("skipped: {test}: no C compiler");
        return None;
    }
    Some((folder, program))
}

#[test]
fn a_program_runs_on_when_lowlat_is_killed() {
    let Some((_folder, program)) = planted("a_program_runs_on") else { return };
    let child = Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut running = Running(Some(child));
    let child = running.0.as_mut().unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while line != "ready\n" {
        line.clear();
        assert!(output.read_line(&mut line).unwrap() > 0);
    }
    let mut counts = || {
        input.write_all(b"\n").unwrap();
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        line
    };
    let pid = child.id().to_string();
    // At different moments of its work.
    for after_ms in [300, 500, 800, 1_300] {
        let mut lowlat = Command::new(binary());
        lowlat.args(["cache", "false-sharing", "--duration", "60s", "--pid", &pid]).stderr(Stdio::piped());
        let mut lowlat = lowlat.spawn().unwrap();
        thread::sleep(Duration::from_millis(after_ms));
        lowlat.kill().unwrap();
        let status = lowlat.wait().unwrap();
        let mut said = String::new();
        lowlat.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        if said.contains("breakpoints") {
            eprintln!("skipped: a_program_runs_on: {said}");
            return;
        }
        assert_eq!(status.signal(), Some(9), "{said}");
        // Both threads go on, however slow the host is: this blocks until the test's own limit otherwise.
        let before = counts();
        let parts =
            |line: &str| -> Vec<u64> { line.split_whitespace().map(|word| word.parse().unwrap()).collect() };
        while parts(&counts()).iter().zip(parts(&before)).any(|(now, before)| *now <= before) {
            thread::sleep(Duration::from_millis(5));
        }
    }
    drop(input);
    let mut rest = String::new();
    output.read_to_string(&mut rest).unwrap();
    assert!(rest.ends_with("right\n") && child.wait().unwrap().success(), "{rest}");
}

#[test]
fn a_command_is_watched_with_its_children_and_runs_to_its_end() {
    let Some((_folder, program)) = planted("a_command_is_watched_with_its_children") else { return };
    let mut lowlat = Command::new(binary());
    let script = format!("'{}'; exit 3", program.display());
    lowlat.args(["cache", "false-sharing", "--duration", "20s", "--json", "--", "sh", "-c", &script]);
    lowlat.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = Running(Some(lowlat.spawn().unwrap()));
    let input = running.0.as_mut().unwrap().stdin.take();
    thread::sleep(Duration::from_secs(22));
    drop(input);
    let output = running.0.take().unwrap().wait_with_output().unwrap();
    let said = text(&output.stderr);
    if said.contains("breakpoints") {
        eprintln!("skipped: a_command_is_watched_with_its_children: {said}");
        return;
    }
    assert!(said.ends_with("right\n"), "{said}");
    assert_eq!(output.status.code(), Some(1), "{said}");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let record = &document["measurements"][0]["record"]["program"];
    assert_eq!(record["processes"].as_array().map(Vec::len), Some(2), "{record}");
    assert!(record["counts"].as_array().is_some_and(|counts| !counts.is_empty()), "{record}");
    assert!(
        record["threads"].as_array().unwrap().iter().any(|thread| thread["name"] == "sender"),
        "{record}"
    );
}

#[test]
fn other_users_programs_and_wrong_arguments_are_refused() {
    let sharing = ["cache", "false-sharing"];
    for (arguments, code, cause) in [
        (vec!["--pid", "4000000"], 2, "no such process"),
        (vec!["--pid", "0"], 2, "invalid value '0'"),
        (vec!["--pid", "1", "--rounds", "3"], 2, "cannot be used with"),
        (vec!["--", "/nowhere/program"], 2, "cannot start /nowhere/program"),
    ] {
        let output = common::lowlat(&[&sharing[..], &arguments].concat());
        let said = text(&output.stderr);
        if said.contains("breakpoints") {
            eprintln!("skipped: {arguments:?}: {said}");
            continue;
        }
        assert!(output.status.code() == Some(code) && said.contains(cause), "{arguments:?}: {said}");
    }
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: other_users_programs: needs root");
        return;
    }
    // As nobody, who may read neither this folder nor the target's memory.
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let copy = folder.path().join("lowlat");
    copy_binary(&copy);
    let mut other = Command::new("sleep").arg("60").spawn().unwrap();
    let output = Command::new(&copy)
        .args(sharing)
        .args(["--pid", &other.id().to_string()])
        .uid(65_534)
        .gid(65_534)
        .current_dir("/")
        .output()
        .unwrap();
    other.kill().unwrap();
    other.wait().unwrap();
    let said = text(&output.stderr);
    assert!(output.status.code() == Some(2) && said.contains("hint: run as root"), "{said}");
}

/// A program to be watched. It is killed with the test, also if it is stopped.
struct Target(Child);

impl Target {
    fn start(command: &mut Command) -> Option<Self> {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok().map(Self)
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

fn sleeps() -> Command {
    let mut command = Command::new("sleep");
    command.arg("60");
    command
}

/// The letter of a process's state: S for asleep.
fn state(pid: u32) -> String {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("State:")).unwrap();
    line.split_whitespace().next().unwrap().to_owned()
}

/// Waits until a process is in a state.
fn wait_for(pid: u32, wanted: &str) {
    while state(pid) != wanted {
        thread::sleep(Duration::from_millis(5));
    }
}

/// Checks that watching a program is refused with these words, and that the program is then as before.
fn check_refused(pid: u32, words: &str) {
    let before = state(pid);
    let output = common::lowlat(&["cache", "false-sharing", "--duration", "5s", "--pid", &pid.to_string()]);
    let said = text(&output.stderr);
    if said.contains("breakpoints") {
        eprintln!("skipped: {words}: {said}");
        return;
    }
    assert!(output.status.code() == Some(2) && said.contains(words), "{said}");
    wait_for(pid, &before);
}

#[test]
fn programs_that_cannot_be_watched_are_refused_and_stay_as_they_are() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: programs_that_cannot_be_watched: needs root");
        return;
    }
    if state(2) == "S" && std::fs::read("/proc/2/cmdline").unwrap().is_empty() {
        check_refused(2, "cannot watch process 2: it has no memory of its own");
    } else {
        eprintln!("skipped: a kernel thread: process 2 is none");
    }

    let stopped = Target::start(&mut sleeps()).unwrap();
    let pid = stopped.0.id();
    let id = rustix::process::Pid::from_child(&stopped.0);
    rustix::process::kill_process(id, rustix::process::Signal::STOP).unwrap();
    wait_for(pid, "T");
    check_refused(pid, &format!("it is stopped\nhint: continue it with `kill -CONT {pid}`"));

    match Target::start(Command::new("strace").args(["-o", "/dev/null", "sleep", "60"])) {
        Some(strace) => {
            let strace_pid = strace.0.id();
            let path = format!("/proc/{strace_pid}/task/{strace_pid}/children");
            let traced = loop {
                let children = std::fs::read_to_string(&path).unwrap();
                // Also the child before it is `sleep`, which strace traces a little later.
                let first_child = children.split_whitespace().next().and_then(|pid| pid.parse().ok());
                if let Some(pid) = first_child.filter(|pid| is_sleep(*pid)) {
                    break pid;
                }
                thread::sleep(Duration::from_millis(5));
            };
            check_refused(traced, &format!("process {strace_pid} traces it\nhint: end that debugger first"));
            let id = rustix::process::Pid::from_raw(traced.cast_signed()).unwrap();
            rustix::process::kill_process(id, rustix::process::Signal::KILL).unwrap();
        }
        None => eprintln!("skipped: a traced program: no strace"),
    }

    if std::fs::read_to_string("/proc/sys/vm/unprivileged_userfaultfd").is_ok_and(|value| value.trim() == "0")
    {
        let of_nobody = Target::start(sleeps().uid(65_534).gid(65_534)).unwrap();
        let pid = of_nobody.0.id();
        wait_for(pid, "S");
        check_refused(pid, "Operation not permitted (os error 1)\nhint: run the program as root, or set vm.");
    } else {
        eprintln!("skipped: a program without userfaultfd: vm.unprivileged_userfaultfd is not 0");
    }
}

fn is_sleep(pid: u32) -> bool {
    std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.starts_with(b"sleep"))
        && state(pid) == "S"
}

#[test]
fn a_32_bit_program_is_refused() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: a_32_bit_program: needs root");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (folder.path().join("loop.c"), folder.path().join("loop"));
    std::fs::write(&source, "__asm__(\".globl _start\\n_start: pause\\njmp _start\");").unwrap();
    let mut compiler = Command::new("cc");
    compiler.args(["-m32", "-static", "-nostdlib", "-o"]).arg(&program).arg(&source).stderr(Stdio::null());
    if !compiler.status().is_ok_and(|status| status.success()) {
        eprintln!("skipped: a_32_bit_program: no compiler for x86");
        return;
    }
    let Some(running) = Target::start(&mut Command::new(&program)) else {
        eprintln!("skipped: a_32_bit_program: the kernel runs none");
        return;
    };
    let pid = running.0.id();
    check_refused(pid, "it is a 32-bit program\nhint: watch a 64-bit build of it");
}
