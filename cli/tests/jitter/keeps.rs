//! Failures during a run: it continues, reports them, and keeps what it measured.

use crate::{
    common::text,
    jitter::runs::{self, UnderWay},
};
use lowlat_host::CpuSet;
use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

#[test]
fn a_raw_directory_that_vanishes_costs_the_raw_files_only() {
    let directory = tempfile::tempdir().unwrap();
    let gone = directory.path().join("gone");
    fs::create_dir(&gone).unwrap();
    let arguments =
        ["--duration", "3s", "--force", "--no-causes", "--raw", "gone/raw", "--result", "result.json"];
    let run = UnderWay::start(&mut runs::jitter(directory.path(), &arguments));
    fs::remove_dir_all(&gone).unwrap();
    let output = run.wait();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let document = runs::document(&directory.path().join("result.json"));
    assert!(runs::warns(&document, "raw file"), "{}", runs::warnings(&document));
    assert!(document.jitter().unwrap().record.cpus.iter().all(|cpu| cpu.runtime_ns >= 3_000_000_000));
    assert!(text(&output.stdout).contains("raw file"), "{}", text(&output.stdout));
}

#[test]
fn a_result_directory_that_vanishes_does_not_cost_the_rest() {
    let directory = tempfile::tempdir().unwrap();
    let gone = directory.path().join("gone");
    fs::create_dir(&gone).unwrap();
    let arguments = [
        "--duration",
        "2s",
        "--force",
        "--no-causes",
        "--raw",
        "raw",
        "--result",
        "gone/result.json",
        "--hlog",
        "run.hlog",
    ];
    let run = UnderWay::start(&mut runs::jitter(directory.path(), &arguments));
    fs::remove_dir_all(&gone).unwrap();
    let output = run.wait();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("cannot write gone/result.json") && said.contains("wrote run.hlog"), "{said}");
    assert!(text(&output.stdout).contains("Per CPU"), "the result is shown all the same");
    assert!(fs::metadata(directory.path().join("run.hlog")).unwrap().len() > 0);
}

/// A small file system in memory, unmounted with this value.
struct Disk<'a>(&'a Path);

impl<'a> Disk<'a> {
    fn mount(at: &'a Path, size: &str) -> Result<Self, String> {
        let mut command = Command::new("mount");
        command.args(["-t", "tmpfs", "-o", size, "lowlat-test"]).arg(at).stdin(Stdio::null());
        match command.output() {
            Ok(output) if output.status.success() => Ok(Self(at)),
            Ok(output) => Err(text(&output.stderr).trim().to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }
}

impl Drop for Disk<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0).status();
    }
}

#[test]
fn a_full_disk_keeps_what_it_could_take() {
    if !runs::is_root("a full disk under --raw") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let small = directory.path().join("small");
    fs::create_dir(&small).unwrap();
    let disk = match Disk::mount(&small, "size=64k") {
        Ok(disk) => disk,
        Err(why) => {
            say!("skipped: a full disk under --raw: {why}");
            return;
        }
    };
    // Every turn of the loop that takes longer than the median counts, so that the disk is full in a moment whatever the
    // host does.
    let cpu = runs::allowed().highest().unwrap();
    let place = ["--cpus", &cpu.to_string(), "--no-causes"];
    // The loop may be slower in the next run, which then refuses the threshold.
    let document = (0..20).find_map(|_| {
        let short = runs::measure(directory.path(), &[&["--duration", "100ms"][..], &place].concat());
        let period_ns = short.jitter().unwrap().record.cpus[0].loop_period_ns;
        let threshold = format!("{}ns", period_ns.floor() + 1.0);
        let outputs = ["--raw", "small/raw", "--force", "--result", "result.json"];
        let run = ["--duration", "500ms", "--threshold", &threshold];
        let _alone = runs::alone();
        let output = runs::jitter(directory.path(), &[&run[..], &place, &outputs].concat()).output().unwrap();
        let said = text(&output.stderr);
        assert!(output.status.success() || said.contains("cannot tell interruptions"), "{said}");
        output.status.success().then(|| runs::document(&directory.path().join("result.json")))
    });
    let document = document.expect("a loop that is as fast as in the run before");
    assert!(runs::warns(&document, "end before the run does"), "{}", runs::warnings(&document));
    assert!(runs::warns(&document, "No space left"), "{}", runs::warnings(&document));
    assert!(document.jitter().unwrap().record.cpus[0].interruption_count > 4_096, "all are in the document");
    let part = fs::metadata(small.join(format!("raw.{cpu}.part"))).expect("what was written is kept");
    assert!(part.len() >= 32 << 10, "{} bytes", part.len());
    drop(disk);
}

