use super::*;
use crate::testing::TestTree;
use lowlat_catalogue::CATALOGUE;
use lowlat_host::{HostSnapshot, Reading, snapshot::OriginKind};
use std::os::unix::fs::PermissionsExt;

fn plain() -> CaptureOptions {
    CaptureOptions { is_redacted: false, role: None }
}

fn small_host() -> TestTree {
    let policy = "/sys/devices/system/cpu/cpufreq/policy0";
    let mut tree = TestTree::new()
        .file("/proc/cpuinfo", "processor\t: 0\nvendor_id\t: GenuineIntel\nflags\t: fpu hypervisor\n")
        .file("/proc/meminfo", "MemTotal:  2048 kB\nHugepagesize: 2048 kB\n")
        .file("/proc/stat", "cpu  1\ncpu0 1 2 3 4 5 6 7 8 9 10\n")
        .file("/proc/swaps", "Filename Type Size Used Priority\n")
        .file("/proc/cmdline", "root=UUID=4c4c4544-0042-3510-8052-b7c04f4d3233 isolcpus=1\n")
        .file("/proc/version", "Linux version 6.1 (root@trader7)\n")
        .file("/proc/sys/kernel/hostname", "trader7\n")
        .file("/proc/sys/kernel/numa_balancing", "0\n")
        .file("/proc/2/stat", "2 (kthreadd) S 0 0 0 0 -1 2129984 0 0\n")
        .file("/proc/2/comm", "kthreadd\n")
        .file("/proc/77/stat", "77 (strategy) S 1 0 0 0 -1 4194560 0 0\n")
        .file("/proc/77/comm", "strategy\n")
        .file("/sys/devices/system/cpu/online", "0-1\n")
        .file("/sys/devices/system/cpu/smt/control", [0xff, 0xfe])
        .file(&format!("{policy}/affected_cpus"), "0\n")
        .file(&format!("{policy}/scaling_governor"), "performance\n")
        .dir("/sys/devices/system/cpu/cpu0/cpuidle")
        .file("/sys/devices/virtual/dmi/id/sys_vendor", "QEMU\n")
        .file("/sys/devices/virtual/dmi/id/product_serial", "SECRET1\n")
        .file("/sys/devices/pci0000:00/0000:00:02.0/net/eth0/address", "52:54:00:12:34:56\n")
        .link("/sys/class/net/eth0", "../../devices/pci0000:00/0000:00:02.0/net/eth0")
        .link("/sys/class/dmi/id", "../../devices/virtual/dmi/id")
        .link("/sys/devices/system/cpu/cpu1/cpufreq", "../cpufreq/policy0");
    for (cpu, capacity) in [(0, "1024\n"), (1, "x\n")] {
        let folder = format!("/sys/devices/system/cpu/cpu{cpu}");
        tree = tree
            .file(&format!("{folder}/topology/core_cpus_list"), cpu.to_string())
            .file(&format!("{folder}/cpu_capacity"), capacity);
    }
    tree
}

fn read_back(root: &Root, out: &Path) -> (HostSnapshot, HostSnapshot) {
    let mut captured = snapshot::read(&Root::open(out).unwrap(), CATALOGUE);
    let original = snapshot::read(root, CATALOGUE);
    assert_eq!(captured.origin.kind, OriginKind::Capture);
    captured.origin = original.origin.clone();
    (original, captured)
}

#[test]
fn a_capture_gives_the_same_snapshot() {
    let (tree, folder) = (small_host(), tempfile::tempdir().unwrap());
    let out = folder.path().join("host.tar.gz");
    let root = tree.root();
    let summary = capture(&root, CATALOGUE, &out, &plain()).unwrap();
    assert!(summary.files > 10 && summary.redacted_files == 0 && summary.warnings.is_empty(), "{summary:?}");
    let (original, captured) = read_back(&root, &out);
    assert_eq!(captured, original);
    assert_eq!(std::fs::metadata(&out).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside the capture");
}

#[test]
fn a_capture_holds_no_user_process_and_repeats_byte_for_byte() {
    let (tree, folder) = (small_host(), tempfile::tempdir().unwrap());
    let root = tree.root();
    root.start_recording();
    for path in ["/proc/2/stat", "/proc/2/comm", "/proc/77/stat", "/proc/77/comm"] {
        assert!(root.read(path).is_known());
    }
    assert!(root.list("/proc").is_known());
    let kept = assemble::assemble(root.take_recording());
    assert!(kept.files.contains_key("/proc/2/comm"));
    assert!(kept.files.keys().all(|path| !path.contains("/77")));
    assert!(kept.notes.values().flatten().all(|line| !line.contains("/77")));

    let outs = ["a", "b"].map(|name| folder.path().join(name));
    for out in &outs {
        capture(&root, CATALOGUE, out, &plain()).unwrap();
    }
    assert_eq!(std::fs::read(&outs[0]).unwrap(), std::fs::read(&outs[1]).unwrap());
}

#[test]
fn a_redacted_capture_says_so_and_names_nobody() {
    let (tree, folder) = (small_host(), tempfile::tempdir().unwrap());
    let out = folder.path().join("host.tar.gz");
    let summary = capture(&tree.root(), CATALOGUE, &out, &CaptureOptions::default()).unwrap();
    assert!(summary.redacted_files >= 3, "{summary:?}");
    let captured = Root::open(&out).unwrap();
    assert!(snapshot::read(&captured, CATALOGUE).origin.is_redacted);
    assert_eq!(captured.read("/proc/version").text(), "Linux version 6.1 (root@XXXXXXX)");
    assert_eq!(
        captured.read("/proc/cmdline").text(),
        "root=UUID=00000000-0000-0000-0000-000000000000 isolcpus=1"
    );
    let mut everything = Vec::new();
    let file = std::fs::File::open(&out).unwrap();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(file), &mut everything).unwrap();
    for secret in ["trader7", "SECRET1", "12:34:56", "4c4c4544", "strategy"] {
        assert!(!everything.windows(secret.len()).any(|window| window == secret.as_bytes()), "{secret}");
    }
    // A capture of a redacted capture stays redacted, whatever the options say.
    let again = folder.path().join("again.tar.gz");
    capture(&captured, CATALOGUE, &again, &plain()).unwrap();
    assert!(snapshot::read(&Root::open(&again).unwrap(), CATALOGUE).origin.is_redacted);
}

