//! debugfs: values, and why they cannot be read.

use crate::{CATALOGUE, testing::Bench, testing::junk};
use lowlat_host::{Profile, Reading};
use lowlat_settings::{Verdict, change::servers};

const SLICE: &str = "/sys/kernel/debug/sched/base_slice_ns";

fn guide() -> Bench {
    Bench::of(Profile::Guide57037).kernel(6, 12)
}

#[test]
fn moved_sysctls_are_judged_at_their_new_location() {
    let id = "debugfs.sched.base_slice_ns";
    guide().knob(SLICE, "100000000").says(id, Verdict::Good, &[]);
    guide().knob(SLICE, "3000000").says(id, Verdict::Wrong, &["3000000"]);
    guide().reading(SLICE, Reading::Absent).says(id, Verdict::Unknown, &["not mounted"]);
    guide().reading(SLICE, junk(SLICE)).says(id, Verdict::Unknown, &["junk"]);
    let denied = || guide().reading(SLICE, Reading::Denied);
    denied().says(id, Verdict::Unknown, &["root"]);
    let locked = denied().with(|bench| bench.host.kernel.lockdown = Reading::Known("integrity".into()));
    locked.says(id, Verdict::Unknown, &["lockdown (integrity)"]);
    guide().kernel(6, 5).says(id, Verdict::NotApplicable, &["older than 6.6"]);
}

#[test]
fn each_kernel_has_one_location_of_the_granularity() {
    let ids = [
        "sysctl.kernel.sched_min_granularity_ns",
        "debugfs.sched.min_granularity_ns",
        "debugfs.sched.base_slice_ns",
    ];
    for (kernel, home) in [((4, 18), 0), ((5, 12), 0), ((5, 13), 1), ((6, 5), 1), ((6, 6), 2), ((7, 0), 2)] {
        let files = [
            "/proc/sys/kernel/sched_min_granularity_ns",
            "/sys/kernel/debug/sched/min_granularity_ns",
            SLICE,
        ];
        let bench = guide().kernel(kernel.0, kernel.1).knob(files[home], "100000000");
        for (index, id) in ids.iter().enumerate() {
            let wanted = if index == home { Verdict::Good } else { Verdict::NotApplicable };
            assert_eq!(bench.verdict(id), wanted, "{id} on {kernel:?}");
        }
    }
}

/// The changes that a row proposes: target and value.
fn proposed(bench: &Bench, id: &str) -> Vec<(String, String)> {
    let proposal = CATALOGUE.find(id).unwrap().proposal(&bench.context());
    proposal.steps.iter().map(|step| (step.target.kind().facts().name, step.after.clone())).collect()
}

#[test]
fn the_limit_is_lifted_before_a_server_is_switched_off() {
    let limit = "kernel.sched_rt_runtime_us";
    let server = servers::runtime_path("fair_server", 3);
    let bench = |us: &str| Bench::trading().knob(&server, "50000000").sysctl(limit, us);
    let off = (server.clone(), "0".to_owned());
    let lifted = (limit.to_owned(), "-1".to_owned());
    let fair = "debugfs.sched.fair_server";
    assert_eq!(proposed(&bench("950000"), fair), [lifted.clone(), off.clone()]);
    bench("950000").says(fair, Verdict::Wrong, &["refuses", "950000"]);
    for free in ["-1", "1000000"] {
        assert_eq!(proposed(&bench(free), fair), std::slice::from_ref(&off), "{free}");
    }
    // The limit's own row agrees with it, and otherwise writes what it wants.
    let row = "sysctl.kernel.sched_rt_runtime_us";
    assert_eq!(proposed(&bench("500000"), row), [lifted]);
    let without = bench("500000").knob(&server, "0");
    assert_eq!(proposed(&without, row), [(limit.to_owned(), "950000".to_owned())]);
    assert_eq!(proposed(&without, fair), []);
}

#[test]
fn the_fair_server_matters_on_isolated_cpus_only() {
    let id = "debugfs.sched.fair_server";
    let path = |cpu: u32| format!("/sys/kernel/debug/sched/fair_server/cpu{cpu}/runtime");
    let bench = |on: &[u32]| {
        (0..16).fold(Bench::trading(), |bench, cpu| {
            bench.knob(&path(cpu), if on.contains(&cpu) { "50000000" } else { "0" })
        })
    };
    bench(&[]).says(id, Verdict::Good, &["14 isolated CPUs"]);
    bench(&[0, 8]).says(id, Verdict::Good, &[]);
    bench(&[0, 3, 9]).says(id, Verdict::Wrong, &["2 of 14", "50000000 ns"]);
    bench(&[0]).reading(&path(3), junk(&path(3))).says(id, Verdict::Unknown, &["junk"]);
    Bench::trading().kernel(6, 11).says(id, Verdict::NotApplicable, &["6.12"]);
    bench(&[3]).kernel(6, 11).says(id, Verdict::Wrong, &["1 of 14"]);
    Bench::trading().reading(&path(0), Reading::Denied).says(id, Verdict::Unknown, &["root"]);
    Bench::trading().reading(&path(0), Reading::Absent).says(
        id,
        Verdict::Unknown,
        &["debugfs is not mounted"],
    );
    bench(&[]).with(|bench| bench.profile = Profile::Guide57037).says(id, Verdict::NotApplicable, &[]);
}
