//! `lowlat pipeline run` as a child.

use anyhow::{Context, bail, ensure};
use lowlat_pipeline::{Mode, PipelineDocument, PipelineParameters, PipelineRecord};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    io::Read,
    path::Path,
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

const LOOK: Duration = Duration::from_millis(20);
/// Time to start and end its processes, in addition to the schedule's length.
const AROUND: Duration = Duration::from_secs(40);
/// Its exit code for a run in which something was lost, or came late.
const FINDINGS: i32 = 1;
/// Time between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(5);

/// Its command line for a run.
fn command_line(parameters: &PipelineParameters) -> Vec<String> {
    let mode = match parameters.mode {
        Mode::Fast => "fast",
        Mode::Parked => "parked",
        Mode::Adaptive => "adaptive",
        Mode::Mixed => "mixed",
        Mode::PlatformFast => "platform-fast",
    };
    // --force: the other contestants run on a busy machine too, and lowlat's doubts are in the document.
    let mut words: Vec<_> = ["pipeline", "run", "--json", "--force"].map(str::to_owned).into();
    for (option, value) in [
        ("--strategies", parameters.strategies.to_string()),
        ("--rate", parameters.rate_per_s.to_string()),
        ("--mode", mode.to_owned()),
        ("--duration", format!("{}s", parameters.duration_s)),
        // No contestant has a book.
        ("--fills", "at-once".to_owned()),
    ] {
        words.extend([option.to_owned(), value]);
    }
    let pins = parameters.pins.iter().map(|(role, cpus)| {
        let cpus: Vec<_> = cpus.iter().map(u32::to_string).collect();
        format!("{role}={}", cpus.join(","))
    });
    let pins: Vec<_> = pins.collect();
    if !pins.is_empty() {
        words.extend(["--pins".to_owned(), pins.join(",")]);
    }
    if let Some(cpu) = parameters.host_core {
        words.extend(["--host-core".to_owned(), cpu.to_string()]);
    }
    words
}

/// Asked to end, then killed, when dropped.
struct Running(Child);

impl Running {
    fn end(&mut self) {
        if matches!(self.0.try_wait(), Ok(Some(_))) {
            return;
        }
        // It ends its own children on SIGTERM, which SIGKILL would prevent.
        let _ = kill_process(Pid::from_child(&self.0), Signal::TERM);
        let start = Instant::now();
        while start.elapsed() < GRACE {
            if matches!(self.0.try_wait(), Ok(Some(_))) {
                return;
            }
            thread::sleep(LOOK);
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

/// Runs it once, and returns its record.
pub fn run(
    lowlat: &Path,
    parameters: &PipelineParameters,
    stop: &AtomicBool,
) -> anyhow::Result<PipelineRecord> {
    let words = command_line(parameters);
    let told = || format!("{} {}", lowlat.display(), words.join(" "));
    let child = Command::new(lowlat)
        .args(&words)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {}", lowlat.display()))?;
    let mut running = Running(child);
    // Read in separate threads, so that it never blocks on a full pipe.
    let output = running.0.stdout.take().map(|from| thread::spawn(move || text(from)));
    let errors = running.0.stderr.take().map(|from| thread::spawn(move || text(from)));
    let patience = AROUND + Duration::from_secs_f64(parameters.duration_s);
    let start = Instant::now();
    let status = loop {
        if let Some(status) = running.0.try_wait()? {
            break status;
        }
        if stop.load(Ordering::Relaxed) {
            bail!("interrupted");
        }
        ensure!(start.elapsed() < patience, "{}: no end within {patience:?}", told());
        thread::sleep(LOOK);
    };
    let joined =
        |from: Option<thread::JoinHandle<String>>| from.and_then(|it| it.join().ok()).unwrap_or_default();
    let (output, errors) = (joined(output), joined(errors));
    // A run with findings prints a document; other failures print none.
    let is_run = matches!(status.code(), Some(0 | FINDINGS));
    ensure!(is_run && !output.is_empty(), "{} ended with {status}: {}", told(), errors.trim());
    let document: PipelineDocument =
        serde_json::from_str(&output).with_context(|| format!("{}: its document cannot be read", told()))?;
    Ok(document.record)
}

fn text(mut from: impl Read) -> String {
    let mut bytes = Vec::new();
    // Keeps what could be read before an error.
    let _ = from.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowlat_pipeline::ProcessRole;

    fn parameters() -> PipelineParameters {
        PipelineParameters {
            strategies: 8,
            rate_per_s: 800.0,
            mode: Mode::Mixed,
            duration_s: 1.5,
            pins: [(ProcessRole::Md, vec![0]), (ProcessRole::Strategies, vec![1, 3])].into(),
            host_core: None,
            may_use_huge_pages: false,
            has_md_threads: false,
            strategy_cost_ns: 0,
        }
    }

    #[test]
    fn the_command_line_says_all_of_it() {
        assert_eq!(
            command_line(&parameters()).join(" "),
            "pipeline run --json --force --strategies 8 --rate 800 --mode mixed --duration 1.5s --fills at-once --pins md=0,strategies=1,3"
        );
    }

    #[test]
    fn what_it_says_on_failure_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("lowlat");
        // Another process writes it. A process that another test forks would inherit the file open for writing, and the
        // kernel does not execute such a file.
        let write = |text: &str| {
            let arguments = ["-c", "printf %s \"$1\" > lowlat && chmod 755 lowlat", "sh", text];
            assert!(Command::new("sh").args(arguments).current_dir(&folder).status().unwrap().success());
        };
        write("#!/bin/sh\necho no such CPU >&2\nexit 2\n");
        let error = run(&program, &parameters(), &AtomicBool::new(false)).unwrap_err().to_string();
        assert!(error.contains("no such CPU"), "{error}");
        write("#!/bin/sh\nexec sleep 600\n");
        let error = run(&program, &parameters(), &AtomicBool::new(true)).unwrap_err().to_string();
        assert!(error.contains("interrupted"), "{error}");
    }
}
