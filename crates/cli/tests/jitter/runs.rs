//! Runs of the binary, one at a time: two that measure the same CPUs would see each other.

use crate::common::text;
use lowlat_host::{CpuId, CpuSet};
use lowlat_result::ResultDocument;
use rustix::process::{Pid, Signal};
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Output, Stdio},
    sync::{LazyLock, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// The binary.
/// Where tracefs is, when it is mounted.
pub const INSTANCES: &str = "/sys/kernel/tracing/instances";
/// How long a run may take to begin before a test gives up.
const PATIENCE: Duration = Duration::from_secs(60);

static MEASURES: Mutex<()> = Mutex::new(());

/// Held while a run measures.
pub fn alone() -> MutexGuard<'static, ()> {
    MEASURES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `lowlat jitter` in a directory of its own.
pub fn jitter(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(crate::common::binary());
    command.current_dir(directory).arg("jitter").args(arguments).stdin(Stdio::null());
    command
}

/// A run to its end, with the exit code that it must have.
pub fn run(directory: &Path, arguments: &[&str], code: i32) -> Output {
    let output = jitter(directory, arguments).output().expect("the binary of this package runs");
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", text(&output.stderr));
    output
}

/// A measurement, with its document read.
pub fn measure(directory: &Path, arguments: &[&str]) -> ResultDocument {
    measure_alone(&alone(), directory, arguments)
}

/// The same for who is alone already.
pub fn measure_alone(_: &MutexGuard<'static, ()>, directory: &Path, arguments: &[&str]) -> ResultDocument {
    run(directory, &[arguments, &["--force", "--result", "result.json"]].concat(), 0);
    document(&directory.join("result.json"))
}

/// A document of a file.
pub fn document(path: &Path) -> ResultDocument {
    let bytes = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// One run with every output, for all tests that only look at them.
pub struct Whole {
    /// Where its files are: result.json, report.html, run.hlog, raw.*.
    pub directory: PathBuf,
    /// Its document.
    pub document: ResultDocument,
    /// What it printed: the document once more.
    pub stdout: Vec<u8>,
}

impl Whole {
    /// A file of it.
    pub fn path(&self, name: &str) -> String {
        self.directory.join(name).display().to_string()
    }
}

/// That run; made once.
pub fn whole() -> &'static Whole {
    static WHOLE: LazyLock<Whole> = LazyLock::new(|| {
        let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("jitter-whole");
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(&directory).expect("cargo's directory for tests can be written");
        let _alone = alone();
        let output = run(
            &directory,
            &[
                "--duration",
                "1s",
                "--force",
                "--json",
                "--result",
                "result.json",
                "--report",
                "report.html",
                "--hlog",
                "run.hlog",
                "--raw",
                "raw",
            ],
            0,
        );
        let document = document(&directory.join("result.json"));
        Whole { directory, document, stdout: output.stdout }
    });
    &WHOLE
}

/// A run under way.
pub struct UnderWay {
    /// The process.
    pub child: Child,
    alone: MutexGuard<'static, ()>,
}

impl UnderWay {
    /// Starts a run and waits until its samplers are at work: the collector starts right before them, so give it
    /// `--raw` or causes.
    pub fn start(command: &mut Command) -> Self {
        let alone = alone();
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        let mut run = Self { child, alone };
        let began = Instant::now();
        while run.thread("lowlat-collect").is_none() {
            let is_over = run.child.try_wait().expect("it can be waited for").is_some();
            assert!(!is_over && began.elapsed() < PATIENCE, "no run began: {:?}", run.kill_and_wait());
            std::thread::sleep(Duration::from_millis(10));
        }
        std::thread::sleep(Duration::from_millis(700));
        run
    }

    /// Its thread of that name.
    pub fn thread(&self, name: &str) -> Option<Pid> {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.child.id())).ok()?;
        let is_it =
            |path: &PathBuf| fs::read_to_string(path.join("comm")).is_ok_and(|comm| comm.trim() == name);
        let path = tasks.flatten().map(|entry| entry.path()).find(is_it)?;
        Pid::from_raw(path.file_name()?.to_str()?.parse().ok()?)
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        rustix::process::kill_process(Pid::from_child(&self.child), signal).expect("the process is ours");
    }

    /// Its trace instances in the kernel.
    pub fn instances(&self) -> Vec<String> {
        instances_of(self.child.id())
    }

    /// Waits for its end.
    pub fn wait(self) -> Output {
        self.wait_and_stay_alone().0
    }

    /// The same, before any other run begins.
    pub fn wait_and_stay_alone(self) -> (Output, MutexGuard<'static, ()>) {
        (self.child.wait_with_output().expect("it can be waited for"), self.alone)
    }

    fn kill_and_wait(&mut self) -> Option<ExitStatus> {
        let _ = self.child.kill();
        self.child.wait().ok()
    }
}

/// The trace instances that a lowlat of this process number made; none where tracefs can't be seen.
pub fn instances_of(pid: u32) -> Vec<String> {
    let names = fs::read_dir(INSTANCES).into_iter().flatten().flatten();
    let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with(&format!("lowlat-{pid}-"))).collect()
}

/// Whether this test may make instances in a tracefs that is mounted; says so when not.
pub fn may_trace(what: &str) -> bool {
    let probe = Path::new(INSTANCES).join(format!(
        "test-probe-{}-{:?}",
        std::process::id(),
        std::thread::current().id()
    ));
    let is_made = fs::create_dir(&probe).is_ok();
    let _ = fs::remove_dir(&probe);
    if !is_made {
        say!("skipped: {what}: no instance can be made in {INSTANCES} (needs root and a mounted tracefs)");
    }
    is_made
}

/// Whether this is root; says so when not.
pub fn is_root(what: &str) -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        say!("skipped: {what}: needs root");
    }
    is_root
}

/// The CPUs that this process may use.
pub fn allowed() -> CpuSet {
    let status = fs::read_to_string("/proc/self/status").expect("procfs is there");
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).expect("its CPUs");
    CpuSet::parse_list(list.trim()).expect("the kernel's list")
}

/// The highest of them when lowlat has another to step aside on; says so when not.
pub fn spare_cpu(what: &str) -> Option<CpuId> {
    let allowed = allowed();
    if allowed.len() < 2 {
        say!("skipped: {what}: needs two CPUs");
        return None;
    }
    allowed.highest()
}

/// Whether a warning of the document or its record says this.
pub fn warns(document: &ResultDocument, part: &str) -> bool {
    let record = document.jitter().into_iter().flat_map(|jitter| &jitter.record.warnings);
    document.warnings.iter().chain(record).any(|warning| warning.contains(part))
}

/// All warnings, for the message of a test that misses one.
pub fn warnings(document: &ResultDocument) -> String {
    let record = document.jitter().into_iter().flat_map(|jitter| &jitter.record.warnings);
    document.warnings.iter().chain(record).fold(String::new(), |text, warning| text + "\n  " + warning)
}
