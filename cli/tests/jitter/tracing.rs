//! Runs on hosts whose trace is unavailable or shared with other tracers.

use crate::{
    common::{programs::copy_binary, text},
    jitter::runs,
};
use lowlat_jitter::CauseSource;
use std::{
    fs,
    os::unix::{
        fs::PermissionsExt as _,
        process::{CommandExt as _, ExitStatusExt as _},
    },
    path::{Path, PathBuf},
    process::Command,
};

/// The user and group that own nothing.
const NOBODY: u32 = 65_534;

/// A directory that every user may enter and write to, with a copy of the binary that every user may run.
fn for_everybody() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let binary = directory.path().join("lowlat");
    copy_binary(&binary);
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o777)).unwrap();
    (directory, binary)
}

#[test]
fn without_permission_counters_stand_in_with_a_reason() {
    if !runs::is_root("a run of a user who may not trace") {
        return;
    }
    let (directory, binary) = for_everybody();
    let _alone = runs::alone();
    let output = Command::new(binary)
        .args(["jitter", "--duration", "500ms", "--force", "--result", "result.json"])
        .current_dir(directory.path())
        .uid(NOBODY)
        .gid(NOBODY)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let document = runs::document(&directory.path().join("result.json"));
    let causes =
        document.jitter().expect("a measurement").record.causes.as_ref().expect("causes were looked for");
    assert_eq!(causes.source, CauseSource::Counters);
    assert!(causes.reason.contains("run as root"), "{}", causes.reason);
    assert!(causes.reason.contains("--no-causes"), "{}", causes.reason);
    let said = text(&output.stdout);
    assert!(said.contains("Activity on the measured CPUs") && said.contains("run as root"), "{said}");
}

#[test]
fn an_unmounted_tracefs_is_mounted_for_the_run_alone() {
    const NOT_THERE: i32 = 77;
    if !runs::is_root("a run without a mounted tracefs")
        || !runs::may_trace("a run without a mounted tracefs")
    {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let line = format!(
        "umount -R -l /sys/kernel/debug 2>/dev/null; umount -l /sys/kernel/tracing || exit {NOT_THERE}
         grep -q ' tracefs ' /proc/self/mountinfo && exit {NOT_THERE}
         {} jitter --duration 500ms --force --result result.json > /dev/null || exit 1
         grep -q ' tracefs ' /proc/self/mountinfo && exit 3
         exit 0",
        crate::common::binary().display()
    );
    let _alone = runs::alone();
    let command =
        Command::new("unshare").args(["-m", "sh", "-c", &line]).current_dir(directory.path()).output();
    let output = match command {
        Ok(output) if output.status.code() != Some(NOT_THERE) => output,
        other => {
            say!("skipped: a run without a mounted tracefs: {other:?}");
            return;
        }
    };
    assert_eq!(output.status.code(), Some(0), "{} {:?}", text(&output.stderr), output.status.signal());
    let document = runs::document(&directory.path().join("result.json"));
    let causes =
        document.jitter().expect("a measurement").record.causes.as_ref().expect("causes were looked for");
    assert_eq!((causes.source, causes.reason.as_str()), (CauseSource::Trace, ""));
}

/// Another tracer's instance, removed with this value.
struct Other(PathBuf);

impl Other {
    fn start(event: &str) -> Self {
        let other = Self(Path::new(runs::INSTANCES).join(format!("test-other-{}", std::process::id())));
        fs::create_dir(&other.0).unwrap();
        fs::write(other.0.join("events").join(event).join("enable"), "1").unwrap();
        other
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn another_tracer_is_told_of() {
    if !runs::may_trace("a run beside another tracer") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let other = Other::start("sched/sched_process_exec");
    let document = runs::measure(directory.path(), &["--duration", "500ms"]);
    let name = other.0.file_name().unwrap().to_string_lossy().into_owned();
    drop(other);
    assert!(runs::warns(&document, "Another tracer is active"), "{}", runs::warnings(&document));
    assert!(runs::warns(&document, &name) && runs::warns(&document, "sched_process_exec"));
}
