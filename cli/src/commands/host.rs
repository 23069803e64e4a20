//! `lowlat host`: shows, captures and compares hosts.

use super::{Subcommand, examples};
use crate::{exit::Exit, host::HostArgs, output, results, role::KeptRole};
use clap::{ArgMatches, Args, FromArgMatches, Subcommand as _};
use lowlat_catalogue::CATALOGUE;
use lowlat_host::{
    HostSnapshot,
    diff::{DiffScope, diff},
};
use lowlat_host_run::{
    Root,
    capture::{CaptureOptions, CaptureSummary, capture},
    snapshot,
};
use lowlat_tune_run::StateDir;
use std::path::PathBuf;

pub const COMMAND: Subcommand = Subcommand { name: "host", declare: Action::augment_subcommands, run };

/// Show, capture or compare hosts
#[derive(Debug, clap::Subcommand)]
#[command(subcommand_required = true, arg_required_else_help = true)]
#[command(after_help = examples(&[
    ("lowlat host show", "Show the CPUs, memory, devices and kernel of this host."),
    ("lowlat host capture desk7.tar.gz", "Capture this host for another machine, without names and serial numbers."),
    ("lowlat host diff before.tar.gz /", "Show what has changed since the capture."),
]))]
enum Action {
    /// Print an inventory of the host: topology with NICs and disks by NUMA node, then every section
    Show(Show),
    /// Write the host to a capture file for --root
    Capture(CaptureArgs),
    /// Compare two hosts, or one host at two points in time
    Diff(HostDiffArgs),
}

#[derive(Debug, Args)]
struct Show {
    #[command(flatten)]
    host: HostArgs,
    /// Print the whole snapshot as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct CaptureArgs {
    /// File to write: a compressed tar of every file read
    #[arg(id = "capture", value_name = "FILE")]
    file: PathBuf,
    /// Capture this host instead of the running one
    #[arg(long, value_name = "DIR|FILE", default_value = "/")]
    root: PathBuf,
    /// Keep hostnames, MAC addresses, serial numbers and UUIDs, and passwords that stand in units, boot settings and options of modules
    #[arg(long)]
    unredacted: bool,
    /// Print what was captured as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct HostDiffArgs {
    /// First host: a directory, a capture file, or / for the running host
    a: PathBuf,
    /// Second host
    b: PathBuf,
    /// Also show values that always change: counters, load, process ids
    #[arg(long)]
    all: bool,
    /// Print the differences as JSON
    #[arg(long)]
    json: bool,
}

fn run(matches: &ArgMatches) -> anyhow::Result<Exit> {
    match Action::from_arg_matches(matches)? {
        Action::Show(show) => show.run(),
        Action::Capture(capture) => capture.run(),
        Action::Diff(diff) => diff.run(),
    }
}

/// A snapshot, which has a version of its own, as a document.
#[derive(serde::Serialize)]
struct SnapshotDocument<'a> {
    document: &'static str,
    #[serde(flatten)]
    snapshot: &'a HostSnapshot,
}

impl Show {
    fn run(&self) -> anyhow::Result<Exit> {
        let host = self.host.read_silently()?.with_boot_entry();
        if self.json {
            output::print_json(&SnapshotDocument { document: "lowlat-host", snapshot: &host.snapshot })?;
        } else {
            host.print(&lowlat_host_report::host_text(
                &host.snapshot,
                Some(&host.allocation),
                output::width(),
            ))?;
        }
        Ok(Exit::Clean)
    }
}

impl CaptureArgs {
    fn run(&self) -> anyhow::Result<Exit> {
        let root = Root::open(&self.root)?;
        let state = (!root.is_capture()).then(|| StateDir::below(&self.root));
        let kept = KeptRole::read(&root, state.as_ref(), &snapshot::read_without_knobs(&root));
        let kept = kept.unwrap_or_else(|error| KeptRole { role: None, warnings: vec![error.to_string()] });
        let role = (kept != KeptRole::default()).then(|| output::json_line(&kept)).transpose()?;
        let options = CaptureOptions { is_redacted: !self.unredacted, role: role.map(String::into_bytes) };
        let summary = capture(&root, CATALOGUE, &self.file, &options)
            .map_err(|error| results::in_words(&error, "name a file in a writable directory"))?;
        if self.json {
            output::print_json(&output::Document::of("lowlat-capture", &summary))?;
        } else {
            output::print_plain(&in_words(&summary, self.unredacted))?;
        }
        Ok(Exit::Clean)
    }
}

fn in_words(summary: &CaptureSummary, is_unredacted: bool) -> String {
    let mut lines = vec![format!(
        "wrote {}: {} files, {} KiB of content",
        summary.path.display(),
        summary.files,
        summary.content_bytes.div_ceil(1024)
    )];
    if summary.denied > 0 {
        let is_root = rustix::process::geteuid().is_root();
        let why =
            if is_root { "the kernel denies them even to root" } else { "run as root to capture them too" };
        lines.push(format!("{} files could not be read: {why}", summary.denied));
    }
    lines.push(if is_unredacted {
        "it contains names, addresses and serial numbers, and passwords that stand in units, boot settings and options of modules".into()
    } else {
        format!("removed names, addresses and serial numbers from {} files", summary.redacted_files)
    });
    lines.extend(summary.warnings.iter().map(|warning| format!("warning: {warning}")));
    lines.join("\n")
}

impl HostDiffArgs {
    fn run(&self) -> anyhow::Result<Exit> {
        let read = |path: &PathBuf| Root::open(path).map(|root| snapshot::read(&root, CATALOGUE));
        let (a, b) = (read(&self.a)?, read(&self.b)?);
        let differences = diff(&a, &b, if self.all { DiffScope::All } else { DiffScope::Lasting });
        let found = serde_json::json!({ "differences": differences });
        output::print_as(self.json, &output::Document::of("lowlat-host-diff", found), |width| {
            lowlat_host_report::host_diff_text(&differences, width)
        })?;
        Ok(if differences.is_empty() { Exit::Clean } else { Exit::Findings })
    }
}
