//! `lowlat run`: starts a command or copies of it on chosen CPUs, with the scheduling, memory and network stack that it
//! needs.

use super::{Subcommand, help};
use crate::{
    arguments::{cpus, word},
    exit::Exit,
    output, role,
};
use anyhow::Context as _;
use clap::{ArgMatches, Args, FromArgMatches};
use lowlat_cores_run::launch;
use lowlat_host::{CpuSet, snapshot::SchedPolicy};
use lowlat_host_run::{Root, programs, snapshot};
use lowlat_launch::{
    Acceleration, Accelerator, CpuChoice, Launch, MemoryPolicy, Mode, Place, Request, SocketScope,
    Surroundings, ThreadMap, other_wait, shell_lines, tested_variables,
};
use std::{num::NonZeroU32, process::Command};

pub const COMMAND: Subcommand = Subcommand { name: "run", declare: RunArgs::augment_args, run };

/// Present while Onload's kernel module is loaded.
const ONLOAD_MODULE: &str = "/sys/module/onload";

/// Most copies: eight for each CPU of the largest hosts.
const COPIES_MAX: u32 = 65_536;
/// Most threads that a warning names.
const MOVED_MAX: usize = 4;

/// Run a command on chosen CPUs, with the scheduling, memory and network stack it needs
#[derive(Debug, Args)]
#[command(after_help = help("Before it starts the command, lowlat checks that the CPUs exist and that each spinning thread has a core. It \
    warns about CPUs that are not isolated or that handle interrupts. Signals are passed on, and the command gets \
    SIGTERM if lowlat is killed.\n\
    cluster-spread uses one CPU of each cluster (shared L2 cache) before a second of any, over NUMA nodes and \
    last-level caches in turn. cluster-pack fills a cluster before the next, for threads that share data. SMT \
    siblings come last. Threads that start later get the next CPUs.\n\n\
    Exit codes: that of the command, the highest one of copies, 128 + N if signal N ended it, 2 if it was not started or was stopped.", &[
    ("lowlat run --threads 2 -- ./strategy", "Pin two spinning threads to isolated CPUs."),
    ("lowlat run --onload --cpus 3 --require-accelerated -- ./gateway", "Run with Onload's latency profile; stop if the kernel serves a socket."),
    ("lowlat run --onload --require-accelerated=ens1,9000 -- ./gateway", "The same for sockets of ens1 or port 9000 only."),
    ("lowlat run --mode interrupt --onload --cpus 2-3 -- ./gateway", "Run with Onload, waiting for interrupts."),
    ("sudo lowlat run --place near:eth0 --sched fifo:50 --c-states off -- ./md", "Run near a NIC, with real-time priority and without idle states."),
    ("lowlat run --place cluster-spread 16 -- ./solver", "Start 16 copies, spread over clusters."),
    ("lowlat run --place cluster-pack -- ./pipeline", "Keep threads that share data in one cluster."),
    ("lowlat run --per-thread md=3,td=5 --cpus 1 --dry-run -- ./desk", "Show the shell line."),
]))]
struct RunArgs {
    /// How the command waits: spin needs a CPU for each thread, interrupt lets threads share
    #[arg(long, default_value = "spin", value_parser = word([("spin", Mode::Spin), ("interrupt", Mode::Interrupt)]))]
    mode: Mode,
    /// Run on these CPUs, one thread on each in order of appearance
    #[arg(long, value_name = "LIST", value_parser = cpus, conflicts_with = "place")]
    cpus: Option<CpuSet>,
    /// Choose CPUs: spread, compact, near:IF, cluster-spread or cluster-pack [default: compact]
    #[arg(long, value_name = "RULE", value_parser = place)]
    place: Option<Place>,
    /// Number of busy threads of the command [default: 1; with cluster-spread and cluster-pack as many as start]
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroU32>,
    /// Pin threads by name, such as md=3,worker*=4-5
    #[arg(long, value_name = "MAP", value_parser = ThreadMap::parse)]
    per_thread: Option<ThreadMap>,
    /// Set the scheduling policy: fifo:N, rr:N, batch, idle or other
    #[arg(long, value_name = "POLICY", value_parser = policy)]
    sched: Option<(SchedPolicy, u32)>,
    /// Take memory from each thread's NUMA node (local) or from one node (node:N)
    #[arg(long, value_name = "POLICY", value_parser = memory)]
    mem: Option<MemoryPolicy>,
    /// Let malloc use reserved huge pages (glibc 2.35 and later)
    #[arg(long)]
    huge_pages: bool,
    /// Keep all CPUs out of idle states while the command runs
    #[arg(long, value_name = "off", value_parser = ["off"])]
    c_states: Option<String>,
    #[command(flatten)]
    stack: Stack,
    /// Print the shell line instead of running it
    #[arg(long)]
    dry_run: bool,
    /// Print nothing but errors
    #[arg(long, short)]
    quiet: bool,
    /// Start this many copies of the command, each on a CPU
    #[arg(value_name = "N", value_parser = copies, conflicts_with_all = ["threads", "per_thread"])]
    copies: Option<NonZeroU32>,
    /// Command with its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<String>,
}

