//! Interrupts, kernel threads, workqueues, governors and readiness.

use crate::{testing::Bench, testing::GUIDE_LINE, testing::list};
use lowlat_host::{
    CpuSet, Profile, Reading,
    snapshot::{Disk, Nic, ProcessCpus, SchedPolicy},
};
use lowlat_settings::Verdict;

const OTHER: (SchedPolicy, u32) = (SchedPolicy::Other, 0);

#[test]
fn interrupts_on_isolated_cpus_are_named() {
    let id = "irq.affinity";
    let (yes, no) = (Reading::Known(true), Reading::Known(false));
    let base = || Bench::trading().line("quiet").irq(24, "eth0-rx-0", "0", no.clone());
    base().says(id, Verdict::Good, &["1 interrupts"]);
    base().irq(47, "nvme0q3", "5", no.clone()).says(id, Verdict::Wrong, &["47 nvme0q3 on CPU 5", "1 of 2"]);
    base().irq(47, "nvme0q3", "5", yes.clone()).says(
        id,
        Verdict::Wrong,
        &["managed", "isolcpus=managed_irq"],
    );
    base().irq(47, "nvme0q3", "5", yes.clone()).line("isolcpus=managed_irq,domain,1-7,9-15").says(
        id,
        Verdict::Good,
        &[],
    );
    // Without debugfs a disk's queue counts as managed, as in plan and verification.
    let untold = || base().irq(47, "nvme0q3", "5", Reading::Absent).unit("irqbalance.service", "active");
    untold().says(id, Verdict::Wrong, &["isolcpus=managed_irq"]);
    assert!(!untold().judge(id).because.contains("irqbalance"));
    untold().line("isolcpus=managed_irq,domain,1-7,9-15").says(id, Verdict::Good, &[]);
    base().irq(9, "acpi", "0-15", no.clone()).unit("irqbalance.service", "active").says(
        id,
        Verdict::Wrong,
        &["irqbalance"],
    );
    let guide = Bench::guide().irq(47, "nvme0q3", "5", yes);
    guide.says(id, Verdict::Ineffective, &["cannot be moved"]);
    Bench::trading().says(id, Verdict::Unknown, &["no interrupt"]);
    let denied = base().with(|bench| {
        for irq in &mut bench.host.interrupts.irqs {
            irq.affinity = Reading::Denied;
            irq.effective_affinity = Reading::Denied;
        }
    });
    denied.says(id, Verdict::Unknown, &["root"]);
    let placed = base().irq(30, "eth1-rx-1", "3", no.clone()).with(|bench| {
        bench.role.nics = vec!["eth1".into()];
        bench.host.nics.push(Nic { name: "eth1".into(), irqs: vec![30], ..Nic::default() });
    });
    placed.says(id, Verdict::Good, &[]);
    let alone = base().with(|bench| bench.allocation.isolated = CpuSet::new());
    alone.says(id, Verdict::NotApplicable, &[]);
}

#[test]
fn movable_kernel_threads_avoid_isolated_cpus() {
    let rcu = "kthread.rcu";
    let thread = |comm: &str, cpus: &str, is_bound| Bench::trading().thread(comm, cpus, OTHER, is_bound);
    thread("rcu_preempt", "0,8", false).says(rcu, Verdict::Good, &[]);
    thread("rcu_preempt", "0-15", false).says(rcu, Verdict::Wrong, &["rcu_preempt (1-7,9-15)"]);
    thread("rcuc/3", "3", true).thread("rcuog/0", "0", OTHER, false).says(
        rcu,
        Verdict::Good,
        &["1 RCU threads"],
    );
    thread("ircud", "3", false).says(rcu, Verdict::Unknown, &["no RCU threads"]);
    Bench::trading().says(rcu, Verdict::Unknown, &[]);
    let denied = thread("rcu_preempt", "0", false)
        .with(|bench| bench.host.tasks.kernel_threads[0].cpus_allowed = Reading::Denied);
    denied.says(rcu, Verdict::Unknown, &["root"]);

    let kswapd = "kthread.kswapd";
    thread("kswapd0", "0", false).says(kswapd, Verdict::Good, &[]);
    thread("kswapd1", "8-15", false).says(kswapd, Verdict::Wrong, &["kswapd1 (9-15)"]);
    thread("kswapd_helper", "3", false).says(kswapd, Verdict::Unknown, &[]);
}

