//! The same plan in a later boot: interrupts and threads have other numbers.

use super::{
    super::*,
    host::{Host, HostWithRole, plan_of},
};
use lowlat_host::{
    CpuSet, Profile, Reading,
    snapshot::{Irq, KernelThread, SchedPolicy},
};
use lowlat_undo::{OnFailure, State};

fn irq(number: u32, actions: &[&str]) -> Irq {
    let actions = actions.iter().map(|name| (*name).to_owned()).collect();
    Irq { number, actions, ..Irq::default() }
}

fn move_irq(number: u32, actions: &[&str]) -> Target {
    Target::IrqAffinity { irq: number, actions: irq(number, actions).actions }
}

/// A host whose interrupts are these, each with a file.
fn with_irqs(irqs: Vec<Irq>) -> (Host, HostSnapshot) {
    let host = Host::of(&[]);
    for irq in &irqs {
        host.put(&format!("/proc/irq/{}/smp_affinity_list", irq.number), "0-15|");
    }
    let mut snapshot = host.snapshot();
    snapshot.interrupts.irqs = irqs;
    (host, snapshot)
}

/// Change, number and CPUs of each step.
fn moves(preparation: &Preparation) -> Vec<(usize, String, String)> {
    let show = |prepared: &Prepared| {
        let State::Value(new) = &prepared.step.new else { panic!() };
        let number = prepared.step.target.name.split('/').nth(3).unwrap().to_owned();
        (prepared.change, number, new.clone())
    };
    preparation.steps.iter().map(show).collect()
}

fn run_time(plan: &Plan, (host, snapshot): &(Host, HostSnapshot)) -> Preparation {
    prepare(plan, snapshot, &host.log(), Part::RunTime).unwrap()
}

fn step(change: usize, number: &str, cpus: &str) -> (usize, String, String) {
    (change, number.to_owned(), cpus.to_owned())
}

#[test]
fn an_interrupt_is_found_by_its_handlers() {
    let plan = plan_of(vec![
        (move_irq(25, &["PCIe PME", "aerdrv"]), "0"),
        (move_irq(45, &["ens2"]), "8"),
        (move_irq(46, &["ens2-TxRx-0"]), "0,8"),
        (move_irq(47, &["gone"]), "0"),
    ]);
    // 45 is another device now, ens2 has moved, and one kept its number.
    let host = with_irqs(vec![
        irq(30, &["PCIe PME", "aerdrv"]),
        irq(45, &["nvme0q0"]),
        irq(46, &["ens2-TxRx-0"]),
        irq(60, &["ens2"]),
        irq(61, &["gone", "and another"]),
    ]);
    let preparation = run_time(&plan, &host);
    assert_eq!(moves(&preparation), [step(0, "30", "0"), step(1, "60", "8"), step(2, "46", "0,8")]);
    assert_eq!(
        preparation.left,
        [NotPrepared { change: 3, reason: "interrupt 47 gone no longer exists".into() }]
    );
    assert_eq!(preparation.notes, []);
}

#[test]
fn several_of_one_name_go_by_their_order_and_are_told() {
    let plan = plan_of(vec![
        (move_irq(50, &["eth"]), "0"),
        (move_irq(51, &["eth"]), "8"),
        (move_irq(52, &["eth"]), "1"),
    ]);
    let host = with_irqs(vec![irq(51, &["eth"]), irq(70, &["eth"])]);
    let preparation = run_time(&plan, &host);
    assert_eq!(moves(&preparation), [step(1, "51", "8"), step(0, "70", "0")]);
    let text = "2 interrupts are named eth; 70 is used for 50, by their order".to_owned();
    assert_eq!(preparation.notes, [Note { change: 0, text }]);
    assert_eq!(preparation.left.len(), 1, "{:?}", preparation.left);
    // All are unchanged, so there is nothing to report.
    let host = with_irqs(vec![irq(50, &["eth"]), irq(51, &["eth"]), irq(52, &["eth"])]);
    let preparation = run_time(&plan, &host);
    assert_eq!((preparation.steps.len(), preparation.notes.len()), (3, 0));
}

