use super::*;
use crate::{ProfileFacts, SwapFacts};
use lowlat_catalogue::CATALOGUE;
use lowlat_host::{Profile, Role};
use lowlat_settings::{Context, Verdict, audit::Audit};

fn cpus(list: &str) -> CpuSet {
    CpuSet::parse_list(list).unwrap()
}

/// The guide's host in the state that the guide wants.
fn quiet() -> ReadinessFacts {
    let clock = |cpu| FrequencyFacts {
        cpu,
        governor: Reading::Known(PERFORMANCE.into()),
        khz: [Reading::Known(3_693_100), Reading::Known(3_700_000)],
        limits_khz: [Reading::Known(2_500_000), Reading::Known(3_700_000)],
    };
    ReadinessFacts {
        measured: cpus("1-7,9-15"),
        housekeeping: cpus("0,8"),
        own_cpus: Reading::Known(cpus("0,8")),
        load_average: Reading::Known([0.0, 0.0, 0.0]),
        profile: ProfileFacts { name: "trading".into(), good_count: 12, ..ProfileFacts::default() },
        swap: SwapFacts { in_pages: Reading::Known(0), out_pages: Reading::Known(0) },
        clocks: vec![clock(1), clock(2)],
        busy: Reading::Known(BusyThreads::default()),
        look_ms: 250,
    }
}

fn point(facts: &ReadinessFacts, id: &str) -> ReadinessPoint {
    judge(facts).into_iter().find(|point| point.id == id).unwrap()
}

fn thread(comm: &str, pid: i32, tid: i32, used_ms: u64) -> BusyThread {
    BusyThread { pid, tid, comm: comm.into(), cpu: 3, used_ms, is_kernel: false }
}

#[test]
fn the_guides_host_is_ready() {
    let points = judge(&quiet());
    let ids: Vec<&str> = points.iter().map(|point| point.id.as_str()).collect();
    assert_eq!(ids, ["load", "affinity", "profile", "swap", "governor", "busy_threads"]);
    for point in &points {
        assert_eq!((point.state, point.action.as_str()), (ReadinessState::Ready, ""), "{point:?}");
        assert!(!point.observed.is_empty() && !point.blocks());
    }
    let blocking: Vec<&str> = points.iter().filter(|p| p.is_blocking).map(|p| p.id.as_str()).collect();
    assert_eq!(blocking, ["load", "swap", "busy_threads"]);
    assert_eq!(points[0].observed, "0.00, 0.00 and 0.00 over 1, 5 and 15 minutes");
    assert_eq!(points[4].observed, "performance on all measured CPUs, 3693 to 3700 MHz");
}

/// The guide's example of a host that is not ready.
#[test]
fn the_load_of_the_last_minute_decides() {
    let mut facts = ReadinessFacts { load_average: Reading::Known([7.22, 2.61, 0.93]), ..quiet() };
    let load = point(&facts, "load");
    assert!(load.blocks());
    assert!(load.observed.starts_with("7.22, 2.61 and 0.93 over 1, 5 and 15 minutes"), "{load:?}");
    assert!(load.action.contains("No thread used CPU time just now."), "{load:?}");

    facts.busy = Reading::Known(BusyThreads {
        elsewhere: vec![thread("cc1", 40, 40, 250)],
        elsewhere_count: 1,
        ..BusyThreads::default()
    });
    assert!(point(&facts, "load").action.contains("Busy just now: cc1 (pid 40, CPU 3, 100 %)."));

    facts.load_average = Reading::Known([0.03, 0.61, 1.10]);
    let load = point(&facts, "load");
    assert_eq!(load.state, ReadinessState::Ready);
    assert!(load.observed.contains("lag behind"), "{load:?}");
    facts.load_average = Reading::Known([f64::NAN, 0.0, 0.0]);
    assert_eq!(point(&facts, "load").state, ReadinessState::NotReady, "what is no number is not calm");
}

#[test]
fn own_cpus_must_not_be_measured_ones() {
    let mut facts = ReadinessFacts { own_cpus: Reading::Known(cpus("0-15")), ..quiet() };
    let affinity = point(&facts, "affinity");
    assert_eq!((affinity.state, affinity.is_blocking), (ReadinessState::NotReady, false));
    assert_eq!(affinity.observed, "this process may use CPUs 0-15, and CPUs 1-7,9-15 of them are measured");
    assert!(affinity.action.contains("taskset -c 0,8 lowlat jitter"), "{affinity:?}");
    facts.housekeeping = CpuSet::new();
    assert_eq!(point(&facts, "affinity").action, "Leave a CPU out with --cpus.");
}

#[test]
fn rows_at_fault_and_rows_unknown_are_named() {
    let mut facts = quiet();
    facts.profile.unknown = vec!["service.tuned".into()];
    let profile = point(&facts, "profile");
    assert_eq!(profile.state, ReadinessState::NotKnown);
    assert!(profile.observed.ends_with("12 good, 1 unknown: service.tuned"), "{profile:?}");
    facts.profile.faults = (0..10).map(|n| format!("boot.row{n}")).collect();
    let profile = point(&facts, "profile");
    assert_eq!(profile.state, ReadinessState::NotReady);
    assert!(profile.observed.ends_with("10 with a fault: boot.row0, boot.row1, boot.row2, boot.row3, boot.row4, boot.row5, boot.row6, boot.row7 and 2 more"), "{profile:?}");
    facts.profile = ProfileFacts { name: "trading".into(), ..ProfileFacts::default() };
    let profile = point(&facts, "profile");
    assert_eq!(profile.state, ReadinessState::NotKnown, "no row is no proof");
    assert!(profile.observed.ends_with("0 good, 0 unknown"), "{profile:?}");
}

