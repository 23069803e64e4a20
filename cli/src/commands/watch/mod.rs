//! `lowlat watch`: what disturbs this host's CPUs now, on a terminal, as JSON, or as metrics.

mod exporter;
mod screen;
mod watcher;

use super::{Subcommand, help};
use crate::{
    arguments::{cpus, duration},
    choose,
    exit::{Exit, Interrupted},
    output,
    results::PreparedFile,
    role, signals,
};
use anyhow::bail;
use clap::{ArgMatches, Args, FromArgMatches};
use exporter::Exporter;
use lowlat_host::{CpuSet, HostSnapshot};
use lowlat_host_run::{Root, snapshot};
use lowlat_jitter_report::watch::{Line, Subject, classic, plain_text};
pub use screen::restore_terminal;
use std::{
    io::{self, IsTerminal},
    net::SocketAddr,
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};
use watcher::Watcher;

pub const COMMAND: Subcommand = Subcommand { name: "watch", declare: WatchArgs::augment_args, run };

/// Default interval of a view, and of metrics.
const EVERY: Duration = Duration::from_secs(1);
const EVERY_OF_METRICS: Duration = Duration::from_secs(10);
/// Shortest interval: the kernel's CPU times have a resolution of 10 ms.
const EVERY_MIN: Duration = Duration::from_millis(100);
const EVERY_MAX: Duration = Duration::from_secs(3_600);

/// Watch live what disturbs this host's CPUs, its settings and its network
#[derive(Debug, Args)]
#[command(after_help = help("States of a CPU:\n\
    \x20 quiet        no disturbance\n\
    \x20 interrupted  more than 10 interrupts per second arrive\n\
    \x20 ticking      its timer tick runs\n\
    \x20 intruder     a thread ran there that may also run on other CPUs\n\
    \x20 unknown      its interrupts or its threads cannot be read\n\
    \x20 shared       not expected to be quiet: neither isolated nor named with --cpus\n\n\
    Without --sample, lowlat reads the kernel's counters, which does not disturb the watched CPUs: it knows how often \
    something ran there, but not for how long. With --sample it knows both. Settings are compared with the plan in \
    force every 30 s, or once in a longer interval; with --sample once, at the start.\n\n\
    Keys: q or Ctrl-C quits, p pauses, s sorts the CPUs by number, state or rate, up and down scroll.\n\n\
    Exit codes: 0 ended by the user; 2 error; 130 interrupted before the first interval.", &[
    ("sudo lowlat watch", "Watch the isolated CPUs."),
    ("sudo lowlat watch --cpus 4-7 --sample", "Measure every interruption of four CPUs as it happens."),
    ("lowlat watch --once", "Print what happens within one second."),
    ("sudo lowlat watch --json --interval 10s >> watch.jsonl", "Write a log of one line every 10 seconds."),
    ("sudo lowlat watch --exporter 127.0.0.1:9469", "Serve metrics for Prometheus."),
    ("sudo lowlat watch --textfile /var/lib/prometheus/node-exporter/lowlat.prom", "Pass metrics to node_exporter."),
]))]
struct WatchArgs {
    /// CPUs to watch [default: the isolated CPUs, else all]
    #[arg(long, value_name = "LIST", value_parser = cpus)]
    cpus: Option<CpuSet>,
    /// Length of an interval [default: 1s; 10s with --exporter or --textfile]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    interval: Option<Duration>,
    /// Spin a thread on each CPU, which uses it fully, to measure the length and cause of every interruption
    #[arg(long)]
    sample: bool,
    /// Print one interval as text and end; the default if stdin or stdout is no terminal
    #[arg(long)]
    once: bool,
    /// Print one line of JSON per interval; with --once, one line
    #[arg(long)]
    json: bool,
    /// Serve metrics over HTTP at /metrics of this address, such as 127.0.0.1:9469
    #[arg(long, value_name = "ADDRESS:PORT", conflicts_with_all = ["once", "json"])]
    exporter: Option<SocketAddr>,
    /// Let --exporter listen on an address that other hosts can reach
    #[arg(long, requires = "exporter")]
    listen_anyway: bool,
    /// Write metrics to this file of node_exporter's textfile collector, NAME.prom, at each interval
    #[arg(long, value_name = "FILE", conflicts_with_all = ["once", "json"])]
    textfile: Option<PathBuf>,
}

fn run(matches: &ArgMatches) -> anyhow::Result<Exit> {
    let arguments = WatchArgs::from_arg_matches(matches)?;
    let root = Root::live();
    let host = snapshot::read_without_knobs(&root);
    let subject = subject(&arguments, &root, &host)?;
    let textfile = arguments.textfile.as_deref().map(textfile).transpose()?;
    let exporter =
        arguments.exporter.map(|address| Exporter::bind(address, arguments.listen_anyway)).transpose()?;
    choose::step_aside(&subject.cpus, &host);
    let stop = signals::stop_flag()?;
    thread::scope(|scope| {
        let ended = watch(scope, &arguments, &root, subject, &stop, (exporter.as_ref(), textfile.as_ref()));
        // Helper threads end with the watch, whatever ended it. Relaxed: the flag orders nothing; the scope joins them.
        stop.store(true, Ordering::Relaxed);
        ended
    })
}

