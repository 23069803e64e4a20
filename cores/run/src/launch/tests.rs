//! Commands on this host.

use super::*;
use lowlat_host_run::scheduling::scheduling;
use lowlat_launch::{Accelerator, Mode, ThreadMap};

fn launch(cpus: Vec<u32>) -> Launch {
    Launch { mode: Mode::Interrupt, cpus, ..Launch::default() }
}

fn shell(line: &str) -> Vec<String> {
    ["sh", "-c", line].map(str::to_owned).to_vec()
}

fn allowed() -> CpuSet {
    let stat = std::fs::read_to_string("/proc/thread-self/status").unwrap();
    let list = stat.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
    CpuSet::parse_list(list.trim()).unwrap()
}

fn first_cpu() -> u32 {
    allowed().lowest().unwrap()
}

#[test]
fn exit_codes_pass() {
    let code = |line: &str| run(&Root::live(), &launch(vec![first_cpu()]), &shell(line), None).unwrap().code;
    assert_eq!(code("exit 7"), 7);
    assert_eq!(code("kill -KILL $$"), 128 + 9);
}

#[test]
fn a_signal_that_comes_at_the_command_s_end_does_not_end_lowlat() {
    let signals = Signals::block();
    // SAFETY: `raise` takes a number; the signal is blocked in this thread, to which it is sent.
    unsafe { libc::raise(libc::SIGUSR1) };
    drop(signals);
}

#[test]
fn the_command_starts_with_its_settings() {
    let cpu = first_cpu();
    let mut wanted = launch(vec![cpu]);
    wanted.memory = MemoryPolicy::Node(0);
    wanted.policy = Some((SchedPolicy::Batch, 0));
    wanted.environment = vec![("DESK".into(), "7".into())];
    // Field 41 of the stat line is the policy; 3 is SCHED_BATCH.
    let line = format!(
        "grep -q 'Cpus_allowed_list:\t{cpu}$' /proc/self/status || exit 1
         grep -q 'bind:0' /proc/self/numa_maps || exit 2
         [ $(cut -d' ' -f41 /proc/self/stat) = 3 ] || exit 3
         [ $DESK = 7 ] || exit 4"
    );
    assert_eq!(run(&Root::live(), &wanted, &shell(&line), None).unwrap().code, 0);
}

#[test]
fn copies_run_on_a_cpu_each_and_the_worst_code_counts() {
    let folder = tempfile::tempdir().unwrap();
    let cpus: Vec<u32> = allowed().iter().take(2).collect();
    let mut wanted = launch(cpus.clone());
    wanted.copies = std::num::NonZeroU32::new(3);
    let path = folder.path().display();
    let line = format!(
        "grep Cpus_allowed_list: /proc/self/status > {path}/$$; mkdir {path}/first 2>/dev/null && exit 7; exit 3"
    );
    let ran = run(&Root::live(), &wanted, &shell(&line), None).unwrap();
    assert_eq!(ran.code, 7);
    let files = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
    let mut seen: Vec<String> =
        files.filter(|path| path.is_file()).map(|path| std::fs::read_to_string(path).unwrap()).collect();
    seen.sort();
    // The third copy is on the first CPU again.
    let mut expected: Vec<String> =
        cpus.iter().cycle().take(3).map(|cpu| format!("Cpus_allowed_list:\t{cpu}\n")).collect();
    expected.sort();
    assert_eq!(seen, expected);
}

#[test]
fn copies_that_run_are_stopped_if_another_cannot_start() {
    let mut wanted = launch(vec![first_cpu()]);
    wanted.copies = std::num::NonZeroU32::new(2);
    let mut running = Running {
        root: &Root::live(),
        launch: &wanted,
        pins: Pins::new(Vec::new(), ThreadMap::default()),
        children: vec![
            start(&wanted, Some(first_cpu()), &shell("exec sleep 600"), Signals::block().mask()).unwrap(),
        ],
        started: Instant::now(),
        looked_around: Instant::now(),
        look: None,
        ran: LaunchOutcome::default(),
    };
    let folder = format!("/proc/{}", running.children[0].id());
    assert!(running.start(&["/nonexistent/desk".to_owned()], Signals::block().mask()).is_err());
    assert!(std::path::Path::new(&folder).exists());
    running.stop(&Signals::block());
    assert!(!std::path::Path::new(&folder).exists(), "waited for");
}

#[test]
fn a_cpu_that_goes_offline_is_reported_and_the_command_runs_on() {
    let cpu = first_cpu();
    // The tree of a host on which another CPU is online.
    let root = Root::in_memory("host", [(ONLINE.to_owned(), format!("{}\n", cpu + 1).into_bytes())]);
    let ran = run(&root, &launch(vec![cpu]), &shell("sleep 0.8; exit 3"), None).unwrap();
    assert_eq!((ran.code, ran.cpus_lost), (3, CpuSet::of(cpu)));
    let ran = run(&Root::live(), &launch(vec![cpu]), &shell("sleep 0.8"), None).unwrap();
    assert!(ran.cpus_lost.is_empty());
}

#[test]
fn refusals_name_the_setting_and_leave_this_process_alone() {
    let mut wanted = launch(vec![first_cpu()]);
    wanted.policy = Some((SchedPolicy::Fifo, 500));
    let error = run(&Root::live(), &wanted, &shell("exit 0"), None).unwrap_err().to_string();
    assert!(error.starts_with("cannot set SCHED_FIFO 500: "), "{error}");
    assert_eq!(scheduling(thread_id()).unwrap().policy, SchedPolicy::Other);
    let missing =
        run(&Root::live(), &launch(vec![first_cpu()]), &["/nonexistent/desk".to_owned()], None).unwrap_err();
    assert!(missing.to_string().starts_with("cannot start /nonexistent/desk: "), "{missing}");
}

#[test]
fn a_command_without_the_library_is_stopped_if_acceleration_is_required() {
    let mut wanted = launch(vec![first_cpu()]);
    wanted.accelerator = Some(Accelerator::Vma);
    let error =
        run(&Root::live(), &wanted, &shell("exec sleep 600"), Some(&SocketScope::default())).unwrap_err();
    let error = error.to_string();
    assert!(error.contains("not accelerated by VMA: its library is not in the memory of sleep"), "{error}");
    let ran = run(&Root::live(), &wanted, &shell("sleep 1.5; exit 3"), None).unwrap();
    let missing = Acceleration::NoLibrary("sh".to_owned(), Library::Missing);
    assert_eq!((ran.code, ran.acceleration), (3, Some(missing)), "otherwise it is reported");
}