#[test]
fn real_time_kernel_threads_have_the_guides_priority() {
    let fifo = |priority| (SchedPolicy::Fifo, priority);
    let guide = || Bench::of(Profile::Guide57037);
    let id = "kthread.ksoftirqd";
    guide().thread("ksoftirqd/0", "0", fifo(2), true).says(id, Verdict::Good, &["1 of 1"]);
    let mixed = guide().thread("ksoftirqd/0", "0", fifo(2), true).thread("ksoftirqd/1", "1", OTHER, true);
    mixed.says(id, Verdict::Wrong, &["1 of 2"]);
    guide().thread("ksoftirqd/0", "0", fifo(3), true).says(id, Verdict::Wrong, &["0 of 1"]);
    guide().says(id, Verdict::Unknown, &[]);
    guide().thread("kworker/0:0", "0", OTHER, true).says("kthread.rcub", Verdict::NotApplicable, &["rcub/N"]);
    guide().thread("rcub/0", "0", fifo(4), true).says("kthread.rcub", Verdict::Good, &[]);
    Bench::trading().thread("ksoftirqd/0", "0", OTHER, true).says(id, Verdict::NotApplicable, &[]);
}

#[test]
fn workqueues_avoid_isolated_cpus() {
    let global = |reading| Bench::trading().with(|bench| bench.host.tasks.workqueue_cpus = reading);
    let id = "kthread.workqueue.global";
    global(Reading::Known(list("0,8"))).says(id, Verdict::Good, &[]);
    global(Reading::Known(list("0-15"))).says(id, Verdict::Wrong, &["1-7,9-15"]);
    global(Reading::Denied).says(id, Verdict::Unknown, &["root"]);
    global(Reading::Absent).says(id, Verdict::Unknown, &["does not exist"]);
    global(Reading::unparsable("/x", "zz", "a mask")).says(id, Verdict::Unknown, &["zz"]);
    let id = "kthread.workqueue.writeback";
    Bench::trading().workqueue("writeback", Reading::Known(list("0"))).says(id, Verdict::Good, &[]);
    Bench::trading().workqueue("writeback", Reading::Known(list("0-3"))).says(id, Verdict::Wrong, &["1-3"]);
    Bench::trading().workqueue("nvme", Reading::Known(list("0-3"))).says(id, Verdict::Unknown, &[]);
    let id = "kthread.workqueue.writeback_numa";
    let numa = |value: &str| Bench::guide().knob("/sys/bus/workqueue/devices/writeback/numa", value);
    numa("0").says(id, Verdict::Good, &[]);
    numa("1").says(id, Verdict::Wrong, &["1"]);
    numa("1").kernel(6, 6).says(id, Verdict::Wrong, &["1"]);
    Bench::guide().kernel(6, 6).says(id, Verdict::NotApplicable, &["affinity_scope"]);
    Bench::guide().says(id, Verdict::NotApplicable, &["does not exist"]);
}

#[test]
fn governors_disk_schedulers_and_the_offline_cycle() {
    let id = "sysfs.cpufreq.governor";
    let known = |word: &str| Reading::Known(word.to_owned());
    let policy = |governor| Bench::trading().policy("0-7", "acpi-cpufreq", governor);
    policy(known("performance")).says(id, Verdict::Good, &[]);
    policy(known("performance")).policy("8-15", "acpi-cpufreq", known("ondemand")).says(
        id,
        Verdict::Wrong,
        &["ondemand on CPUs 8-15"],
    );
    policy(Reading::Denied).says(id, Verdict::Unknown, &["root"]);
    policy(Reading::unparsable("/g", "?", "a governor")).says(id, Verdict::Unknown, &["\"?\""]);
    Bench::trading().says(id, Verdict::NotApplicable, &["no frequency driver"]);

    let id = "sysfs.block.scheduler";
    let disk_of = |word: Reading<String>, is_rotational| {
        Bench::trading().with(|bench| {
            bench.host.disks.push(Disk {
                name: "sda".into(),
                scheduler: word,
                is_rotational,
                ..Disk::default()
            });
        })
    };
    let disk = |word, turns| disk_of(word, Reading::Known(turns));
    disk(known("none"), false).says(id, Verdict::Good, &[]);
    for word in ["none", "mq-deadline"] {
        disk_of(known(word), Reading::Denied).says(id, Verdict::Unknown, &["rotational"]);
    }
    disk_of(Reading::Absent, Reading::Denied).says(id, Verdict::NotApplicable, &[]);
    disk(known("mq-deadline"), false).says(id, Verdict::Wrong, &["sda: mq-deadline"]);
    disk(known("mq-deadline"), true).says(id, Verdict::NotApplicable, &[]);
    disk(known("mq-deadline"), true).with(|bench| bench.profile = Profile::Guide57037).says(
        id,
        Verdict::Wrong,
        &["mq-deadline"],
    );
    disk(Reading::Denied, false).says(id, Verdict::Unknown, &[]);
    Bench::guide().says("sysfs.cpu.online_cycle", Verdict::Unknown, &["no trace"]);
    Bench::trading().says("sysfs.cpu.online_cycle", Verdict::NotApplicable, &[]);
}

