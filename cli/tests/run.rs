//! `lowlat run`: settings, checks, signals and exit codes.

use crate::common::{lowlat, programs::write_program, text};
use std::{
    io::{BufRead as _, BufReader},
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

fn allowed() -> Vec<u32> {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
    lowlat_host::CpuSet::parse_list(list.trim()).unwrap().iter().collect()
}

fn first_cpu() -> String {
    allowed()[0].to_string()
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

/// The command starts with the signal mask that lowlat got, although lowlat blocks signals to pass them on.
#[test]
fn the_command_gets_its_own_signals() {
    let cpu = first_cpu();
    let mask = |line: &str| {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let status = if line.is_empty() { status } else { line.to_owned() };
        status.lines().find_map(|line| line.strip_prefix("SigBlk:")).unwrap().trim().to_owned()
    };
    let run = |arguments: &[&str]| {
        let output = lowlat(&[&["run", "--quiet"], arguments].concat());
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    for copies in [&["--cpus", &cpu, "--"][..], &["--place", "cluster-spread", "1", "--"]] {
        assert_eq!(mask(&run(&[copies, &["cat", "/proc/self/status"]].concat())), mask(""), "{copies:?}");
        // A shell waits for its child by SIGCHLD, and ends a child by a signal.
        let script = "sleep 0.1 & wait; sleep 600 & kill -TERM $!; wait $!; [ $? -eq 143 ] && echo ended";
        assert_eq!(run(&[copies, &["sh", "-c", script]].concat()).trim(), "ended");
    }
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
fn names_that_never_appear_and_threads_that_move_are_told() {
    let cpus = allowed();
    let [first, .., last] = cpus[..] else {
        eprintln!("skipped: names_that_never_appear_and_threads_that_move_are_told: there is one CPU");
        return;
    };
    let map = format!("md={last},x*={last}");
    let code = "import os, sys, time\n\
        open('/proc/self/comm', 'w').write('xyz')\n\
        time.sleep(0.5)\n\
        os.sched_setaffinity(0, {int(sys.argv[1])})\n\
        time.sleep(0.5)\n\
        sys.exit(0 if os.sched_getaffinity(0) == {int(sys.argv[1])} else 9)";
    let run = ["run", "--mode", "interrupt", "--cpus", &first.to_string(), "--per-thread", &map, "--"];
    let output = lowlat(&[&run[..], &["python3", "-c", code, &first.to_string()]].concat());
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("no thread named md was seen"), "{said}");
    let moved = said.lines().find(|line| line.contains("moved threads itself")).unwrap_or_default();
    assert!(moved.contains("xyz (") && moved.ends_with(&format!("chose CPU {first}")), "{said}");
    // No such warning if the command stays on its CPUs.
    let output = lowlat(&["run", "--cpus", &first.to_string(), "--", "sleep", "0.3"]);
    let said = text(&output.stderr);
    assert!(!said.contains("moved threads") && !said.contains("no thread named"), "{said}");
}

#[test]
fn an_interface_without_a_device_chooses_no_cpu() {
    let said = text(&lowlat(&["run", "--place", "near:lo", "--", "true"]).stderr);
    assert!(said.contains("no CPU is nearer to lo than others: it has no device"), "{said}");
}

#[test]
fn copies_get_a_cpu_each_and_the_worst_code_passes() {
    let folder = tempfile::tempdir().unwrap();
    let cpus = allowed();
    let line = format!(
        "sed -n 's/Cpus_allowed_list:.//p' /proc/self/status > {}/$$; mkdir {0}/first 2>/dev/null && exit 7; exit 3",
        folder.path().display()
    );
    let count = cpus.len().to_string();
    let place = ["--mode", "interrupt", "--place", "cluster-spread", &count];
    let output = lowlat(&[&["run"], &place[..], &["--", "sh", "-c", &line]].concat());
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(7), "{said}");
    let noun = if count == "1" { "copy" } else { "copies" };
    assert!(said.starts_with(&format!("Run {count} {noun} on CPU")), "{said}");
    let files = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
    let read =
        |path: std::path::PathBuf| std::fs::read_to_string(path).unwrap().trim().parse::<u32>().unwrap();
    let mut seen: Vec<u32> = files.filter(|path| path.is_file()).map(read).collect();
    seen.sort_unstable();
    assert_eq!(seen, cpus);
    let many = (cpus.len() + 1).to_string();
    let output = lowlat(&["run", "--place", "cluster-spread", &many, "--", "true"]);
    let said = text(&output.stderr);
    assert!(said.contains(&format!("cannot run {many} spinning copies")), "{said}");
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn threads_that_start_later_get_the_next_cpus() {
    let cpus = allowed();
    // Each thread waits until it is pinned to one CPU, for a minute at most.
    let code = "import threading, time, os\n\
        seen = []\n\
        def work():\n\
        \x20   end = time.time() + 60\n\
        \x20   while len(os.sched_getaffinity(threading.get_native_id())) > 1 and time.time() < end: time.sleep(0.01)\n\
        \x20   seen.append(os.sched_getaffinity(threading.get_native_id()))\n\
        \x20   time.sleep(3)\n\
        time.sleep(0.3)\n\
        threads = []\n\
        for n in range(os.cpu_count() - 1):\n\
        \x20   os.sched_setaffinity(0, range(os.cpu_count()))\n\
        \x20   threads.append(threading.Thread(target=work))\n\
        \x20   threads[-1].start()\n\
        \x20   time.sleep(0.3)\n\
        [thread.join() for thread in threads]\n\
        print(sorted(cpu for cpus in seen for cpu in cpus))";
    if thread::available_parallelism().unwrap().get() != cpus.len() || cpus.len() > 16 || cpus.len() < 2 {
        eprintln!(
            "skipped: threads_that_start_later_get_the_next_cpus: needs 2 to 16 CPUs, all of them allowed"
        );
        return;
    }
    let output = lowlat(&[
        "run",
        "--quiet",
        "--mode",
        "interrupt",
        "--place",
        "cluster-spread",
        "--",
        "python3",
        "-c",
        code,
    ]);
    let (printed, said) = (text(&output.stdout), text(&output.stderr));
    // The main thread has the first CPU of the order, and the others have one each.
    let all: Vec<u32> =
        printed.trim_matches(['[', ']', '\n']).split(", ").map(|cpu| cpu.parse().unwrap()).collect();
    let distinct: std::collections::BTreeSet<u32> = all.iter().copied().collect();
    assert_eq!((all.len(), distinct.len()), (cpus.len() - 1, cpus.len() - 1), "{printed}{said}");
}

/// Three copies that write a file named by their process id when they have started.
fn start_copies(folder: &std::path::Path) -> (Child, Vec<String>) {
    let line = format!("trap 'exit 5' TERM; touch {}/$$; while :; do sleep 0.02; done", folder.display());
    let mut run = Command::new(crate::common::binary())
        .args(["run", "--quiet", "--mode", "interrupt", "3", "--", "sh", "-c", &line])
        .spawn()
        .unwrap();
    loop {
        let entries = std::fs::read_dir(folder).unwrap();
        let pids: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        if pids.len() == 3 {
            return (run, pids);
        }
        assert!(run.try_wait().unwrap().is_none(), "it runs until the signal");
        thread::sleep(Duration::from_millis(20));
    }
}

fn is_running(pid: &str) -> bool {
    // An orphan may stay a zombie if nobody waits for it.
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

#[test]
fn signals_reach_every_copy_and_none_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let (mut run, pids) = start_copies(folder.path());
    let pid = rustix::process::Pid::from_child(&run);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert_eq!(run.wait().unwrap().code(), Some(5));
    assert!(!pids.iter().any(|pid| is_running(pid)), "{pids:?}");
}

#[test]
fn copies_end_with_a_run_that_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let (mut run, pids) = start_copies(folder.path());
    run.kill().unwrap();
    run.wait().unwrap();
    for _ in 0..500 {
        if !pids.iter().any(|pid| is_running(pid)) {
            return;
        }
        thread::sleep(Duration::from_millis(20));
    }
    panic!("{pids:?} are left");
}

const TERM: u32 = 15;

/// A command that names each signal that it gets, and ends with code 5 after SIGTERM.
const TELLER: &str = "import os, signal\n\
    kept = {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD}\n\
    got = signal.valid_signals() - kept\n\
    signal.pthread_sigmask(signal.SIG_BLOCK, got)\n\
    print('ready', os.getpid(), flush=True)\n\
    while True:\n\
    \x20   info = signal.sigtimedwait(got, 60)\n\
    \x20   if not info: os._exit(9)\n\
    \x20   print(info.si_signo, flush=True)\n\
    \x20   if info.si_signo == signal.SIGTERM: os._exit(5)";

#[test]
fn every_signal_that_would_end_lowlat_is_passed_on() {
    for copies in [&[][..], &["1"]] {
        let mut run = Command::new(crate::common::binary())
            .args([&["run", "--quiet"], copies, &["--", "python3", "-c", TELLER]].concat())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(run.stdout.take().unwrap()).lines().map(Result::unwrap);
        assert!(lines.next().unwrap().starts_with("ready "));
        // Faults, SIGKILL, SIGPIPE, SIGCHLD and those of job control; 32 and 33 are the C library's.
        let kept = [4, 5, 6, 7, 8, 9, 11, 13, 17, 19, 20, 21, 22, 31, 32, 33];
        let signals = (1..=64).filter(|number| !kept.contains(number) && *number != TERM);
        // It ends the command, so it comes last.
        for signal in signals.chain([TERM]) {
            let line = format!("kill -{signal} {}", run.id());
            assert!(Command::new("sh").args(["-c", &line]).status().unwrap().success(), "{line}");
            assert_eq!(lines.next(), Some(signal.to_string()), "{copies:?}");
        }
        assert_eq!(run.wait().unwrap().code(), Some(5));
    }
}

/// Ctrl-C and Ctrl-Z reach the command once, in a terminal whose foreground is lowlat's process group.
#[test]
fn a_terminal_interrupts_and_stops_the_command() {
    let script = "import os, pty, signal, sys, time\n\
        leader, terminal = pty.fork()\n\
        if leader == 0:\n\
        \x20   child = os.fork()\n\
        \x20   if child == 0:\n\
        \x20       os.setpgid(0, 0)\n\
        \x20       signal.signal(signal.SIGTTOU, signal.SIG_IGN)\n\
        \x20       os.tcsetpgrp(0, os.getpid())\n\
        \x20       signal.signal(signal.SIGTTOU, signal.SIG_DFL)\n\
        \x20       os.execv(sys.argv[1], sys.argv[1:])\n\
        \x20   while True:\n\
        \x20       _, status = os.waitpid(child, os.WUNTRACED)\n\
        \x20       if not os.WIFSTOPPED(status): os._exit(os.waitstatus_to_exitcode(status))\n\
        \x20       state = lambda pid: open(f'/proc/{pid}/stat').read().rsplit(') ')[1][0]\n\
        \x20       below = open(f'/proc/{child}/task/{child}/children').read().split()\n\
        \x20       end = time.time() + 60\n\
        \x20       while any(state(pid) != 'T' for pid in below) and time.time() < end: time.sleep(0.01)\n\
        \x20       print('stopped', len(below), ''.join(map(state, below)), flush=True)\n\
        \x20       os.killpg(child, signal.SIGCONT)\n\
        said = b''\n\
        keys = [(b'ready', b'\\x1a'), (b'stopped 1 T', b''), (b'goes on', b'\\x03'), (b'interrupted', b'\\x1c')]\n\
        try:\n\
        \x20   while True:\n\
        \x20       while keys and keys[0][0] in said: os.write(terminal, keys.pop(0)[1])\n\
        \x20       said += os.read(terminal, 1000)\n\
        except OSError: pass\n\
        print(said.decode())\n\
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(leader, 0)[1]))";
    let command = "import os, signal\n\
        count = 0\n\
        def interrupted(*_):\n\
        \x20   global count\n\
        \x20   count += 1\n\
        \x20   print('interrupted', flush=True)\n\
        signal.signal(signal.SIGINT, interrupted)\n\
        signal.signal(signal.SIGCONT, lambda *_: print('goes on', flush=True))\n\
        signal.signal(signal.SIGQUIT, lambda *_: os._exit(40 + count))\n\
        print('ready', flush=True)\n\
        while True: signal.pause()";
    let output = Command::new("timeout")
        .args(["60", "python3", "-c", script])
        .arg(crate::common::binary())
        .args(["run", "--quiet", "--", "python3", "-c", command])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(41), "{}{}", text(&output.stdout), text(&output.stderr));
}

/// The process that starts lowlat may ignore SIGCHLD. The kernel then reaps children, and their exit codes are lost.
#[test]
fn ignored_signals_stay_so_and_the_code_passes() {
    let script = "import os, signal, sys\n\
        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}: signal.signal(number, signal.SIG_DFL)\n\
        for number in (signal.SIGCHLD, signal.SIGHUP): signal.signal(number, signal.SIG_IGN)\n\
        os.execv(sys.argv[1], sys.argv[1:])";
    let output = Command::new("timeout")
        .args(["60", "python3", "-c", script])
        .arg(crate::common::binary())
        .args(["run", "--quiet", "--", "sh", "-c", "cat /proc/self/status; exit 7"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(7), "{}", text(&output.stderr));
    let status = text(&output.stdout);
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    // Bit 0 is SIGHUP; those above 28 may be the C library's.
    assert_eq!(&ignored.trim()[9..], "0000001");
}

#[test]
fn a_command_ends_with_a_run_that_is_killed() {
    let mut run = Command::new(crate::common::binary())
        .args(["run", "--quiet", "--", "python3", "-c", TELLER])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(run.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.next().unwrap().starts_with("ready "));
    run.kill().unwrap();
    assert_eq!(lines.next(), Some(TERM.to_string()));
    assert_eq!(lines.next(), None, "the command has ended");
    run.wait().unwrap();
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
    let output = lowlat(&["run", "--quiet", "--place", "cluster-pack", "1", "--dry-run", "--", "./md"]);
    let printed = text(&output.stdout);
    assert!(printed.starts_with("taskset -c ") && printed.ends_with(" ./md &\nwait\n"), "{printed}");
    let output = lowlat(&["run", "./md"]);
    let said = text(&output.stderr);
    assert!(said.contains("expected a number of copies, then -- and the command"), "{said}");
    let output = lowlat(&["run", "--mode", "interrupt", "4294967295", "--", "true"]);
    assert!(text(&output.stderr).contains("at most 65536 copies"), "{}", text(&output.stderr));
}

/// Stands for Onload: its launcher, its library, its sockets as open files, and its stackdump.
struct Onload {
    folder: tempfile::TempDir,
}

impl Onload {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        // As Onload's script does: a test prints the environment, and variables that are set stay.
        let launcher = format!(
            "#!/bin/sh\n\
             if [ \"$1\" = --test ]; then test=1; shift; fi\n\
             if [ \"$1\" = --no-app-handler ]; then shift; fi\n\
             if [ \"$1\" = -p ]; then\n\
             \x20 [ \"$2\" = latency ] || {{ echo \"onload: ERROR: Cannot find profile '$2'\" >&2; exit 3; }}\n\
             \x20 export EF_POLL_USEC=\"${{EF_POLL_USEC:-100000}}\"; shift 2\n\
             fi\n\
             export LD_PRELOAD={0}/libonload.so\n\
             if [ -n \"$test\" ]; then env | grep -E '^(EF_|LD_PRELOAD=)' | sed 's/^/onload: env: /'; exit; fi\n\
             [ -z \"$SLOW\" ] || LD_PRELOAD= sleep 2\n\
             exec \"$@\"\n",
            folder.path().display()
        );
        write_program(&at("onload"), &launcher);
        write_program(
            &at("onload_stackdump"),
            &format!("#!/bin/sh\n[ -n \"$LD_PRELOAD\" ] || cat {}/dump\n", folder.path().display()),
        );
        std::fs::write(at("onload:[tcp:1:2]"), "").unwrap();
        // Any library does: the loader maps it under the name of this copy.
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let library = maps.lines().find(|line| line.contains("/libgcc_s.so")).unwrap();
        let library = &library[library.find('/').unwrap()..];
        std::fs::copy(library, at("libonload.so")).unwrap();
        Self { folder }
    }

    /// Runs a line of Python with one argument, the open file of a socket of Onload, below a shell. Returns the exit code
    /// and what was said on stderr.
    fn run(
        &self,
        options: &[&str],
        variables: &[(&str, &str)],
        dump: &str,
        line: &str,
    ) -> (Option<i32>, String) {
        let folder = self.folder.path();
        std::fs::write(folder.join("dump"), dump).unwrap();
        let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
        let script = format!("import socket, sys, time\n{line}\nsys.exit(4)");
        let output = Command::new(crate::common::binary())
            .args(
                [&["run", "--onload"], options, &["--", "sh", "-c", "python3 -c \"$0\" \"$1\"; exit $?"]]
                    .concat(),
            )
            .arg(script)
            .arg(folder.join("onload:[tcp:1:2]"))
            .env("PATH", path)
            .envs(variables.iter().copied())
            .output()
            .unwrap();
        (output.status.code(), text(&output.stderr))
    }
}

const IDLE: &str = "TCP 1:2 lcl=10.0.0.1:4000 rmt=0.0.0.0:0 CLOSED\n";
const CARRIED: &str = "TCP 1:2 lcl=10.0.0.1:4000 rmt=10.0.0.2:5000 ESTABLISHED\n  rcv: bytes=64 tot_pkts=9\n";
const OPEN: &str = "file = open(sys.argv[1])";
const LOOPBACK: &str = "s = socket.create_server(('127.0.0.1', 0))";
const KERNEL: &str = "s = socket.create_server(('0.0.0.0', 0))";

#[test]
fn what_carries_traffic_decides_and_children_count() {
    let onload = Onload::new();
    let not_seen = "warning: Onload: not proven: no socket was seen that carried traffic";
    for (case, variables, dump, line, code, said) in [
        ("too short", &[][..], "", "", 4, not_seen),
        ("loopback only", &[], "", &*format!("{LOOPBACK}\ntime.sleep(1.5)"), 4, not_seen),
        ("not connected", &[], IDLE, &format!("{OPEN}\ntime.sleep(1.5)"), 4, not_seen),
        ("slow launcher", &[("SLOW", "1")], IDLE, OPEN, 4, not_seen),
        (
            "connected",
            &[],
            CARRIED,
            &format!("{OPEN}\ntime.sleep(1.5)"),
            4,
            "\nOnload: accelerated: 1 socket carried",
        ),
        (
            "not shown",
            &[],
            "",
            &format!("{OPEN}\ntime.sleep(1.5)"),
            4,
            "not proven: onload_stackdump does not show",
        ),
        (
            "in the kernel",
            &[],
            CARRIED,
            &format!("{OPEN}\n{KERNEL}\ntime.sleep(60)"),
            2,
            "the kernel serves tcp 0.0.0.0:",
        ),
    ] {
        let (ended, printed) = onload.run(&["--require-accelerated"], variables, dump, line);
        assert!(ended == Some(code) && printed.contains(said), "{case}: {ended:?} {printed}");
    }
    // Without the option the command runs to its end, and the finding is printed.
    let line = format!("{KERNEL}\ntime.sleep(1.5)");
    let (code, said) = onload.run(&[], &[], "", &line);
    assert!(code == Some(4) && said.contains("warning: Onload: the kernel serves tcp 0.0.0.0:"), "{said}");
    assert!(said.contains(" of python3\n"), "{said}");
    // Of a scope only its own sockets count.
    let (code, said) = onload.run(&["--require-accelerated=9,10.9.0.0/16"], &[], "", &line);
    assert!(code == Some(4) && said.contains(not_seen), "{said}");
    let (code, said) = onload.run(&["--require-accelerated=desk9"], &[], "", &line);
    assert!(
        code == Some(2) && said.contains("cannot require acceleration of desk9: no such interface"),
        "{said}"
    );
}

#[test]
fn the_announced_variables_are_those_in_force() {
    let onload = Onload::new();
    let (_, said) = onload.run(&[], &[], "", "");
    assert!(said.contains("Onload: onload -p latency EF_POLL_USEC=100000"), "{said}");
    let (_, said) = onload.run(&[], &[("EF_POLL_USEC", "0")], "", "");
    assert!(said.contains("EF_POLL_USEC=0") && said.contains("Onload does not spin"), "{said}");
    let (_, said) = onload.run(&["--mode", "interrupt"], &[("EF_POLL_USEC", "50")], "", "");
    assert!(
        said.contains("onload --no-app-handler") && said.contains("Onload spins before it waits"),
        "{said}"
    );
    // A release without this profile.
    let launcher = "#!/bin/sh\necho \"onload: ERROR: Cannot find profile '$3'\" >&2\nexit 3\n";
    write_program(&onload.folder.path().join("onload"), launcher);
    let (code, said) = onload.run(&[], &[], "", "");
    assert!(code == Some(2) && said.contains("cannot use Onload's profile 'latency'"), "{said}");
    // A host without Onload shows the line.
    let output = Command::new(crate::common::binary())
        .args(["run", "--onload", "--mode", "interrupt", "--cpus", &first_cpu(), "--dry-run", "--", "./md"])
        .env("PATH", "/nonexistent")
        .output()
        .unwrap();
    let (line, said) = (text(&output.stdout), text(&output.stderr));
    assert!(line.ends_with(" onload --no-app-handler ./md\n") && output.status.success(), "{line}{said}");
    assert!(said.contains("warning: Onload is not installed on this host"), "{said}");
}
