//! A run in a separate process: to be stopped, or to be made without privileges.

use crate::truth::host::{observe, options};
use lowlat_host::CpuId;
use lowlat_host_run::affinity;
use lowlat_jitter::JitterRecord;
use std::{
    env,
    io::Read,
    process::{Child, ChildStdout, Command, Stdio},
    thread::{self, JoinHandle},
    time::Duration,
};

/// Mode of the child, and the CPU that it measures.
const MODE: &str = "LOWLAT_TRUTH_CHILD";
/// Text before the record in the child's output.
const MARK: &str = "the record: ";
/// A run as any user.
pub const UNPRIVILEGED: &str = "unprivileged";
/// A run as the user of the test.
pub const PLAIN: &str = "plain";
/// "nobody" on most hosts; any user except root works.
const NOBODY: libc::uid_t = 65_534;

pub struct ChildRun {
    child: Child,
    /// Its output, read continuously, so that it never blocks.
    text: JoinHandle<String>,
}

impl ChildRun {
    pub fn start(mode: &str, cpu: CpuId) -> Self {
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["--exact", "truth::child::makes_the_run_of_another_test", "--ignored", "--nocapture"]);
        command.env(MODE, format!("{mode} {cpu}")).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdout: ChildStdout = child.stdout.take().unwrap();
        let read = move || {
            let mut text = String::new();
            stdout.read_to_string(&mut text).unwrap();
            text
        };
        Self { child, text: thread::spawn(read) }
    }

    /// Its process id, which stays its own until the record was requested.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the child's record.
    pub fn into_record(mut self) -> JitterRecord {
        let text = self.text.join().unwrap();
        assert!(self.child.wait().unwrap().success(), "{text}");
        let record = text.lines().find_map(|line| Some(line.split_once(MARK)?.1));
        serde_json::from_str(record.unwrap_or_else(|| panic!("no record in {text}"))).unwrap()
    }
}

#[test]
#[ignore = "other tests start it in a separate process"]
fn makes_the_run_of_another_test() {
    let Ok(mode) = env::var(MODE) else {
        eprintln!("skipped: other tests start this one in a separate process");
        return;
    };
    let (mode, cpu) = mode.split_once(' ').unwrap();
    let cpu: CpuId = cpu.parse().unwrap();
    assert!(affinity::current().unwrap().contains(cpu));
    if mode == UNPRIVILEGED {
        give_up_privileges();
    }
    let record = observe(&options(cpu, Duration::from_millis(1_500)), true);
    println!("\n{MARK}{}", serde_json::to_string(&record).unwrap());
}

/// For all threads of the process, which was started for that. Without privileges it stays as it is.
fn give_up_privileges() {
    // SAFETY: neither call takes a pointer.
    unsafe {
        if libc::geteuid() == 0 {
            assert_eq!(libc::setresgid(NOBODY, NOBODY, NOBODY), 0);
            assert_eq!(libc::setresuid(NOBODY, NOBODY, NOBODY), 0);
        }
    }
}
