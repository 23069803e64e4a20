use super::*;

fn root(interrupts: &str, softirqs: &str) -> Root {
    Root::in_memory(
        "test",
        [
            ("/proc/interrupts".to_owned(), interrupts.as_bytes().to_vec()),
            ("/proc/softirqs".to_owned(), softirqs.as_bytes().to_vec()),
        ],
    )
}

fn stat(lines: &str) -> Idleness {
    Idleness::read(&Root::in_memory("test", [("/proc/stat".to_owned(), lines.as_bytes().to_vec())]))
}

#[test]
fn the_local_timer_of_each_kind_of_processor_is_counted() {
    let cpus = CpuSet::first(2);
    let softirqs = |rcu: u32| format!("  CPU0 CPU1\nTIMER: 1 1\nRCU: 5 {rcu}\n");
    let x86 = |loc: u32| {
        format!("  CPU0 CPU1\n 24: 7 8 PCI-MSI 1-edge timer\nLOC: 100 {loc} Local timer interrupts\n")
    };
    let before = Counts::read(&root(&x86(10), &softirqs(1)), &cpus);
    let after = Counts::read(&root(&x86(13), &softirqs(9)), &cpus);
    assert_eq!(before.source(), "LOC");
    assert_eq!(
        (before.ticks_until(&after, 0), before.ticks_until(&after, 1)),
        (Reading::Known(0), Reading::Known(3))
    );
    assert_eq!(before.rcu_until(&after, 1), Reading::Known(8));
    assert_eq!(before.ticks_until(&after, 2), Reading::Absent, "offline");
    let arm = |ticks: u32| format!("  CPU0 CPU1\n 10: {ticks} 2 GICv3 27 Level arch_timer\n");
    let before = Counts::read(&root(&arm(5), ""), &cpus);
    let after = Counts::read(&root(&arm(9), ""), &cpus);
    assert_eq!((before.source().as_str(), before.ticks_until(&after, 0)), ("arch_timer", Reading::Known(4)));
    assert!(!before.rcu_until(&after, 0).is_known());
}

#[test]
fn a_cpu_without_increasing_idle_time_is_busy() {
    let lines = |idle: [u32; 3]| {
        format!(
            "cpu0 1 1 1 {} 0 1 1 0\ncpu1 1 1 1 {} 0 1 1 0\ncpu2 1 1 1 5 0 0 0 {}\n",
            idle[0], idle[1], idle[2]
        )
    };
    let (before, after) = (stat(&lines([100, 100, 0])), stat(&lines([199, 100, 95])));
    let busy = before.busy_until(&after, Duration::from_secs(1), &CpuSet::first(4));
    assert_eq!(busy.unwrap().to_list(), "1", "steal time is not a task of this host");
    assert!(stat("junk").busy_until(&after, Duration::from_secs(1), &CpuSet::first(4)).is_err());
}

#[test]
fn this_host_is_counted_under_spinners() {
    let allowed = affinity::current().unwrap();
    let (house, isolated) = (allowed.lowest().unwrap(), allowed.highest().unwrap());
    let options = TickOptions {
        isolated: CpuSet::of(isolated),
        housekeeping: CpuSet::of(house),
        window: Duration::from_millis(100),
        spins: true,
        hz: Reading::Absent,
    };
    let before = affinity::current().unwrap();
    let proof = count_ticks(&options).unwrap();
    assert_eq!(affinity::current().unwrap(), before, "the caller's affinity is unchanged");
    let [cpu] = &proof.cpus[..] else { panic!("{proof:?}") };
    assert_eq!(cpu.cpu, isolated);
    assert!(proof.window_ns >= 100_000_000 && cpu.ticks.is_known(), "{proof:?}");
    assert_ne!(cpu.load, TickLoad::Idle, "spun on, or busy already");
    let without = count_ticks(&TickOptions { spins: false, ..options }).unwrap();
    assert_ne!(without.cpus[0].load, TickLoad::Spinner);
}

#[test]
fn cpus_that_the_process_cannot_use_are_reported() {
    let beyond = CpuSet::of(lowlat_host::CPU_ID_MAX - 1);
    let spinners = Spinners::start(&beyond);
    assert!(spinners.cpus.is_empty());
    assert!(spinners.refused[0].contains("cannot run on CPU"), "{:?}", spinners.refused);
}
