//! `lowlat run`: settings, checks, signals and exit codes.

use crate::common::{lowlat, text};
use std::{
    process::{Command, Stdio},
    thread,
    time::Duration,
};

fn first_cpu() -> String {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
    list.trim().split(['-', ',']).next().unwrap().to_owned()
}

#[test]
fn the_command_runs_where_it_was_asked_and_its_code_passes() {
    let cpu = first_cpu();
    let line = format!("grep -q 'Cpus_allowed_list:\t{cpu}$' /proc/self/status && exit 7");
    let output = lowlat(&["run", "--cpus", &cpu, "--", "sh", "-c", &line]);
    assert_eq!(output.status.code(), Some(7), "{}", text(&output.stderr));
    assert!(text(&output.stderr).starts_with(&format!("Run on CPU {cpu} (")), "{}", text(&output.stderr));
    let quiet = lowlat(&["run", "--quiet", "--cpus", &cpu, "--", "true"]);
    assert_eq!((quiet.status.code(), text(&quiet.stderr)), (Some(0), String::new()));
}

#[test]
fn every_thread_is_pinned_as_it_appears() {
    let cpu = first_cpu();
    // Threads of the interpreter start late, and one of them has a name of the map.
    let code = "import threading, time, os, sys\n\
        seen = {}\n\
        def work(name):\n\
        \x20   open(f'/proc/self/task/{threading.get_native_id()}/comm', 'w').write(name)\n\
        \x20   time.sleep(1)\n\
        \x20   seen[name] = os.sched_getaffinity(threading.get_native_id())\n\
        threads = [threading.Thread(target=work, args=(name,)) for name in ('one', 'md')]\n\
        [thread.start() for thread in threads]\n\
        [thread.join() for thread in threads]\n\
        sys.exit(0 if all(cpus == {int(sys.argv[1])} for cpus in seen.values()) and len(seen) == 2 else 9)";
    let map = format!("md={cpu}");
    let output = lowlat(&[
        "run",
        "--mode",
        "interrupt",
        "--cpus",
        &cpu,
        "--per-thread",
        &map,
        "--",
        "python3",
        "-c",
        code,
        &cpu,
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}

#[test]
fn signals_are_passed_on() {
    let mut run = Command::new(crate::common::binary())
        .args([
            "run",
            "--quiet",
            "--",
            "sh",
            "-c",
            "trap 'exit 5' TERM; echo ready; while :; do sleep 0.02; done",
        ])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(run.stdout.take().unwrap()), &mut line).unwrap();
    assert_eq!(line, "ready\n");
    let pid = rustix::process::Pid::from_child(&run);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    for _ in 0..500 {
        if let Some(status) = run.try_wait().unwrap() {
            assert_eq!(status.code(), Some(5));
            return;
        }
        thread::sleep(Duration::from_millis(20));
    }
    run.kill().unwrap();
    panic!("the command did not get the signal");
}

#[test]
fn unsound_launches_are_refused_before_the_command_starts() {
    for (arguments, expected) in [
        (&["--cpus", "4000"][..], "cannot run on CPU 4000: missing or offline"),
        (&["--cpus", "0", "--threads", "2"], "cannot run 2 spinning threads on CPU 0: each needs a CPU"),
        (&["--place", "near:desk9"], "cannot choose CPUs near desk9: no such interface"),
        (&["--mem", "node:63"], "cannot take memory from NUMA node 63: no such node"),
        (&["--vma"], "cannot accelerate with VMA: libvma.so is not installed"),
    ] {
        let output = lowlat(&[&["run"], arguments, &["--", "echo", "started"]].concat());
        let (error, printed) = (text(&output.stderr), text(&output.stdout));
        assert!(error.contains(expected) && error.contains("\nhint: "), "{arguments:?}: {error}");
        assert_eq!((output.status.code(), printed.as_str()), (Some(2), ""), "{arguments:?}");
    }
}

#[test]
fn a_dry_run_prints_the_shell_line_only() {
    let cpu = first_cpu();
    let output =
        lowlat(&["run", "--quiet", "--cpus", &cpu, "--sched", "fifo:50", "--dry-run", "--", "./md", "a b"]);
    assert_eq!(text(&output.stdout), format!("taskset -c {cpu} chrt --fifo 50 ./md 'a b'\n"));
}

/// A launcher that preloads nothing stands for Onload on a host where it cannot accelerate.
#[test]
fn a_socket_in_the_kernel_ends_a_run_that_requires_acceleration() {
    let folder = tempfile::tempdir().unwrap();
    let launcher = folder.path().join("onload");
    std::fs::write(&launcher, "#!/bin/sh\n[ \"$1\" = -p ] && shift 2\nexec \"$@\"\n").unwrap();
    std::fs::set_permissions(&launcher, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap());
    let run = |required: &[&str], line: &str| {
        Command::new(crate::common::binary())
            .args([&["run", "--onload"], required, &["--", "sh", "-c", line]].concat())
            .env("PATH", &path)
            .output()
            .unwrap()
    };
    let output = run(&["--require-accelerated"], "exec sleep 60");
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(
        error.contains("not accelerated by Onload: its library is not in the command's memory"),
        "{error}"
    );
    let output = run(&[], "sleep 1; exit 4");
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{error}");
    assert!(
        error.contains("Onload: onload -p latency") && error.contains("warning: Onload was not loaded"),
        "{error}"
    );
}