#[test]
fn readiness_checks_load_affinity_and_command_line() {
    let load = |loads| Bench::trading().with(|bench| bench.host.kernel.load_average = Reading::Known(loads));
    let id = "readiness.load_average";
    load([0.0, 0.0, 0.01]).says(id, Verdict::Good, &["0.00, 0.00, 0.01"]);
    load([7.22, 2.61, 0.93]).says(id, Verdict::Wrong, &["7.22"]);
    load([f64::NAN, 0.0, 0.0]).says(id, Verdict::Wrong, &[]);
    load([-1.0, 0.0, 0.0]).says(id, Verdict::Wrong, &[]);
    Bench::trading().says(id, Verdict::Unknown, &[]);

    let id = "readiness.affinity";
    let allowed = |reading| Bench::trading().with(|bench| bench.host.tasks.allowed_cpus = reading);
    allowed(Reading::Known(list("0,8"))).says(id, Verdict::Good, &[]);
    allowed(Reading::Known(list("0-15"))).says(id, Verdict::Wrong, &["1-7,9-15"]);
    allowed(Reading::Denied).says(id, Verdict::Unknown, &["root"]);

    // CPUs that systemd gives to processes, by its command line, its configuration, and slices.
    let given = |line: &str, found: &[(&str, &str, &str)]| {
        let found = found.iter().map(|(unit, key, cpus)| ProcessCpus {
            unit: (*unit).to_owned(),
            key: (*key).to_owned(),
            cpus: Reading::Known(list(cpus)),
            path: "/etc/systemd/x".to_owned(),
            line: 3,
        });
        let found = found.collect();
        allowed(Reading::Known(list("0,8"))).line(line).with(|bench| bench.host.services.process_cpus = found)
    };
    let parameter = "systemd.cpu_affinity=5,6";
    given(parameter, &[]).says(id, Verdict::Wrong, &[parameter, "isolated CPUs 5-6"]);
    given("systemd.cpu_affinity=5-6 systemd.cpu_affinity=0,8", &[]).says(id, Verdict::Good, &[]);
    given("systemd.cpu_affinity=all", &[]).says(id, Verdict::Good, &[]);
    given("ro", &[("", "CPUAffinity", "0-3")]).says(id, Verdict::Wrong, &["/etc/systemd/x:3", "CPUs 1-3"]);
    given("ro", &[("", "CPUAffinity", "0,8")]).says(id, Verdict::Good, &[]);
    given("ro", &[("user.slice", "AllowedCPUs", "8-9")]).says(id, Verdict::Wrong, &["user.slice", "CPU 9"]);
    // A dedicated unit may have isolated CPUs, because they are meant for it.
    given("ro", &[("desk.service", "CPUAffinity", "3"), ("desk.slice", "AllowedCPUs", "3")]).says(
        id,
        Verdict::Good,
        &[],
    );

    let id = "readiness.cmdline";
    let line = format!("{GUIDE_LINE} ").replace("processor.max_cstate=0 ", "");
    Bench::guide().says(id, Verdict::Wrong, &["boot.processor.max_cstate"]);
    Bench::guide().line(&line).says(id, Verdict::Wrong, &["1 boot setting is wrong"]);
    Bench::trading().says(id, Verdict::Unknown, &["/proc/cmdline"]);
}