#[test]
fn the_profile_is_made_of_boot_and_tuned_rows() {
    let host = lowlat_host::HostSnapshot::default();
    let role = Role::default();
    let allocation = lowlat_host::Allocation::default();
    let audit = Audit::of(&Context {
        host: &host,
        role: &role,
        allocation: &allocation,
        profile: Profile::Trading,
        catalogue: CATALOGUE,
    });
    let mut all = audit.clone();
    for finding in &mut all.findings {
        finding.verdict = Verdict::Wrong;
    }
    let facts = ProfileFacts::of(&all);
    assert!(facts.faults.iter().any(|id| id == "boot.isolcpus"));
    assert!(facts.faults.iter().any(|id| id == "service.tuned"));
    assert!(facts.faults.iter().any(|id| id == "service.tuned.rollback"));
    assert!(facts.faults.iter().all(|id| id.starts_with("boot.") || id.contains("tuned")), "{facts:?}");
    assert_eq!((facts.name.as_str(), facts.good_count), ("trading", 0));
}

#[test]
fn swapping_blocks_and_an_unknown_counter_does_not() {
    let mut facts = quiet();
    facts.swap.out_pages = Reading::Known(17);
    let swap = point(&facts, "swap");
    assert!(swap.blocks());
    assert_eq!(swap.observed, "0 pages swapped in and 17 out in 250 ms");
    facts.swap.in_pages = Reading::Absent;
    let swap = point(&facts, "swap");
    assert_eq!((swap.state, swap.blocks()), (ReadinessState::NotKnown, false));
    assert!(swap.observed.ends_with("absent"), "{swap:?}");
    facts.swap = SwapFacts { in_pages: Reading::Known(0), out_pages: Reading::Denied };
    assert_eq!(point(&facts, "swap").action, "Run lowlat as root.");
}

#[test]
fn governors_that_may_change_the_clock_are_named() {
    let mut facts = quiet();
    facts.clocks[1].governor = Reading::Known("schedutil".into());
    let governor = point(&facts, "governor");
    assert_eq!(governor.state, ReadinessState::NotReady);
    assert!(governor.observed.starts_with("schedutil on CPU 2, 3693 to"), "{governor:?}");

    facts.clocks[1].limits_khz = [Reading::Known(3_700_000), Reading::Known(3_700_000)];
    assert_eq!(point(&facts, "governor").state, ReadinessState::Ready, "it has no choice");

    facts.clocks[1] = FrequencyFacts { cpu: 2, governor: Reading::Denied, ..FrequencyFacts::default() };
    assert_eq!(point(&facts, "governor").state, ReadinessState::NotKnown);

    facts.clocks = vec![FrequencyFacts { cpu: 2, ..FrequencyFacts::default() }];
    let governor = point(&facts, "governor");
    assert_eq!(governor.state, ReadinessState::Ready);
    assert!(governor.observed.contains("no cpufreq"));
}

#[test]
fn busy_threads_are_named_with_cpu_and_share() {
    let mut facts = quiet();
    let kernel = BusyThread { is_kernel: true, ..thread("ksoftirqd/3", 30, 30, 10) };
    facts.busy = Reading::Known(BusyThreads {
        measured: vec![thread("md", 12, 14, 260), kernel],
        measured_count: 5,
        ..BusyThreads::default()
    });
    let busy = point(&facts, "busy_threads");
    assert!(busy.blocks());
    assert_eq!(
        busy.observed,
        "in 250 ms on measured CPUs: md (pid 12, thread 14, CPU 3, 100 %), kernel thread ksoftirqd/3 (pid 30, CPU 3, \
         4 %) and 3 more"
    );
    assert!(busy.action.contains("taskset -pc 0,8 PID") && busy.action.contains("kthread"), "{busy:?}");
    facts.housekeeping = CpuSet::new();
    assert!(!point(&facts, "busy_threads").action.contains("taskset"));
}

#[test]
fn threads_that_were_not_seen_are_not_proof_of_quiet() {
    let mut facts = quiet();
    let unseen = "processes of other users are hidden".to_owned();
    facts.busy = Reading::Known(BusyThreads { unseen, ..BusyThreads::default() });
    let busy = point(&facts, "busy_threads");
    assert_eq!((busy.state, busy.blocks()), (ReadinessState::NotKnown, false));
    assert!(busy.observed.ends_with("but processes of other users are hidden"), "{busy:?}");
    facts.busy = Reading::Denied;
    assert_eq!(point(&facts, "busy_threads").state, ReadinessState::NotKnown);
    facts.look_ms = 0;
    facts.busy = Reading::Known(BusyThreads {
        measured: vec![thread("x", 1, 1, 10)],
        measured_count: 1,
        ..BusyThreads::default()
    });
    assert!(point(&facts, "busy_threads").blocks(), "a look of no length divides nothing by zero");
}
