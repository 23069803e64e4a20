//! Runs that are refused: each before anything is measured, with the next step.

use crate::{common::text, jitter::runs};
use lowlat_host::CpuSet;
use std::{fs, path::PathBuf};

/// Checks for exit code 2, and for all of these parts on stderr.
fn refused(arguments: &[&str], parts: &[&str]) {
    let directory = tempfile::tempdir().unwrap();
    let said = text(&runs::run(directory.path(), arguments, 2).stderr);
    for part in parts {
        assert!(said.contains(part), "{arguments:?} does not say {part:?}: {said}");
    }
}

#[test]
fn a_threshold_within_the_sampling_loop() {
    let arguments = ["--duration", "100ms", "--threshold", "1ns"];
    refused(&arguments, &["cannot tell interruptions of 1 ns", "leave out --threshold"]);
}

#[test]
fn cpus_that_cannot_be_measured() {
    let online = fs::read_to_string("/sys/devices/system/cpu/online").unwrap();
    let beyond = CpuSet::parse_list(online.trim()).unwrap().highest().unwrap() + 1;
    refused(
        &["--cpus", &beyond.to_string()],
        &[&format!("cannot measure CPU {beyond}: not online"), "leave them out"],
    );
    refused(&["--cpus", "1-3,2"], &["CPU 2: named more than once", "name each CPU once"]);
    refused(&["--cpus", "3-1"], &["3-1", "as a list of CPUs"]);
    refused(&["--cpus", "two"], &["\"two\"", "as a list of CPUs"]);
    refused(&["--cpus", ""], &["no CPU to measure", "1-7,9-15"]);
    refused(&["--cpus", "4294967295"], &["4294967295"]);
}

#[test]
fn thresholds_that_make_no_sense() {
    refused(&["--threshold", "0ns"], &["the threshold is zero", "100ns"]);
    refused(&["--threshold", "100"], &["\"100\" has no unit; write 100ns or 100us"]);
    refused(&["--threshold", "-5us"], &["-5us"]);
    refused(&["--threshold", "soon"], &["\"soon\" is not a duration", "100ns, 5us"]);
    refused(
        &["--threshold", "1s", "--duration", "1s"],
        &["the threshold of 1s is not below the duration of 1s"],
    );
    refused(&["--threshold", "2s", "--duration", "1s"], &["the threshold of 2s is not below"]);
}

#[test]
fn ends_that_make_no_sense() {
    refused(
        &["--stop-on", "1us", "--threshold", "2us"],
        &["below the threshold of 2µs", "lower --threshold"],
    );
    refused(&["--stop-on", "1ns", "--duration", "100ms"], &["cannot tell interruptions of 1 ns"]);
    refused(&["--stop-on", "50"], &["\"50\" has no unit"]);
    refused(&["--save-trace", "t.dat"], &["--stop-on"]);
    refused(&["--stop-on", "1ms", "--no-causes"], &["--no-causes"]);
    refused(
        &["--save-trace", "none/t.dat", "--stop-on", "1ms"],
        &["cannot write none/t.dat", "with --save-trace"],
    );
}

#[test]
fn durations_that_make_no_sense() {
    refused(&["--duration", "0s"], &["the duration is zero", "10s"]);
    refused(&["--duration", "-1s"], &["\"-1s\" is negative"]);
    refused(&["--duration=-1s"], &["\"-1s\" is negative"]);
    refused(&["--duration", "10"], &["\"10\" is not a duration", "10s, 10m or 24h"]);
    refused(&["--duration", "9000h"], &["the maximum is", "366 days"]);
}

#[test]
fn files_that_cannot_be_written_fail_before_the_run() {
    refused(&["--raw", "/nonexistent/raw"], &["/nonexistent/raw.", "name a prefix in an existing directory"]);
    for option in ["--result", "--report", "--hlog"] {
        refused(
            &[option, "/nonexistent/file"],
            &["/nonexistent/file", &format!("\nhint: name another file with {option}")],
        );
    }
}

#[test]
fn a_refusal_names_its_cause_once() {
    let directory = tempfile::tempdir().unwrap();
    let said = text(&runs::run(directory.path(), &["--raw", "/nonexistent/raw"], 2).stderr);
    assert_eq!(said.matches("No such file").count(), 1, "{said}");
}

#[test]
fn options_that_contradict_each_other() {
    for arguments in [
        &["--fifo", "10", "--rr", "10"][..],
        &["--when-quiet", "--force"],
        &["--json", "--format", "sysjitter"],
    ] {
        refused(arguments, &["cannot be used with"]);
    }
    refused(&["--fifo", "0"], &["0 is not in 1..=99"]);
    refused(&["--rr", "100"], &["100 is not in 1..=99"]);
}

#[test]
fn real_time_samplers_leave_a_cpu_for_the_rest() {
    let all = runs::allowed().to_list();
    refused(&["--fifo", "10", "--cpus", &all], &["would leave no CPU for lowlat", "leave at least one"]);
}

/// A cpuset of one CPU, removed with this value.
struct Cpuset(PathBuf);

impl Cpuset {
    /// Below the hierarchy that has cpusets already; none is switched on for a test.
    fn make(cpu: u32) -> Result<Self, String> {
        let name = format!("lowlat-test-{}", std::process::id());
        let v1 = PathBuf::from("/sys/fs/cgroup/cpuset");
        let v2 = PathBuf::from("/sys/fs/cgroup");
        let is_v2 = fs::read_to_string(v2.join("cgroup.subtree_control"))
            .is_ok_and(|enabled| enabled.split_whitespace().any(|controller| controller == "cpuset"));
        let parent = match () {
            () if is_v2 => v2,
            () if v1.join("cpuset.cpus").exists() => v1,
            () => return Err("no hierarchy of control groups has cpusets switched on".into()),
        };
        let said = |error: std::io::Error| error.to_string();
        let group = Self(parent.join(name));
        fs::create_dir(&group.0).map_err(said)?;
        fs::write(group.0.join("cpuset.cpus"), cpu.to_string()).map_err(said)?;
        let mems =
            fs::read_to_string(parent.join(if is_v2 { "cpuset.mems.effective" } else { "cpuset.mems" }));
        fs::write(group.0.join("cpuset.mems"), mems.map_err(said)?).map_err(said)?;
        Ok(group)
    }
}

impl Drop for Cpuset {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn cpus_outside_of_the_cpuset() {
    let Some(outside) = runs::spare_cpu("CPUs outside of the cpuset") else { return };
    let inside = runs::allowed().iter().next().unwrap();
    let group = match Cpuset::make(inside) {
        Ok(group) => group,
        Err(why) => {
            say!("skipped: CPUs outside of the cpuset: {why}");
            return;
        }
    };
    let line = format!(
        "echo $$ > {}/cgroup.procs && exec {} jitter --duration 1s --cpus {outside}",
        group.0.display(),
        crate::common::binary().display()
    );
    let output = std::process::Command::new("sh").args(["-c", &line]).output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains(&format!("cannot measure CPU {outside}: outside of this process's cpuset")),
        "{said}"
    );
    assert!(said.contains("cpuset.cpus contains them"), "{said}");
}
