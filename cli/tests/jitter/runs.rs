//! Runs of the binary, one at a time: two that measure the same CPUs would see each other.

use crate::common::text;
use lowlat_host::{CpuId, CpuSet};
use lowlat_results::ResultDocument;
use rustix::process::{Pid, Signal};
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Output, Stdio},
    sync::{LazyLock, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// Directory of trace instances, if tracefs is mounted.
pub const INSTANCES: &str = "/sys/kernel/tracing/instances";
/// Longest wait for a run to begin.
const PATIENCE: Duration = Duration::from_secs(60);

static MEASURES: Mutex<()> = Mutex::new(());

/// Held while a run measures.
pub fn alone() -> MutexGuard<'static, ()> {
    MEASURES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `lowlat jitter` in this directory.
pub fn jitter(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(crate::common::binary());
    command.current_dir(directory).arg("jitter").args(arguments).stdin(Stdio::null());
    command
}

/// Shows stored documents, and checks the exit code.
pub fn shown(directory: &Path, arguments: &[&str], code: i32) -> Output {
    let mut command = Command::new(crate::common::binary());
    command.current_dir(directory).args(["report", "render"]).args(arguments);
    let output = command.output().expect("the binary of this package runs");
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", text(&output.stderr));
    output
}

/// Runs to the end, and checks the exit code.
pub fn run(directory: &Path, arguments: &[&str], code: i32) -> Output {
    let output = jitter(directory, arguments).output().expect("the binary of this package runs");
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", text(&output.stderr));
    output
}

/// Measures, and reads the document.
pub fn measure(directory: &Path, arguments: &[&str]) -> ResultDocument {
    measure_alone(&alone(), directory, arguments)
}

/// The same for a caller that holds the lock already.
pub fn measure_alone(_: &MutexGuard<'static, ()>, directory: &Path, arguments: &[&str]) -> ResultDocument {
    run(directory, &[arguments, &["--force", "--result", "result.json"]].concat(), 0);
    document(&directory.join("result.json"))
}

/// Reads the document in a file.
pub fn document(path: &Path) -> ResultDocument {
    let bytes = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// One run with every output, for all tests that only read them.
pub struct Whole {
    /// Directory of its files: result.json, report.html, run.hlog, raw.*.
    pub directory: PathBuf,
    pub document: ResultDocument,
    /// The document once more, by `--json`.
    pub stdout: Vec<u8>,
}

impl Whole {
    pub fn path(&self, name: &str) -> String {
        self.directory.join(name).display().to_string()
    }
}

/// Returns that run, which is made once.
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

pub struct UnderWay {
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

    pub fn signal(&self, signal: Signal) {
        rustix::process::kill_process(Pid::from_child(&self.child), signal).expect("the process is ours");
    }

    /// Its trace instances in the kernel.
    pub fn instances(&self) -> Vec<String> {
        instances_of(self.child.id())
    }

    pub fn wait(self) -> Output {
        self.wait_and_stay_alone().0
    }

    /// Waits for the end. Other runs begin once the guard is dropped.
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

/// True if this test may make instances in a tracefs that is mounted. Prints a message otherwise.
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

/// True if this is root. Prints a message otherwise.
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

/// The highest of them, if lowlat has another one for its other threads. Prints a message otherwise.
pub fn spare_cpu(what: &str) -> Option<CpuId> {
    let allowed = allowed();
    if allowed.len() < 2 {
        say!("skipped: {what}: needs two CPUs");
        return None;
    }
    allowed.highest()
}

/// True if a warning of the document or its record contains this.
pub fn warns(document: &ResultDocument, part: &str) -> bool {
    let record = document.jitter().into_iter().flat_map(|jitter| &jitter.record.warnings);
    document.warnings.iter().chain(record).any(|warning| warning.contains(part))
}

/// All warnings, for the message of a test that misses one.
pub fn warnings(document: &ResultDocument) -> String {
    let record = document.jitter().into_iter().flat_map(|jitter| &jitter.record.warnings);
    document.warnings.iter().chain(record).fold(String::new(), |text, warning| text + "\n  " + warning)
}
