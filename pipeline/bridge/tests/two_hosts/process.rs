//! A process of the test.

use std::{
    ffi::OsStr,
    fs::File,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::Duration,
};

/// A process that is killed when the test ends.
pub struct Process {
    child: Child,
    said: PathBuf,
    result: PathBuf,
}

impl Process {
    /// The bridge in a network namespace. Its output goes to files in `folder`.
    pub fn start(
        space: &str,
        folder: &std::path::Path,
        name: &str,
        environment: &[(&str, &str)],
        arguments: &[&OsStr],
    ) -> Self {
        let (said, result) = (folder.join(format!("{name}.said")), folder.join(format!("{name}.result")));
        let child = Command::new("ip")
            .args(["netns", "exec", space, env!("CARGO_BIN_EXE_lowlat-bridge")])
            .args(arguments)
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(File::create(&result).unwrap())
            .stderr(File::create(&said).unwrap())
            .spawn()
            .unwrap();
        Self { child, said, result }
    }

    /// Returns its standard error so far.
    pub fn said(&self) -> String {
        std::fs::read_to_string(&self.said).unwrap()
    }

    /// Checks that it is still running.
    pub fn assert_runs(&mut self) {
        let status = self.child.try_wait().unwrap();
        assert!(status.is_none(), "it ended with {status:?}: {}", self.said());
    }

    /// Returns true if it ended with exit status 2.
    pub fn has_failed(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some_and(|status| status.code() == Some(2))
    }

    /// Kills it with SIGKILL.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Asks it to end. `ip netns exec` executes the program, so the process id is the bridge's.
    fn ask(&self) -> bool {
        let asked =
            Command::new("kill").args(["-TERM", &self.child.id().to_string()]).stderr(Stdio::null()).status();
        asked.is_ok_and(|status| status.success())
    }

    /// Asks it to end, and returns its result.
    pub fn end(mut self) -> serde_json::Value {
        assert!(self.ask(), "asked to end");
        let status = self.child.wait().unwrap();
        let said = self.said();
        assert!(status.success(), "{status}: {said}");
        let result = std::fs::read_to_string(&self.result).unwrap();
        serde_json::from_str(&result).unwrap_or_else(|error| panic!("{error}: {result:?}; {said}"))
    }
}

/// Asks first: a media driver then removes its directory.
impl Drop for Process {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}: {}", self.said.display(), std::fs::read_to_string(&self.said).unwrap_or_default());
        }
        self.ask();
        for _ in 0..500 {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