#[test]
fn the_four_answers_are_replayed() {
    let tree = small_host();
    let root = tree.root();
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("answers");
    root.start_recording();
    let paths =
        ["/proc/version", "/proc/none", "/sys/devices/system/cpu", "/sys/devices/system/cpu/smt/control"];
    let answers: Vec<_> = paths.map(|path| root.read(path)).into();
    let links = (root.read_link("/sys/class/net/eth0"), root.real_path("/sys/class/net/eth0"));
    let listed = root.list("/sys/devices/system/cpu/cpu0");
    let mut kept = assemble::assemble(root.take_recording());
    kept.notes.entry(crate::root::DENIED_LIST).or_default().insert("/sys/kernel/debug/sched".into());
    kept.notes.entry(crate::root::VALUELESS_LIST).or_default().insert("/sys/class/net/eth1/speed".into());
    write::write(&kept, &out).unwrap();

    let captured = Root::open(&out).unwrap();
    assert_eq!(paths.map(|path| captured.read(path)).to_vec(), answers);
    assert_eq!((captured.read_link("/sys/class/net/eth0"), captured.real_path("/sys/class/net/eth0")), links);
    assert_eq!(captured.list("/sys/devices/system/cpu/cpu0"), listed);
    assert_eq!(captured.read("/sys/kernel/debug/sched"), Reading::Denied);
    assert!(captured.read("/sys/class/net/eth1/speed").is_absent());
    // Listed but never read: neither absent nor empty.
    let unread = captured.read("/sys/devices/system/cpu/cpu0/cpu_capacity");
    assert!(
        matches!(&unread, Reading::Unparsable(why) if why.raw.contains("not part of this capture")),
        "{unread:?}"
    );
}

#[test]
fn a_path_that_cannot_be_written_is_named() {
    let tree = small_host();
    let error = capture(&tree.root(), CATALOGUE, Path::new("/nonexistent-folder/x"), &plain()).unwrap_err();
    assert!(error.to_string().starts_with("cannot write /nonexistent-folder/x: "), "{error}");
    let error = capture(&tree.root(), CATALOGUE, Path::new("/"), &plain()).unwrap_err();
    assert!(error.to_string().contains("no file name"), "{error}");
}

/// Removes what changes between two readings of a running host.
fn at_rest(mut host: HostSnapshot) -> HostSnapshot {
    host.memory.available_bytes = Reading::Absent;
    host.memory.swaps = Reading::Absent;
    host.memory.huge_pages.iter_mut().for_each(|pool| pool.free = Reading::Absent);
    host.virtualization.steal_ticks.clear();
    host.kernel.load_average = Reading::Absent;
    host.kernel.uptime_s = Reading::Absent;
    host.interrupts.irqs.iter_mut().for_each(|irq| irq.count_by_cpu.clear());
    for counters in [&mut host.interrupts.vectors, &mut host.interrupts.softirqs] {
        for counter in counters.iter_mut() {
            counter.count_by_cpu.clear();
        }
    }
    // The kernel starts and ends workers at any time.
    host.tasks.kernel_threads.clear();
    host
}

#[test]
fn a_capture_of_this_host_gives_the_same_facts() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("live.tar.gz");
    let root = Root::live();
    capture(&root, CATALOGUE, &out, &plain()).unwrap();
    let (original, captured) = read_back(&root, &out);
    assert_eq!(at_rest(captured), at_rest(original));
}

#[test]
fn a_redacted_capture_of_this_host_keeps_its_shape() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("live.tar.gz");
    let root = Root::live();
    capture(&root, CATALOGUE, &out, &CaptureOptions::default()).unwrap();
    let (original, captured) = read_back(&root, &out);
    assert_eq!(captured.topology, original.topology);
    assert_eq!(captured.cpu, original.cpu);
    assert_eq!(captured.nics.len(), original.nics.len());
    assert_eq!(captured.disks.len(), original.disks.len());
}
