//! Sysctls, idle states, pages and masks, each alone.

use super::{
    super::*,
    host::{Host, plan_of},
};
use lowlat_host::CpuSet;
use lowlat_settings::change::{nic, servers};
use lowlat_undo::{Comparison, OnFailure, State};

fn run_time(host: &Host, plan: &Plan) -> Preparation {
    prepare(plan, &host.snapshot(), &host.log(), Part::RunTime).unwrap()
}

/// Path and new value of each step.
fn shown(preparation: &Preparation) -> Vec<(String, String)> {
    let show = |prepared: &Prepared| match &prepared.step.new {
        State::Value(text) => (prepared.step.target.name.clone(), text.clone()),
        other => panic!("{other}"),
    };
    preparation.steps.iter().map(show).collect()
}

fn sysctl(key: &str) -> Target {
    Target::Sysctl { key: key.to_owned() }
}

fn file(path: &str) -> Target {
    Target::File { path: path.to_owned() }
}

#[test]
fn the_limit_of_deadline_servers_is_lifted_before_they_are_changed() {
    let server = |cpu: u32| servers::runtime_path("fair_server", cpu);
    let limit = "/proc/sys/kernel/sched_rt_runtime_us";
    let host = Host::of(&[(&server(1), "50000000|"), (&server(2), "50000000|"), (limit, "950000|")]);
    // The order in a plan that was merged with an earlier one.
    let plan = plan_of(vec![
        (file(&server(1)), "0"),
        (file(&server(2)), "0"),
        (sysctl("kernel.sched_rt_runtime_us"), "-1"),
    ]);
    let preparation = run_time(&host, &plan);
    let places: Vec<_> = shown(&preparation).into_iter().map(|(path, _)| path).collect();
    assert_eq!(places, [limit.to_owned(), server(1), server(2)]);
    assert_eq!(preparation.steps.iter().map(|step| step.change).collect::<Vec<_>>(), [2, 0, 1]);
    apply_and_roll_back(host, &plan);
}

const IDLE: &str = "/sys/devices/system/cpu/cpu";

#[test]
fn an_idle_state_is_found_by_name_on_each_cpu() {
    let mut host = Host::of(&[]);
    // On CPU 1 the state has another number; CPU 2 is offline; CPU 3 has another driver.
    for (cpu, states) in [(0, ["POLL", "C1", "C6"]), (1, ["POLL", "C6", "C10"]), (3, ["POLL", "C1", "C1E"])] {
        for (number, name) in states.iter().enumerate() {
            let folder = format!("{IDLE}{cpu}/cpuidle/state{number}");
            host.put(&format!("{folder}/name"), &format!("{name}|"));
            host.put(&format!("{folder}/disable"), "0|");
        }
    }
    let cpus = CpuSet::parse_list("0-3").unwrap();
    let plan = plan_of(vec![(Target::IdleState { name: "C6".to_owned(), cpus }, "disabled")]);
    let preparation = run_time(&host, &plan);
    let disable = |cpu, state| (format!("{IDLE}{cpu}/cpuidle/state{state}/disable"), "1".to_owned());
    assert_eq!(shown(&preparation), [disable(0, 2), disable(1, 1)]);
    let [left] = &preparation.left[..] else { panic!("{:?}", preparation.left) };
    assert_eq!((left.change, left.reason.starts_with("CPUs 2-3 have no idle state C6")), (0, true));
    host = apply_and_roll_back(host, &plan);
    let enabled = plan_of(vec![(Target::IdleState { name: "C6".to_owned(), cpus: CpuSet::of(0) }, "asleep")]);
    assert!(run_time(&host, &enabled).left[0].reason.contains("expected \"enabled\" or \"disabled\""));
}

fn apply_and_roll_back(host: Host, plan: &Plan) -> Host {
    let start = host.tree();
    let mut log = host.log();
    let preparation = prepare(plan, &host.snapshot(), &log, Part::RunTime).unwrap();
    let steps: Vec<UndoStep> = preparation.steps.into_iter().map(|prepared| prepared.step).collect();
    assert_eq!(log.apply("p", &steps, OnFailure::SkipRefused).unwrap().done.len(), steps.len());
    assert!(log.rollback_where(|_| true).is_complete());
    assert_eq!(host.tree(), start);
    drop(log);
    host
}

#[test]
fn pages_go_to_their_node_s_pool() {
    let node = "/sys/devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages";
    let all = "/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages";
    let host = Host::of(&[(node, "0|"), (all, "2|")]);
    let pages = |node, size_bytes| Target::HugePages { node, size_bytes };
    let plan = plan_of(vec![
        (pages(Some(1), 2 << 20), "3000"),
        (pages(None, 1 << 30), "4"),
        (pages(Some(0), 2 << 20), "3000"),
        (pages(None, 1 << 30), "many"),
    ]);
    let preparation = run_time(&host, &plan);
    assert_eq!(shown(&preparation), [(node.into(), "3000".into()), (all.into(), "4".into())]);
    assert!(preparation.steps.iter().all(|p| p.step.target.comparison == Comparison::Number));
    assert!(preparation.left[0].reason.contains("/node0/hugepages/"), "{:?}", preparation.left);
    assert!(preparation.left[1].reason.contains("a number is \"many\", expected digits"));
    apply_and_roll_back(host, &plan);
}

