//! A pipeline under attack.

use crate::common::binary;
use serde_json::{Value, json};
use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// Guards against a hang; not an expected duration.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// A run named `desk` with two strategies, whose run folder is in a directory of the test.
pub struct Pipeline {
    child: Option<Child>,
    runs: TempDir,
}

impl Pipeline {
    /// Starts a run, and waits until its strategies publish.
    pub fn start(arguments: &[&str]) -> Self {
        Self::start_by(Command::new(binary()), arguments)
    }

    /// The same, with a command that runs the binary.
    pub fn start_by(mut command: Command, arguments: &[&str]) -> Self {
        let runs = TempDir::new().unwrap();
        command.args([
            "pipeline",
            "run",
            "--name",
            "desk",
            "--strategies",
            "2",
            "--rate",
            "100",
            "--json",
            "--force",
        ]);
        command.args(arguments).env("XDG_RUNTIME_DIR", runs.path()).env("NO_COLOR", "1");
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let pipeline = Self { child: Some(child), runs };
        // The socket is protected after it appears, and before it listens.
        let is_protected = || fs::metadata(pipeline.socket()).is_ok_and(|of| of.mode() & 0o777 == 0o600);
        wait_for("the run listens", is_protected);
        pipeline
    }

    pub fn socket(&self) -> PathBuf {
        self.folder().join("master.sock")
    }

    pub fn folder(&self) -> PathBuf {
        self.runs.path().join("lowlat/desk")
    }

    /// Waits for its end. Returns its output.
    pub fn end(mut self) -> Output {
        self.child.take().unwrap().wait_with_output().unwrap()
    }

    /// Waits for its end, which must be a success. Returns its document.
    pub fn document(self) -> Value {
        let output = self.end();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
    }
}

impl Drop for Pipeline {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            child.kill().ok();
            child.wait().ok();
        }
    }
}

/// The run of two strategies that a role is started with.
pub fn request(cached_store: Option<&Path>) -> String {
    json!({
        "parameters": {
            "strategies": 2, "rate_per_s": 1.0, "mode": "parked", "duration_s": 1.0, "pins": {},
            "may_use_huge_pages": false,
        },
        "options": {"overrun": "gap", "cached_store": cached_store},
    })
    .to_string()
}

/// Runs one role against a master, as an attacker may. Returns its output.
pub fn role(socket: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(binary());
    command.arg("pipeline-role").args(arguments).arg("--master").arg(socket);
    command.args(["--run", &request(None)]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap().wait_with_output().unwrap()
}

/// Waits for a condition, and panics after `PATIENCE`.
pub fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "waited in vain: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// The warnings of a run's document, as one text.
pub fn warnings(document: &Value) -> String {
    document["warnings"].to_string()
}