#[test]
fn what_the_kernel_manages_by_now_is_left() {
    let plan = plan_of(vec![(move_irq(50, &["nvme0q1"]), "0"), (move_irq(51, &[]), "0")]);
    let managed = Irq { is_managed: Reading::Known(true), ..irq(50, &["nvme0q1"]) };
    let preparation = run_time(&plan, &with_irqs(vec![managed, irq(51, &[])]));
    assert_eq!(preparation.steps, []);
    assert!(preparation.left[0].reason.contains("managed by the kernel"), "{:?}", preparation.left);
    assert!(preparation.left[1].reason.contains("has no handler"), "{:?}", preparation.left);
}

#[test]
fn the_mask_serves_where_there_is_no_list() {
    let (host, snapshot) = with_irqs(vec![irq(9, &["acpi"])]);
    std::fs::remove_file(host.path("/proc/irq/9/smp_affinity_list")).unwrap();
    host.put("/proc/irq/9/smp_affinity", "ffffffff,ffffffff,ffffffff|");
    let plan = plan_of(vec![(move_irq(9, &["acpi"]), "0,64")]);
    let preparation = run_time(&plan, &(host, snapshot));
    assert_eq!(moves(&preparation), [step(0, "9", "00000001,00000000,00000001")]);
}

fn thread(pid: u32, comm: &str) -> KernelThread {
    KernelThread {
        pid,
        comm: comm.to_owned(),
        cpus_allowed: Reading::Known(CpuSet::first(4)),
        policy: SchedPolicy::Other,
        rt_priority: 0,
        is_bound: false,
    }
}

fn with_threads(threads: Vec<KernelThread>) -> (Host, HostSnapshot) {
    let host = Host::of(&[]);
    for KernelThread { pid, comm, .. } in &threads {
        host.put(&format!("/proc/{pid}/status"), &format!("Name:\t{comm}|Cpus_allowed_list:\t0-3|"));
        host.put(&format!("/proc/{pid}/stat"), &format!("{pid} ({comm}) S{}|", " 0".repeat(49)));
    }
    let mut snapshot = host.snapshot();
    snapshot.tasks.kernel_threads = threads;
    (host, snapshot)
}

fn move_thread(pid: u32, comm: &str) -> Target {
    Target::KernelThreadAffinity { comm: comm.to_owned(), pid }
}

/// Change, name and value of each step.
fn threads(preparation: &Preparation) -> Vec<(usize, String, String)> {
    let show = |prepared: &Prepared| {
        let State::Value(new) = &prepared.step.new else { panic!() };
        (prepared.change, prepared.step.target.name.clone(), new.clone())
    };
    preparation.steps.iter().map(show).collect()
}

#[test]
fn a_thread_is_found_by_name_and_several_each_get_one() {
    let fifo = Target::KernelThreadScheduling { comm: "ksoftirqd/0".to_owned(), pid: 14 };
    let plan = plan_of(vec![
        (move_thread(78, "kswapd0"), "0"),
        (fifo, "SCHED_FIFO 2"),
        (move_thread(20, "khelper"), "0"),
        (move_thread(21, "khelper"), "0"),
        (move_thread(30, "gone"), "0"),
        (move_thread(31, "bound"), "0"),
        (move_thread(40, "pair"), "0"),
        (move_thread(41, "pair"), "1"),
    ]);
    let bound = KernelThread { is_bound: true, ..thread(99, "bound") };
    let host = with_threads(vec![
        thread(15, "ksoftirqd/0"),
        thread(21, "khelper"),
        thread(22, "khelper"),
        thread(23, "khelper"),
        thread(41, "pair"),
        thread(42, "pair"),
        thread(43, "pair"),
        thread(78, "other"),
        thread(90, "kswapd0"),
        bound,
    ]);
    let preparation = run_time(&plan, &host);
    assert_eq!(
        threads(&preparation),
        [
            step(0, "90 kswapd0", "0"),
            step(1, "15 ksoftirqd/0", "SCHED_FIFO 2"),
            step(3, "21 khelper", "0"),
            step(2, "22 khelper", "0"),
            step(2, "23 khelper", "0"),
            step(7, "41 pair", "1"),
            step(6, "42 pair", "0"),
        ]
    );
    let left: Vec<_> = preparation.left.iter().map(|left| (left.change, left.reason.as_str())).collect();
    assert_eq!(left[0], (4, "kernel thread gone no longer exists"));
    assert!(left[1].0 == 5 && left[1].1.contains("99 bound is bound to its CPU"), "{left:?}");
    let [note] = &preparation.notes[..] else { panic!("{:?}", preparation.notes) };
    assert!(note.text.contains("43 pair is new"), "{note:?}");
}