/// A host with 128 CPUs, of 160 possible ones, for which shell arithmetic fails.
#[test]
fn masks_of_more_than_64_cpus_have_the_kernel_s_words() {
    let (default, queues) = ("/proc/irq/default_smp_affinity", "/sys/devices/virtual/workqueue");
    let (rps, xps) = ("/sys/class/net/e0/queues/rx-0/rps_cpus", "/sys/class/net/e0/queues/tx-0/xps_cpus");
    let host = Host::of(&[
        (default, "ffffffff,ffffffff,ffffffff,ffffffff,ffffffff|"),
        (&format!("{queues}/cpumask"), "ffffffff,ffffffff,ffffffff,ffffffff|"),
        (&format!("{queues}/writeback/cpumask"), "ff,ffffffff,ffffffff|"),
        (rps, "00000000,00000000,ffffffff,00000000|"),
        (xps, "0|"),
    ]);
    let (nic, queue) = ("e0".to_owned(), |name: &str| name.to_owned());
    let plan = plan_of(vec![
        (Target::DefaultIrqAffinity, "0,64,127"),
        (Target::WorkqueueCpus { name: None }, "0,64"),
        (Target::WorkqueueCpus { name: Some("writeback".to_owned()) }, "64,71"),
        (nic::RPS.of(nic.clone(), queue("rx-0")), ""),
        (nic::XPS.of(nic, queue("tx-0")), "64"),
    ]);
    let preparation = run_time(&host, &plan);
    let values: Vec<String> = shown(&preparation).into_iter().map(|(_, value)| value).collect();
    assert_eq!(
        values,
        [
            "00000000,80000000,00000001,00000000,00000001",
            "00000000,00000001,00000000,00000001",
            "81,00000000,00000000",
            "00000000,00000000,00000000,00000000",
        ]
    );
    let [left] = &preparation.left[..] else { panic!("{:?}", preparation.left) };
    assert_eq!(left.reason, format!("{xps} has 4 bits, and none for CPU 64"));
    apply_and_roll_back(host, &plan);
}

#[test]
fn what_cannot_be_read_is_left_with_path_and_text() {
    let debugfs = "/sys/kernel/debug/sched/latency_ns";
    let mask = "/proc/irq/default_smp_affinity";
    let host = Host::of(&[(mask, "no mask|"), ("/proc/sys/vm/swappiness/below", "")]);
    let plan = plan_of(vec![
        (sysctl("vm.gone"), "1"),
        (file(debugfs), "1"),
        (Target::DefaultIrqAffinity, "0"),
        (sysctl("vm.swappiness"), "10"),
        (file("/sys/../etc/shadow"), "1"),
        (nic::RPS.of("../..", "rx-0"), "0"),
        (nic::RPS.of("e9", "rx-0"), "0"),
        (Target::WorkqueueCpus { name: None }, "1-"),
        (nic::COALESCING.of("e9", "rx-usecs"), "0"),
    ]);
    let preparation = run_time(&host, &plan);
    assert_eq!(preparation.steps, []);
    let left: Vec<&str> = preparation.left.iter().map(|left| left.reason.as_str()).collect();
    let wanted = [
        "/proc/sys/vm/gone is missing",
        "or debugfs is not mounted or locked down",
        "found \"no mask\", expected a CPU mask",
        "/proc/sys/vm/swappiness is a directory, expected",
        "a path is \"/sys/../etc/shadow\"",
        "the name of a network interface is \"../..\"",
        "interface e9 no longer exists",
        "a CPU list is \"1-\", expected a list such as 0-3,8",
        "interface e9 no longer exists",
    ];
    assert_eq!(left.len(), wanted.len(), "{left:#?}");
    for (left, wanted) in left.iter().zip(wanted) {
        assert!(left.contains(wanted), "{left}, expected {wanted}");
    }
}

#[test]
fn two_changes_of_one_place_are_merged_or_refused() {
    let host = Host::of(&[("/proc/sys/vm/swappiness", "60|")]);
    std::os::unix::fs::symlink("swappiness", host.path("/proc/sys/vm/other")).unwrap();
    let same = plan_of(vec![(sysctl("vm.swappiness"), "10"), (file("/proc/sys/vm/other"), "10")]);
    let preparation = run_time(&host, &same);
    let [prepared] = &preparation.steps[..] else { panic!("{preparation:?}") };
    assert_eq!((prepared.change, &prepared.also[..]), (0, &[1][..]));
    let differing = plan_of(vec![(sysctl("vm.swappiness"), "10"), (file("/proc/sys/vm/other"), "1")]);
    let error = prepare(&differing, &host.snapshot(), &host.log(), Part::RunTime).unwrap_err().to_string();
    assert!(error.contains("/proc/sys/vm/swappiness") && error.contains("different values"), "{error}");
}

#[test]
fn values_for_the_next_boot_only_are_not_set_now() {
    let host = Host::of(&[("/proc/sys/vm/swappiness", "60|")]);
    let mut plan = plan_of(vec![(sysctl("vm.swappiness"), "10")]);
    plan.changes[0].moment = Moment::AtBoot;
    assert_eq!(run_time(&host, &plan), Preparation::default());
}
