//! Counts what a parked process of the pipeline executes from a wake to its next sleep: instructions, and lines and
//! pages of code. Between two quotes everything in a core's caches has been replaced, so these are what a wake costs
//! on a quiet host. The counts do not depend on the machine's load.

use anyhow::{Context as _, bail, ensure};
use clap::Args;
use nix::{
    sys::{
        ptrace,
        wait::{WaitStatus, waitpid},
    },
    unistd::Pid,
};
use std::{
    collections::{BTreeMap, HashSet},
    fs,
    ops::Range,
    path::PathBuf,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

/// Largest counts from a wake to that of the next process: instructions, lines of code, pages of code. Where the linker
/// places functions moves lines and pages by one or two.
const LIMITS: [(&str, [usize; 3]); 3] =
    [("md", [640, 66, 7]), ("td", [2_820, 220, 17]), ("strategies", [1_380, 138, 12])];
/// Wakes before those that are counted: messages of the master, and first uses of code.
const WAKES_LEFT_OUT: usize = 2;
const WAKES: usize = 5;
/// A wake that takes more is not one.
const STEPS_MAX: usize = 200_000;
/// Longest time until the processes have started.
const START: Duration = Duration::from_secs(30);
const LINE_BITS: u32 = 6;
const PAGE_BITS: u32 = 12;
/// The instruction `syscall`, as the low half of a word.
const SYSCALL: i64 = 0x050f;

#[derive(Debug, Args)]
pub struct FootprintOptions {
    /// The program to count
    #[arg(default_value = "target/dist/lowlat")]
    binary: PathBuf,
    /// Fail if a role takes more than the limits
    #[arg(long)]
    check: bool,
}

/// The run whose processes are counted; ends with this value.
struct TracedRun(Child);

impl Drop for TracedRun {
    fn drop(&mut self) {
        // Its processes end with it.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// From a wake on: instructions, lines and pages.
type WakeCounts = [usize; 3];

#[derive(Debug, Clone, Copy, Default)]
struct Wake {
    /// Until it wakes another process; `None` if it wakes none.
    to_wake: Option<WakeCounts>,
    to_sleep: WakeCounts,
}

pub fn footprint(options: &FootprintOptions) -> anyhow::Result<()> {
    // So few quotes that each process sleeps in between.
    let run = Command::new(&options.binary)
        .args([
            "pipeline",
            "run",
            "--force",
            "--strategies",
            "2",
            "--rate",
            "2",
            "--duration",
            "90s",
            "--fills",
            "at-once",
        ])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .with_context(|| format!("cannot start {}", options.binary.display()))?;
    let run = TracedRun(run);
    let processes = processes(run.0.id())?;
    println!("{:<12}{:>32}{:>32}", "", "until it wakes another", "until it sleeps");
    println!(
        "{:<12}{:>14}{:>9}{:>9}{:>14}{:>9}{:>9}",
        "role", "instructions", "lines", "pages", "instructions", "lines", "pages"
    );
    let mut over = Vec::new();
    for (role, limits) in LIMITS {
        let pid = *processes.get(role).with_context(|| format!("the run has no process {role}"))?;
        let wakes = wakes(Pid::from_raw(pid)).with_context(|| format!("cannot follow {role} ({pid})"))?;
        let to_wake = median(wakes.iter().filter_map(|wake| wake.to_wake));
        let to_sleep = median(wakes.iter().map(|wake| wake.to_sleep));
        println!(
            "{role:<12}{:>14}{:>9}{:>9}{:>14}{:>9}{:>9}",
            to_wake[0], to_wake[1], to_wake[2], to_sleep[0], to_sleep[1], to_sleep[2]
        );
        if to_wake.iter().zip(limits).any(|(found, most)| *found > most) {
            over.push(format!("{role}: {to_wake:?}, at most {limits:?}"));
        }
    }
    ensure!(!options.check || over.is_empty(), "a wake takes more than it did: {}", over.join("; "));
    Ok(())
}

/// The processes of a run by role, of strategies any, once all of them are there.
fn processes(run: u32) -> anyhow::Result<BTreeMap<String, i32>> {
    let start = Instant::now();
    while start.elapsed() < START {
        let children = fs::read_to_string(format!("/proc/{run}/task/{run}/children"))?;
        let role_of = |pid: &str| {
            let line = fs::read_to_string(format!("/proc/{pid}/cmdline")).ok()?;
            let mut words = line.split('\0').skip_while(|word| *word != "pipeline-role");
            Some((words.nth(1)?.to_owned(), pid.parse().ok()?))
        };
        let found: BTreeMap<String, i32> = children.split_ascii_whitespace().filter_map(role_of).collect();
        if LIMITS.iter().all(|(role, _)| found.contains_key(*role)) {
            return Ok(found);
        }
        thread::sleep(Duration::from_millis(50));
    }
    bail!("the processes of the run have not started within {} s", START.as_secs())
}

fn wakes(pid: Pid) -> anyhow::Result<Vec<Wake>> {
    ptrace::seize(pid, ptrace::Options::PTRACE_O_TRACESYSGOOD)?;
    ptrace::interrupt(pid)?;
    stopped(pid)?;
    let vdso = vdso(pid)?;
    let mut wakes = Vec::new();
    let mut seen = 0;
    while wakes.len() < WAKES {
        ptrace::syscall(pid, None)?;
        let status = stopped(pid)?;
        let registers = ptrace::getregs(pid)?;
        // A negative result is that of the call's entry, or of a sleep that ended without a wake.
        let is_awake = registers.rax.cast_signed() >= 0 && sleeps(registers.orig_rax, registers.rsi);
        if matches!(status, WaitStatus::PtraceSyscall(_)) && is_awake {
            let wake = follow(pid, &vdso)?;
            seen += 1;
            if seen > WAKES_LEFT_OUT {
                wakes.push(wake);
            }
        }
    }
    ptrace::detach(pid, None)?;
    Ok(wakes)
}

/// Addresses of the kernel's code in a process, which reads the clock. It depends on the host's clock source, and
/// repeats while the kernel updates the clock.
fn vdso(pid: Pid) -> anyhow::Result<Range<u64>> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps"))?;
    // A kernel started with vdso=0 maps none.
    let Some(line) = maps.lines().find(|line| line.ends_with("[vdso]")) else { return Ok(0..0) };
    let range = line.split_once(' ').and_then(|(range, _)| range.split_once('-'));
    let (start, end) = range.with_context(|| format!("cannot parse {line}"))?;
    Ok(u64::from_str_radix(start, 16)?..u64::from_str_radix(end, 16)?)
}

/// Steps from a wake to the next sleep, without those in the vDSO.
fn follow(pid: Pid, vdso: &Range<u64>) -> anyhow::Result<Wake> {
    let mut instructions = 0;
    let (mut lines, mut pages) = (HashSet::new(), HashSet::new());
    let mut wake = Wake::default();
    for _ in 1..STEPS_MAX {
        ptrace::step(pid, None)?;
        stopped(pid)?;
        let registers = ptrace::getregs(pid)?;
        if vdso.contains(&registers.rip) {
            continue;
        }
        instructions += 1;
        lines.insert(registers.rip >> LINE_BITS);
        pages.insert(registers.rip >> PAGE_BITS);
        let at = usize::try_from(registers.rip)? as ptrace::AddressType;
        if ptrace::read(pid, at)? & 0xffff != SYSCALL {
            continue;
        }
        let counts = [instructions, lines.len(), pages.len()];
        if sleeps(registers.rax, registers.rsi) {
            wake.to_sleep = counts;
            return Ok(wake);
        }
        if wakes_another(registers.rax, registers.rsi) {
            wake.to_wake.get_or_insert(counts);
        }
    }
    bail!("it did not sleep within {STEPS_MAX} instructions")
}

fn stopped(pid: Pid) -> anyhow::Result<WaitStatus> {
    let status = waitpid(pid, None)?;
    ensure!(!matches!(status, WaitStatus::Exited(..) | WaitStatus::Signaled(..)), "it has ended");
    Ok(status)
}

const FUTEX: u64 = 202;
/// epoll_wait, poll, ppoll, epoll_pwait, clock_nanosleep, futex_waitv.
const SLEEPS: [u64; 6] = [232, 7, 271, 281, 230, 449];

/// True for a call that sleeps, by its number and second argument.
fn sleeps(number: u64, operation: u64) -> bool {
    // FUTEX_WAIT and FUTEX_WAIT_BITSET.
    SLEEPS.contains(&number) || number == FUTEX && matches!(operation & 0x7f, 0 | 9)
}

fn wakes_another(number: u64, operation: u64) -> bool {
    // FUTEX_WAKE.
    number == FUTEX && operation & 0x7f == 1
}

/// The median of each count; zeros without any.
fn median(counts: impl Iterator<Item = WakeCounts>) -> WakeCounts {
    let all: Vec<WakeCounts> = counts.collect();
    std::array::from_fn(|at| {
        let mut one: Vec<usize> = all.iter().map(|counts| counts[at]).collect();
        one.sort_unstable();
        one.get(one.len() / 2).copied().unwrap_or_default()
    })
}