/// A captured host is restarted: its values are reset, and an interrupt and a thread have other numbers.
#[test]
fn a_whole_plan_is_applied_again_after_a_restart() {
    const BOOT: &str = "/proc/sys/kernel/random/boot_id";
    let Some(host) = Host::captured("epyc-7f32-stock") else { return };
    let Some(fresh) = Host::captured("epyc-7f32-stock") else { return };
    for host in [&host, &fresh] {
        host.put(BOOT, "first|");
    }
    let plan = HostWithRole::of(host.snapshot(), Profile::Trading).plan();
    let apply = |host: &Host, id: &str, part: Part| {
        let mut log = host.log();
        let preparation = prepare(&plan, &host.snapshot(), &log, part).unwrap();
        let steps: Vec<UndoStep> = preparation.steps.into_iter().map(|prepared| prepared.step).collect();
        log.apply(id, &steps, OnFailure::SkipRefused).unwrap().done.len()
    };
    assert!(apply(&host, "p/run", Part::RunTime) > 40);
    assert!(apply(&host, "p/files", Part::Files) > 0);
    // The restart resets everything below /proc and /sys, and numbers have moved.
    for dir in ["proc", "sys", ".lowlat"] {
        std::fs::remove_dir_all(host.path(dir)).unwrap();
        copy(&fresh.path(dir), &host.path(dir));
    }
    host.put(BOOT, "second|");
    renumber(&host);
    let second = host.tree();
    let done = apply(&host, "p/boot-2", Part::RunTime);
    assert!(done > 40, "{done}");
    let kept = host.snapshot();
    let named = |name: &str| kept.interrupts.irqs.iter().find(|irq| irq.actions == [name]).unwrap();
    assert_eq!((named("ens2").number, named("ens2").affinity.to_string()), (745, "8".to_owned()));
    // The rollback restores this boot's values and the files. The records of the first boot are not touched.
    let mut log = host.log();
    let report = log.rollback_where(|entry| entry.plan == "p/boot-2");
    assert!(report.is_complete() && report.expired.is_empty(), "{report}");
    assert_eq!(host.tree(), second);
    let report = log.rollback_where(|_| true);
    assert!(report.is_complete() && report.restored.len() < 10, "{report}");
    let files = |host: &Host| {
        host.tree().lines().filter(|l| l.starts_with("etc")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(files(&host), files(&fresh));
}

fn copy(from: &std::path::Path, to: &std::path::Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            copy(&from, &to);
        } else if kind.is_symlink() {
            std::os::unix::fs::symlink(std::fs::read_link(from).unwrap(), to).unwrap();
        } else {
            std::fs::copy(from, to).unwrap();
        }
    }
}

/// Interrupt 45 (ens2) becomes 745, thread 130 (kswapd1) becomes 930.
fn renumber(host: &Host) {
    std::fs::rename(host.path("/proc/irq/45"), host.path("/proc/irq/745")).unwrap();
    let table = host.text("/proc/interrupts").replace(" 45:", "745:");
    host.put("/proc/interrupts", &table);
    std::fs::rename(host.path("/proc/130"), host.path("/proc/930")).unwrap();
    let stat = host.text("/proc/930/stat").replacen("130 (", "930 (", 1);
    host.put("/proc/930/stat", &stat);
}
