//! Measurements beside a real-time thread that holds a CPU: each ends at its end or on a signal. A separate program, so
//! that no other test runs at the same time.

#[path = "common/running.rs"]
mod running;

use running::Running;
use rustix::process::{Pid, Signal, kill_process};
use std::{
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

/// Longer than a test waits: a command that ends only with it has hung.
const HOG_S: &str = "120";
/// Time in which a command may end without a signal.
const BY_ITSELF: Duration = Duration::from_millis(700);
/// Time in which it must end after the signal.
const ON_SIGNAL: Duration = Duration::from_secs(60);

/// Commands that use the CPU, with {} for its number.
const COMMANDS: &[&str] = &[
    "jitter --cpus {} --duration 1s",
    "jitter --cpus {} --duration 1s --fifo 10",
    "assess --cpus {} --duration 1s",
    "watch --cpus {} --once",
    "watch --cpus {} --sample --interval 1s --exporter 127.0.0.1:0",
    "cache c2c",
    "cache clock",
    "cache clusters",
    "cache false-sharing",
    "cache memory",
    "workload run sem-posix",
    "pipeline run --strategies 2 --duration 1s",
];

fn end_of(child: &mut Child, within: Duration) -> Option<ExitStatus> {
    let began = Instant::now();
    while began.elapsed() < within {
        if let Some(status) = child.try_wait().unwrap() {
            return Some(status);
        }
        thread::sleep(Duration::from_millis(50));
    }
    None
}

/// A thread with SCHED_FIFO 20 that never leaves the CPU.
fn hog(cpu: u32) -> Running {
    let script = "exec timeout -s KILL \"$1\" taskset -c \"$0\" chrt -f 20 sh -c 'while :; do :; done'";
    let child = Command::new("sh").args(["-c", script, &cpu.to_string(), HOG_S]).spawn().unwrap();
    Running(Some(child))
}

/// Each test leaves ordinary threads, or those of a lower priority, no CPU: one at a time.
static ONE: Mutex<()> = Mutex::new(());

#[test]
fn a_real_time_thread_hangs_no_measurement() {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    if !Command::new("chrt").args(["-f", "20", "true"]).status().is_ok_and(|status| status.success()) {
        eprintln!("skipped: a_real_time_thread_hangs_no_measurement: chrt -f 20 is not permitted here");
        return;
    }
    let allowed = lowlat_host_run::affinity::current().unwrap();
    let cpu = allowed.highest().unwrap();
    if allowed.len() == 1 {
        eprintln!("skipped: a_real_time_thread_hangs_no_measurement: there is one CPU, which it would hold");
        return;
    }
    let _hog = hog(cpu);
    thread::scope(|scope| {
        for commands in COMMANDS.chunks(2) {
            scope.spawn(move || commands.iter().for_each(|command| ends(command, cpu)));
        }
    });
}

/// Asserts that a command ends by itself or on a signal.
fn ends(command: &str, cpu: u32) {
    // Some of them write their result where they run.
    let folder = tempfile::tempdir().unwrap();
    let words = command.replace("{}", &cpu.to_string());
    let mut child = Command::new(env!("CARGO_BIN_EXE_lowlat"));
    child
        .current_dir(folder.path())
        .args(words.split(' '))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .stdin(Stdio::null());
    let mut child = child.spawn().unwrap();
    if end_of(&mut child, BY_ITSELF).is_some() {
        return;
    }
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let began = Instant::now();
    let ended = end_of(&mut child, ON_SIGNAL);
    eprintln!("{words}: {ended:?} {:.1?} after the signal", began.elapsed());
    if ended.is_none() {
        child.kill().unwrap();
        panic!("{words}: still running {ON_SIGNAL:?} after SIGTERM");
    }
}

/// Threads of this priority on every CPU let nothing else run: each must check its own deadline.
#[test]
fn a_measurement_with_real_time_priority_ends() {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    if !Command::new("chrt").args(["-f", "5", "true"]).status().is_ok_and(|status| status.success()) {
        eprintln!("skipped: a_measurement_with_real_time_priority_ends: chrt -f 5 is not permitted here");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for command in [
        "cache c2c",
        "cache clock --duration 300ms",
        "cache clusters --rounds 1",
        "cache false-sharing --rounds 1",
        "cache memory --buffer 8M --largest 8M --rounds 1 --curves",
        "jitter --duration 300ms",
        "workload run sem-posix",
        "workload run integer-base",
        "pipeline run --strategies 2 --duration 300ms",
    ] {
        let mut child = Command::new("chrt");
        child.args(["-f", "5", env!("CARGO_BIN_EXE_lowlat")]).args(command.split(' '));
        let mut child = child
            .current_dir(folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let ended = end_of(&mut child, ON_SIGNAL);
        if ended.is_none() {
            child.kill().unwrap();
            panic!("{command}: still running after {ON_SIGNAL:?}");
        }
    }
}
