//! `lowlat cache false-sharing --pid PID` and `-- CMD`: lines that threads of a program share.

use crate::{commands::outputs::Outputs, documents::Run, exit::Exit, output, signals};
use anyhow::Context;
use lowlat_cache::{
    FalseSharing, FalseSharingMeasurement,
    finder::{End, Sharing},
};
use lowlat_cores_run::cache::finder;
use std::{
    os::fd::AsFd,
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

/// Interval of the checks whether a command has ended.
const LOOK: Duration = Duration::from_millis(20);

/// Program to watch.
pub enum Target<'a> {
    /// A running process, by its id.
    Process(u32),
    /// A command and its arguments.
    Command(&'a [String]),
}

/// Watches a program and prints what was found.
pub fn find(target: &Target, duration: Duration, mut run: Run, outputs: &Outputs) -> anyhow::Result<Exit> {
    let stop = signals::stop_flag()?;
    let (pid, child) = match target {
        Target::Process(pid) => (*pid, None),
        Target::Command(words) => {
            let child = start(words, outputs.is_json())?;
            (child.id(), Some(child))
        }
    };
    run.progress.say("watching the program's writes");
    run.start();
    let say = |text: &str| run.progress.say(text);
    let record = finder::run(&run.host.root, pid, child.is_some(), duration, &stop, &say);
    run.progress.finish();
    // Even a command that cannot be watched runs to its end.
    let waited = |child: Option<Child>| child.map_or(Ok(()), |child| wait(child, &stop));
    let record = match record {
        Ok(record) => record,
        Err(error) => {
            output::talk(&format!("lowlat: {error}"));
            waited(child)?;
            return Ok(Exit::Error);
        }
    };
    let is_found = record.findings().iter().any(|finding| finding.sharing != Sharing::True);
    let exit = match record.end {
        End::Interrupted => Exit::Interrupted,
        _ if is_found || !record.suspects().is_empty() => Exit::Findings,
        _ if record.is_partial() => Exit::NotJudged,
        _ => Exit::Clean,
    };
    let measured = FalseSharing::Program(Box::new(record));
    let written = outputs.write(&run.document(vec![FalseSharingMeasurement::from(measured).into()], &stop));
    waited(child)?;
    written.map(|()| exit)
}

/// Starts the command. Its output goes to stderr if stdout is for JSON.
fn start(words: &[String], is_json: bool) -> anyhow::Result<Child> {
    let (program, arguments) = words.split_first().context("cannot start a command: it has no words")?;
    let mut command = Command::new(program);
    command.args(arguments);
    if is_json {
        command.stdout(Stdio::from(std::io::stderr().as_fd().try_clone_to_owned()?));
    }
    command.spawn().with_context(|| format!("cannot start {program}"))
}

/// Waits for the command's end. A signal to this process ends the command.
fn wait(mut child: Child, stop: &AtomicBool) -> anyhow::Result<()> {
    let mut is_told = false;
    loop {
        match child.try_wait() {
            Ok(None) => {}
            // The thread that traced it has waited for it.
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::CHILD.raw_os_error()) => {
                return Ok(());
            }
            other => return other.map(|_| ()).context("cannot wait for the command"),
        }
        // Relaxed: set by the signal handler; orders nothing.
        if stop.load(Ordering::Relaxed) && !is_told {
            is_told = true;
            let pid = rustix::process::Pid::from_child(&child);
            rustix::process::kill_process(pid, rustix::process::Signal::TERM).ok();
        }
        thread::sleep(LOOK);
    }
}
