//! Raw files from the first interruption to sysjitter's text.

use super::*;
use crate::jitter::ring;
use lowlat_jitter::{
    JitterCpu, JitterRecord,
    sysjitter::{RawRow, testing::parse_raw},
};
use std::fs;

const CPUS: &str = "2,11";

fn cpus() -> CpuSet {
    CpuSet::parse_list(CPUS).unwrap()
}

/// One tick is half a nanosecond; the run starts at 1,000.
fn record() -> JitterRecord {
    let cpu = |cpu| JitterCpu { cpu, start_ticks: 1_100, stop_ticks: 21_100, ..JitterCpu::default() };
    JitterRecord {
        counter_hz: 2_000_000_000,
        start_ticks: 1_000,
        threshold_ns: 100,
        cpus: cpus().iter().map(cpu).collect(),
        ..JitterRecord::default()
    }
}

fn texts(files: RawFiles) -> Vec<String> {
    files.convert(&record()).iter().map(ToString::to_string).collect()
}

fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn spools_become_sysjitters_files() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("raw.02"), "from an earlier run, and longer than what comes").unwrap();
    let mut files = RawFiles::create(&directory.path().join("raw"), &cpus()).unwrap();
    assert_eq!(names(directory.path()), ["raw.02", "raw.02.part", "raw.11.part"]);

    let (mut producer, consumer) = ring(4);
    let (_, other) = ring(4);
    for (before, now) in [(2_000, 2_400), (8_001_000, 8_003_000), (9_000_000, 9_000_202)] {
        producer.push(before, now);
    }
    let mut lanes =
        [Lane { cpu: 2, thread_id: 1, ring: consumer }, Lane { cpu: 11, thread_id: 2, ring: other }];
    files.collect(1_000, &mut lanes);
    files.finish(&lanes);
    assert_eq!(files.convert(&record()), []);

    assert_eq!(names(directory.path()), ["raw.02", "raw.11"]);
    let text = fs::read_to_string(directory.path().join("raw.02")).unwrap();
    let file = parse_raw(&text).unwrap();
    assert_eq!((file.head.interruption_count, file.head.interruption_ticks), (3, 2_602));
    assert_eq!((file.head.runtime_ticks, file.head.threshold_ns), (20_000, 100));
    let row = |end_ns, delta_us, ticks, length_ns| RawRow { end_ns, delta_us, ticks, length_ns };
    assert_eq!(
        file.rows,
        [row(700, 0, 400, 200), row(4_001_000, 4_000, 2_000, 1_000), row(4_499_601, 498, 202, 101)]
    );
    let quiet = fs::read_to_string(directory.path().join("raw.11")).unwrap();
    assert_eq!(quiet, "# cpu_mhz: 2000\n# threshold: 100ns\n# n_interruptions: 0\n");
}

#[test]
fn unwritable_files_are_an_error_before_the_run() {
    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join("missing/raw");
    let error = RawFiles::create(&missing, &cpus()).unwrap_err().to_string();
    assert!(error.starts_with(&format!("cannot write {}.02: No such", missing.display())), "{error}");
    // The second CPU's path is a directory: nothing of the first is left.
    fs::create_dir(directory.path().join("raw.11")).unwrap();
    assert!(RawFiles::create(&directory.path().join("raw"), &cpus()).is_err());
    assert_eq!(names(directory.path()), ["raw.11"]);
    let cause = OutputCause::Io(std::io::Error::from_raw_os_error(libc::EMFILE));
    let too_many = RawError::of(OutputError { path: missing, cause }).to_string();
    assert!(too_many.contains("ulimit -n"), "{too_many}");
}

#[test]
fn a_failed_run_leaves_no_file() {
    let directory = tempfile::tempdir().unwrap();
    RawFiles::create(&directory.path().join("raw"), &cpus()).unwrap().discard();
    assert_eq!(names(directory.path()), Vec::<String>::new());
}

#[test]
fn losses_are_reported() {
    let directory = tempfile::tempdir().unwrap();
    let mut files = RawFiles::create(&directory.path().join("raw"), &cpus()).unwrap();
    let (mut producer, consumer) = ring(2);
    (0..5).for_each(|n| producer.push(2_000 + n, 3_000 + n));
    let mut lanes = [Lane { cpu: 2, thread_id: 1, ring: consumer }];
    files.collect(1_000, &mut lanes);
    files.finish(&lanes);
    assert_eq!(
        texts(files),
        [
            "On CPU 2 interruptions were too frequent to be written: 3 are missing in the raw files, but in no \
          other figure."
        ]
    );
}

#[test]
fn a_vanished_directory_stops_the_streaming_and_nothing_else() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("gone");
    fs::create_dir(&directory).unwrap();
    let mut files = RawFiles::create(&directory.join("raw"), &cpus()).unwrap();
    fs::remove_dir_all(&directory).unwrap();
    for n in 0..3_000 {
        files.push(0, 2_000 + 10 * n, 2_005 + 10 * n);
    }
    files.complete(&[]);
    let warnings = texts(files);
    assert_eq!(warnings.len(), 3, "{warnings:?}");
    assert!(warnings[0].contains("raw.02 could not be written (No such file"), "{warnings:?}");
    assert!(warnings[1].contains("raw.11 could not be written"), "{warnings:?}");
    assert!(
        warnings[2]
            .starts_with("The raw files of CPU 2 end before the run does (the file was removed): 1976 "),
        "{warnings:?}"
    );
}

/// A device on which every write finds a full disk.
#[test]
fn a_full_disk_is_reported_with_its_losses() {
    let full = Path::new("/dev/full");
    if !full.exists() {
        eprintln!("skipped: a_full_disk_is_reported_with_its_losses: no /dev/full");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let mut files = RawFiles::create(&directory.path().join("raw"), &CpuSet::of(2)).unwrap();
    files.cpus[0].spool = Spool::new(File::options().read(true).write(true).open(full).unwrap());
    (0..3_000).for_each(|n| files.push(0, 2_000 + n, 2_005 + n));
    files.complete(&[]);
    let warnings = texts(files);
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("No space left on device"), "{warnings:?}");
    assert!(warnings[0].contains(": 3000 interruptions are missing"), "{warnings:?}");
    let text = fs::read_to_string(directory.path().join("raw.2")).unwrap();
    assert_eq!(parse_raw(&text).unwrap().rows, []);
}

/// Names of raw files are predictable: prepared links are not followed.
#[test]
fn prepared_links_are_not_followed() {
    let directory = tempfile::tempdir().unwrap();
    let victim = directory.path().join("victim");
    for name in ["raw.2", "raw.2.part"] {
        fs::write(&victim, "theirs").unwrap();
        let link = directory.path().join(name);
        std::os::unix::fs::symlink(&victim, &link).unwrap();
        let error = RawFiles::create(&directory.path().join("raw"), &CpuSet::of(2)).unwrap_err().to_string();
        assert!(error.contains(&format!("{name}: it is a link")), "{error}");
        assert_eq!(fs::read(&victim).unwrap(), b"theirs");
        fs::remove_file(link).unwrap();
    }
    assert_eq!(names(directory.path()), ["victim"]);
}