fn watch<'scope, 'env: 'scope>(
    scope: &'scope thread::Scope<'scope, 'env>,
    arguments: &WatchArgs,
    root: &'env Root,
    subject: Subject,
    stop: &'env Arc<AtomicBool>,
    (exporter, textfile): (Option<&'env Exporter>, Option<&PreparedFile>),
) -> anyhow::Result<Exit> {
    let is_metrics = exporter.is_some() || textfile.is_some();
    let is_view = !is_metrics && !arguments.json && !arguments.once;
    let mut watcher = Watcher::start(scope, root, subject, stop)?;
    if is_view && io::stdin().is_terminal() && io::stdout().is_terminal() {
        screen::show(&mut watcher, stop)?;
    } else if is_metrics {
        metrics(scope, &mut watcher, stop, exporter, textfile)?;
    } else {
        let is_once = arguments.once || is_view;
        print(&mut watcher, stop, arguments.json, is_once)?;
    }
    watcher.finish(stop)?;
    Ok(Exit::Clean)
}

/// Prints intervals until the user ends it, or one.
fn print<'scope, 'env: 'scope>(
    watcher: &mut Watcher<'scope, 'env>,
    stop: &AtomicBool,
    is_json: bool,
    is_once: bool,
) -> anyhow::Result<()> {
    while watcher.wait(stop)? {
        if is_json {
            // A closed pipe ends the watch: nobody reads it.
            if !output::print_line(&output::json_line(&Line::of(&watcher.watch))?)? {
                return Ok(());
            }
        } else {
            output::print_plain(&plain_text(&watcher.watch, output::width()))?;
        }
        if is_once {
            return Ok(());
        }
    }
    if watcher.watch.interval_count == 0 {
        return Err(Interrupted("watching the first interval".to_owned()).into());
    }
    Ok(())
}

/// Keeps metrics up to date until the user ends it.
fn metrics<'scope, 'env: 'scope>(
    scope: &'scope thread::Scope<'scope, 'env>,
    watcher: &mut Watcher<'scope, 'env>,
    stop: &'env AtomicBool,
    exporter: Option<&'env Exporter>,
    textfile: Option<&PreparedFile>,
) -> anyhow::Result<()> {
    let shared = Arc::new(Mutex::new(watcher.watch.clone()));
    if let Some(exporter) = exporter {
        output::talk(&format!("serving metrics at http://{}/metrics", exporter.address()));
        let shared = Arc::clone(&shared);
        thread::Builder::new().name("lowlat-http".to_owned()).spawn_scoped(scope, move || {
            exporter.serve(stop, &|| shared.lock().unwrap_or_else(PoisonError::into_inner).clone());
        })?;
    }
    while watcher.wait(stop)? {
        shared.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&watcher.watch);
        if let Some(file) = textfile {
            file.write(classic(&watcher.watch).as_bytes())?;
        }
    }
    Ok(())
}

fn subject(arguments: &WatchArgs, root: &Root, host: &HostSnapshot) -> anyhow::Result<Subject> {
    let is_metrics = arguments.exporter.is_some() || arguments.textfile.is_some();
    let every = arguments.interval.unwrap_or(if is_metrics { EVERY_OF_METRICS } else { EVERY });
    if !(EVERY_MIN..=EVERY_MAX).contains(&every) {
        bail!("--interval {every:?} is out of range\nhint: choose between 100ms and 1h");
    }
    let named = arguments.cpus.as_ref();
    let online = &host.topology.online;
    if let Some(offline) = named.map(|cpus| cpus.difference(online)).filter(|cpus| !cpus.is_empty()) {
        bail!("cannot watch {offline:#}: not online (online: {online})\nhint: leave them out of --cpus");
    }
    let of_role = match named {
        Some(_) => None,
        None => role::cpus_of_host(root, host, false)?,
    };
    let chosen = choose::watched(named, of_role.as_ref(), host);
    if arguments.sample && named.is_none() && !chosen.is_isolated {
        bail!(
            "cannot sample all CPUs: this host isolates none, and --sample uses each CPU fully\nhint: name the CPUs to sample \
             with --cpus"
        );
    }
    Ok(Subject {
        host: root.read("/proc/sys/kernel/hostname").text().trim().to_owned(),
        quiet: choose::quiet(&chosen.cpus, named.is_some(), of_role.as_ref(), host),
        cpus: chosen.cpus,
        is_isolated: chosen.is_isolated,
        every_ns: u64::try_from(every.as_nanos()).unwrap_or(u64::MAX),
        is_sampling: arguments.sample,
        version: env!("CARGO_PKG_VERSION").to_owned(),
    })
}

/// Checks the file of --textfile.
fn textfile(path: &std::path::Path) -> anyhow::Result<PreparedFile> {
    if path.extension().is_none_or(|ending| ending != "prom") {
        bail!(
            "cannot write metrics to {}: node_exporter reads only files whose names end in .prom\nhint: rename it to {}",
            path.display(),
            path.with_extension("prom").display()
        );
    }
    // Another user reads the file, so the caller's umask must not apply.
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    PreparedFile::prepare(path, "--textfile")
}
