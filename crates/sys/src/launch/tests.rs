//! Commands on this host.

use super::*;
use crate::scheduling::scheduling;
use lowlat_launch::{Accelerator, Mode, ThreadMap};

fn launch(cpus: Vec<u32>) -> Launch {
    Launch {
        mode: Mode::Interrupt,
        cpus,
        thread_map: ThreadMap::default(),
        policy: None,
        memory: Memory::Inherited,
        environment: Vec::new(),
        launcher: Vec::new(),
        is_awake: false,
        accelerator: None,
        warnings: Vec::new(),
    }
}

fn shell(line: &str) -> Vec<String> {
    ["sh", "-c", line].map(str::to_owned).to_vec()
}

fn first_cpu() -> u32 {
    let stat = std::fs::read_to_string("/proc/thread-self/status").unwrap();
    let list = stat.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
    CpuSet::parse_list(list.trim()).unwrap().lowest().unwrap()
}

#[test]
fn exit_codes_pass() {
    let code = |line: &str| run(&Root::live(), &launch(vec![first_cpu()]), &shell(line), false).unwrap().code;
    assert_eq!(code("exit 7"), 7);
    assert_eq!(code("kill -KILL $$"), 128 + 9);
}

#[test]
fn the_command_starts_with_its_settings() {
    let cpu = first_cpu();
    let mut wanted = launch(vec![cpu]);
    wanted.memory = Memory::Node(0);
    wanted.policy = Some((SchedPolicy::Batch, 0));
    wanted.environment = vec![("DESK".into(), "7".into())];
    // Field 41 of the stat line is the policy; 3 is SCHED_BATCH.
    let line = format!(
        "grep -q 'Cpus_allowed_list:\t{cpu}$' /proc/self/status || exit 1
         grep -q 'bind:0' /proc/self/numa_maps || exit 2
         [ $(cut -d' ' -f41 /proc/self/stat) = 3 ] || exit 3
         [ $DESK = 7 ] || exit 4"
    );
    assert_eq!(run(&Root::live(), &wanted, &shell(&line), false).unwrap().code, 0);
}

#[test]
fn refusals_name_the_setting_and_leave_this_process_alone() {
    let mut wanted = launch(vec![first_cpu()]);
    wanted.policy = Some((SchedPolicy::Fifo, 500));
    let error = run(&Root::live(), &wanted, &shell("exit 0"), false).unwrap_err().to_string();
    assert!(error.starts_with("cannot set SCHED_FIFO 500: "), "{error}");
    assert_eq!(scheduling(thread_id()).unwrap().policy, SchedPolicy::Other);
    let missing =
        run(&Root::live(), &launch(vec![first_cpu()]), &["/nonexistent/desk".to_owned()], false).unwrap_err();
    assert!(missing.to_string().starts_with("cannot start /nonexistent/desk: "), "{missing}");
}

#[test]
fn a_command_without_the_library_is_stopped_if_acceleration_is_required() {
    let mut wanted = launch(vec![first_cpu()]);
    wanted.accelerator = Some(Accelerator::Vma);
    let error = run(&Root::live(), &wanted, &shell("exec sleep 600"), true).unwrap_err();
    assert!(matches!(error, LaunchError::NotAccelerated { found: Acceleration::NoLibrary, .. }), "{error}");
    let ran = run(&Root::live(), &wanted, &shell("sleep 0.7; exit 3"), false).unwrap();
    assert_eq!((ran.code, ran.acceleration), (3, Some(Acceleration::NoLibrary)), "otherwise it is reported");
}