#[test]
fn a_sampler_that_is_moved_keeps_what_it_measured_before() {
    // The test moves the sampler, as the kernel does when a CPU is taken offline.
    let Some(cpu) = runs::spare_cpu("a sampler that is moved off its CPU") else { return };
    let other = runs::allowed().iter().next().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let list = cpu.to_string();
    // The gate would hold for what was measured.
    let keeps = ["--result", "result.json", "--raw", "raw", "--gate", "max<1000s"];
    let arguments = [&["--duration", "3s", "--force", "--cpus", &list][..], &keeps].concat();
    let run = UnderWay::start(&mut runs::jitter(directory.path(), &arguments));
    let sampler = run.thread(&format!("lowlat/{cpu}")).expect("its sampler");
    let mut set = rustix::thread::CpuSet::new();
    set.set(usize::try_from(other).unwrap());
    rustix::thread::sched_setaffinity(Some(sampler), &set).expect("the process is ours");
    let output = run.wait();
    assert_eq!(output.status.code(), Some(4), "a cut run shows no limit: {}", text(&output.stderr));
    let document = runs::document(&directory.path().join("result.json"));
    assert!(!document.jitter().unwrap().gate.as_ref().unwrap().is_held());
    assert!(runs::warns(&document, &format!("CPU {cpu}")), "{}", runs::warnings(&document));
    let of = &document.jitter().unwrap().record.cpus[0];
    assert!(of.has_moved && of.loop_count > 0 && of.runtime_ns < 3_000_000_000, "{of:?}");
}

#[test]
fn a_cpu_that_is_taken_offline_keeps_what_it_measured_before() {
    let what = "a CPU taken offline during the run";
    let allowed = runs::allowed();
    let Some(cpu) = allowed.highest().filter(|_| allowed.len() >= 4) else {
        say!("skipped: {what}: needs four CPUs, so that others can spare one");
        return;
    };
    let online = format!("/sys/devices/system/cpu/cpu{cpu}/online");
    if fs::OpenOptions::new().write(true).open(&online).is_err() {
        say!("skipped: {what}: {online} can't be written");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let both: CpuSet = allowed.iter().skip(allowed.len() - 2).collect();
    let list = both.to_list();
    let arguments =
        ["--duration", "4s", "--force", "--cpus", &list, "--result", "result.json", "--raw", "raw"];
    let run = UnderWay::start(&mut runs::jitter(directory.path(), &arguments));
    let result = fs::write(&online, "0");
    let output = run.wait();
    let back = fs::write(&online, "1");
    if let Err(why) = result {
        say!("skipped: {what}: {why}");
        return;
    }
    back.expect("it comes back");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let document = runs::document(&directory.path().join("result.json"));
    assert!(runs::warns(&document, &format!("CPU {cpu}")), "{}", runs::warnings(&document));
    let record = &document.jitter().unwrap().record;
    assert!(record.cpus.iter().all(|of| of.has_moved == (of.cpu == cpu) && of.loop_count > 0));
}

#[test]
fn real_time_samplers_are_recorded_as_such() {
    let what = "real-time samplers";
    let (true, Some(cpu)) = (runs::is_root(what), runs::spare_cpu(what)) else { return };
    let directory = tempfile::tempdir().unwrap();
    let document =
        runs::measure(directory.path(), &["--duration", "500ms", "--cpus", &cpu.to_string(), "--fifo", "10"]);
    assert_eq!(document.jitter().unwrap().record.real_time.as_deref(), Some("SCHED_FIFO 10"));
    assert!(runs::warns(&document, "SCHED_FIFO 10"), "{}", runs::warnings(&document));
}