#[derive(Debug, Args)]
struct Stack {
    /// Use Onload, with this profile when spinning [default: latency]
    #[arg(long, value_name = "PROFILE", num_args = 0..=1, default_missing_value = "latency", group = "accelerator")]
    onload: Option<String>,
    /// Use VMA, for NVIDIA NICs
    #[arg(long, group = "accelerator")]
    vma: bool,
    /// Use XLIO, for NVIDIA NICs
    #[arg(long, group = "accelerator")]
    xlio: bool,
    /// Stop the command if the kernel serves one of its sockets: any, or of these interfaces, ports and peers
    #[arg(long, value_name = "IF,PORT,PEER", num_args = 0..=1, require_equals = true, default_missing_value = "", requires = "accelerator")]
    require_accelerated: Option<String>,
}

impl Stack {
    fn accelerator(&self) -> Option<Accelerator> {
        match self {
            Self { onload: Some(profile), .. } => Some(Accelerator::Onload(profile.clone())),
            Self { vma: true, .. } => Some(Accelerator::Vma),
            Self { xlio: true, .. } => Some(Accelerator::Xlio),
            _ => None,
        }
    }
}

fn place(text: &str) -> Result<Place, String> {
    Place::parse(text)
        .ok_or_else(|| "expected spread, compact, near:IF, cluster-spread or cluster-pack".to_owned())
}

fn copies(text: &str) -> Result<NonZeroU32, String> {
    let copies: NonZeroU32 =
        text.parse().map_err(|_| "expected a number of copies, then -- and the command".to_owned())?;
    if copies.get() > COPIES_MAX { Err(format!("expected at most {COPIES_MAX} copies")) } else { Ok(copies) }
}

fn policy(text: &str) -> Result<(SchedPolicy, u32), String> {
    let (name, priority) = text.split_once(':').unwrap_or((text, ""));
    let real_time = |policy| match priority.parse() {
        Ok(priority @ 1..=99) => Ok((policy, priority)),
        _ => Err(format!("expected a priority from 1 to 99, such as {name}:50")),
    };
    match (name, priority) {
        ("fifo", _) => real_time(SchedPolicy::Fifo),
        ("rr", _) => real_time(SchedPolicy::Rr),
        ("batch", "") => Ok((SchedPolicy::Batch, 0)),
        ("idle", "") => Ok((SchedPolicy::Idle, 0)),
        ("other", "") => Ok((SchedPolicy::Other, 0)),
        _ => Err("expected fifo:N, rr:N, batch, idle or other".to_owned()),
    }
}

fn memory(text: &str) -> Result<MemoryPolicy, String> {
    let node = text.strip_prefix("node:").and_then(|node| node.parse().ok());
    match (text, node) {
        ("local", _) => Ok(MemoryPolicy::Local),
        (_, Some(node)) => Ok(MemoryPolicy::Node(node)),
        _ => Err("expected local or node:N".to_owned()),
    }
}

fn run(matches: &ArgMatches) -> anyhow::Result<Exit> {
    let arguments = RunArgs::from_arg_matches(matches)?;
    let root = Root::live();
    let host = snapshot::read_without_knobs(&root);
    let request = request(&arguments);
    let environment = environment();
    let variable =
        |name: &str| environment.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value);
    let is_installed = match &request.accelerator {
        Some(Accelerator::Onload(_)) => programs::find(&root, "onload", variable("PATH")).is_some(),
        Some(accelerator) => {
            host.bypasses.iter().any(|stack| stack.name == accelerator.name() && !stack.found.is_absent())
        }
        None => false,
    };
    let allowed = lowlat_host_run::affinity::settable(&host.topology.online)?;
    let of_role = match &request.cpus {
        CpuChoice::Place(_) => role::cpus_of_host(&root, &host, arguments.quiet)?,
        CpuChoice::List(_) => None,
    };
    let required = arguments.stack.require_accelerated.as_deref();
    let addresses = |name: &str| {
        let nic = host.nics.iter().find(|nic| nic.name == name)?;
        Some(nic.ips().collect())
    };
    let required = required.map(|words| SocketScope::parse(words, addresses)).transpose()?;
    let is_missing = request.accelerator.is_some() && !is_installed;
    let around =
        Surroundings { allowed, of_role, is_installed: is_installed || arguments.dry_run, environment };
    let mut planned = Launch::plan(&request, &host, &around)?;
    let mut variables = Vec::new();
    if let Some(accelerator) = planned.accelerator.as_ref().filter(|_| is_missing) {
        planned.warnings.push(format!("{} is not installed on this host", accelerator.name()));
    } else if let Some(Accelerator::Onload(_)) = planned.accelerator {
        if !root.exists(ONLOAD_MODULE) {
            planned
                .warnings
                .push("Onload's kernel module is not loaded: `onload_tool reload` loads it".to_owned());
        }
        variables = onload_variables(&planned.launcher, &arguments.command)?;
        planned.warnings.extend(other_wait(planned.mode, &variables));
    }
    if !arguments.quiet {
        output::talk_painted(
            lowlat_cores_report::launch_text(&planned, &host, &variables, output::stderr_width()).trim_end(),
        );
    }
    if arguments.dry_run {
        output::print_plain(&shell_lines(&planned, &arguments.command).join("\n"))?;
        return Ok(Exit::Clean);
    }
    let ran = launch::run(&root, &planned, &arguments.command, required.as_ref())?;
    if !arguments.quiet {
        report(&planned, &ran);
    }
    Ok(Exit::Command(ran.code))
}

fn request(arguments: &RunArgs) -> Request {
    let choice = match (&arguments.cpus, &arguments.place) {
        (Some(list), _) => CpuChoice::List(list.clone()),
        (None, place) => CpuChoice::Place(place.clone().unwrap_or(Place::Compact)),
    };
    Request {
        mode: arguments.mode,
        accelerator: arguments.stack.accelerator(),
        cpus: choice,
        thread_count: arguments.threads,
        copies: arguments.copies,
        policy: arguments.sched,
        memory: arguments.mem.unwrap_or_default(),
        has_huge_pages: arguments.huge_pages,
        is_awake: arguments.c_states.is_some(),
        thread_map: arguments.per_thread.clone().unwrap_or_default(),
    }
}

/// Returns the environment without variables that are not text.
fn environment() -> Vec<(String, String)> {
    let all = std::env::vars_os();
    all.filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?))).collect()
}

/// Asks Onload's launcher for the variables that the command gets: it evaluates profiles, which are scripts, handlers
/// that it has for programs, and what is already set.
fn onload_variables(launcher: &[String], command: &[String]) -> anyhow::Result<Vec<(String, String)>> {
    let Some((program, options)) = launcher.split_first() else { return Ok(Vec::new()) };
    let mut testing = Command::new(program);
    testing.arg("--test").args(options).args(command).stdin(programs::silence()?);
    let output = testing.output().with_context(|| format!("cannot start {program}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if let Some((_, profile)) = said.split_once("Cannot find profile ") {
        let profile = profile.lines().next().unwrap_or_default();
        anyhow::bail!(
            "cannot use Onload's profile {profile}: Onload has none of that name\nhint: profiles are the files *.opf in \
             /usr/libexec/onload/profiles and ~/.openonload/profiles"
        );
    }
    Ok(tested_variables(&String::from_utf8_lossy(&output.stdout)))
}

/// Reports what was only seen while the command ran.
fn report(planned: &Launch, ran: &launch::LaunchOutcome) {
    if ran.crowded_max > 0 && planned.mode == Mode::Spin {
        output::talk(&format!(
            "warning: {} more threads than CPUs were running: spinning threads shared CPUs\nhint: add CPUs, or set \
             --threads",
            ran.crowded_max
        ));
    }
    for thread in &ran.unpinned {
        output::talk(&format!("warning: cannot pin thread {thread}"));
    }
    if !ran.unmatched.is_empty() && planned.copies.is_none() {
        let names = ran.unmatched.join(", ");
        output::talk(&format!(
            "warning: no thread named {names} was seen\nhint: names are those of /proc/PID/task/*/comm, at most 15 characters"
        ));
    }
    // The kernel moves threads whose CPU is gone.
    if !ran.moved.is_empty() && ran.cpus_lost.is_empty() {
        let moved: Vec<&str> = ran.moved.values().take(MOVED_MAX).map(String::as_str).collect();
        let more = match ran.moved.len().saturating_sub(MOVED_MAX) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        output::talk(&format!(
            "warning: the command moved threads itself, and lowlat left them there: {}{more}\nhint: let either the command \
             or lowlat choose CPUs",
            moved.join(", ")
        ));
    }
    if !ran.cpus_lost.is_empty() {
        output::talk(&format!(
            "warning: {:#} went offline: the kernel moved threads to other CPUs",
            ran.cpus_lost
        ));
    }
    let Some(accelerator) = &planned.accelerator else { return };
    let (name, none) = (accelerator.name(), Acceleration::NotSeen);
    let found = ran.acceleration.as_ref().unwrap_or(&none);
    let level = if matches!(found, Acceleration::Accelerated(_)) { "" } else { "warning: " };
    output::talk(&format!("{level}{name}: {}", launch::acceleration_text(found)));
}
