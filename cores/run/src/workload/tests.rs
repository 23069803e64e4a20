use super::*;
use lowlat_host::CpuSet;
use lowlat_host_run::Root;
use lowlat_host_run::affinity;
use lowlat_workload::{CellRun, Idle, Missing, Place, Policy, Purpose, Setting, WorkloadRecord};
use std::{
    sync::atomic::{AtomicBool, AtomicU32, Ordering},
    time::Duration,
};

fn quiet() -> Root {
    Root::in_memory("quiet", [("/proc/loadavg".to_owned(), b"0.00 0.1 0.2 1/99 4711\n".to_vec())])
}

const TIME: Duration = Duration::from_millis(30);

fn measured(names: &[&str], copies: u32, settings: &[Setting], purpose: Purpose) -> WorkloadRecord {
    let usable = affinity::current().unwrap();
    let topology = Topology { online: usable.clone(), ..Topology::default() };
    let cells = names.iter().flat_map(|name| settings.iter().map(|of| (find(name).unwrap(), copies, *of)));
    let order = Order { purpose, cells: cells.collect(), rounds: 3, time: TIME };
    run(
        WorkloadSite { root: &quiet(), topology: &topology, usable: &usable },
        &order,
        &AtomicBool::new(false),
        &|_, _| {},
    )
}

fn own() -> Vec<&'static str> {
    WORKLOADS.iter().filter(|workload| !workload.is_program()).map(|workload| workload.name).collect()
}

#[test]
fn every_workload_counts_on_one_cpu_and_where_the_kernel_likes() {
    let settings = [Place::Kernel, Place::One].map(|place| Setting { place, ..Setting::default() });
    for copies in [1, 3] {
        let mut names = own();
        // A busy host may leave no CPU for a whole run: then again.
        for _ in 0..10 {
            let record = measured(&names, copies, &settings, Purpose::Run);
            assert_eq!((record.missing.len(), record.warnings.len()), (0, 0), "{record:?}");
            assert_eq!(record.runs.len(), 3 * 2 * names.len());
            let has_counted = |place: usize| {
                let is_it = |run: &&CellRun| usize::try_from(run.cell) == Ok(place);
                record.runs.iter().filter(is_it).any(|run| run.operations > 0)
            };
            let idle: Vec<&str> = (0..record.cells.len())
                .filter(|place| !has_counted(*place))
                .map(|place| record.cells[place].workload.as_str())
                .collect();
            names.retain(|name| idle.contains(name));
            if names.is_empty() {
                break;
            }
        }
        assert_eq!(names, Vec::<&str>::new());
    }
}

#[test]
fn what_is_named_twice_is_measured_once() {
    let settings =
        [Place::One, Place::Kernel, Place::One].map(|place| Setting { place, ..Setting::default() });
    let record = measured(&["pipe", "eventfd", "pipe"], 1, &settings, Purpose::Compare);
    assert_eq!((record.cells.len(), record.runs.len(), record.pairs().len()), (4, 12, 2), "{record:?}");
}

#[test]
fn a_missing_cpu_is_one_line_and_the_rest_goes_on() {
    let usable = affinity::current().unwrap();
    let busy = Root::in_memory("busy", [("/proc/loadavg".to_owned(), b"6.90 0.1 0.2 1/99 4711\n".to_vec())]);
    let far: CpuSet = [usable.lowest().unwrap(), 4_000].into_iter().collect();
    let topology = Topology { online: far.clone(), ..Topology::default() };
    let cell = |place| (find("pipe").unwrap(), 1, Setting { place, ..Setting::default() });
    let cells = vec![cell(Place::Spread), cell(Place::One)];
    let order = Order { cells, rounds: 2, time: TIME, ..Order::default() };
    let record = run(
        WorkloadSite { root: &busy, topology: &topology, usable: &far },
        &order,
        &AtomicBool::new(false),
        &|_, _| {},
    );
    assert_eq!(record.missing.len(), 1, "{record:?}");
    assert!(record.missing[0].why.contains("cannot run on CPU 4000"), "{record:?}");
    assert_eq!(record.runs.len(), 2);
    assert!(record.warnings[0].contains("load average was 6.9"), "{record:?}");
}

#[test]
fn policies_and_idle_states_are_set_or_the_reason_is_given() {
    let settings = [
        Setting { policy: Policy::Batch, ..Setting::default() },
        Setting { policy: Policy::Fifo, ..Setting::default() },
        Setting { idle: Idle::None, ..Setting::default() },
    ];
    let record = measured(&["eventfd"], 1, &settings, Purpose::Run);
    assert_eq!(record.runs.len() / 3 + record.missing.len(), 3);
    for missing in &record.missing {
        assert!(missing.why.starts_with("cannot "), "{missing:?}");
    }
    assert!(record.runs.iter().any(|run| run.cell == 0), "SCHED_BATCH takes no privilege: {record:?}");
}

#[test]
fn a_stopped_measurement_ends_with_what_it_has() {
    let usable = affinity::current().unwrap();
    let topology = Topology::default();
    let order = Order {
        cells: vec![(find("futex").unwrap(), 1, Setting::default())],
        rounds: 1_000,
        time: TIME,
        ..Order::default()
    };
    let (stop, runs) = (AtomicBool::new(false), AtomicU32::new(0));
    let record =
        run(WorkloadSite { root: &quiet(), topology: &topology, usable: &usable }, &order, &stop, &|_, _| {
            if runs.fetch_add(1, Ordering::Relaxed) == 2 {
                stop.store(true, Ordering::Relaxed);
            }
        });
    assert_eq!(record.runs.len(), 2);
}

#[test]
fn programs_run_or_say_why_not() {
    let programs: Vec<&str> =
        WORKLOADS.iter().filter(|workload| workload.is_program()).map(|workload| workload.name).collect();
    let record = measured(&programs, 2, &[Setting::default()], Purpose::Run);
    for name in &programs {
        let cell = record.cells.iter().position(|cell| cell.workload == *name);
        let rate = cell.and_then(|cell| record.rate(cell));
        match why_missing(&record, name, 2, Setting::default()) {
            Some(why) => eprintln!("skipped: programs_run_or_say_why_not: {name}: {why}"),
            None => assert!(rate.is_some_and(|rate| rate.median > 0.0), "{name}: {record:?}"),
        }
        if *name == "nginx"
            && let Some(cell) = cell
        {
            assert!(record.bytes(cell).is_some_and(|bytes| bytes.median > 0.0));
        }
    }
}

#[test]
fn the_article_leaves_out_what_cannot_differ() {
    let settings: Vec<Setting> = Place::ALL.map(|place| Setting { place, ..Setting::default() }).to_vec();
    let record = measured(&["pipe"], 1, &settings, Purpose::Article);
    let pack = Setting { place: Place::Pack, ..Setting::default() };
    assert!(why_missing(&record, "pipe", 1, pack).is_some(), "no clusters in this topology");
    assert!(record.find("pipe", 1, Setting::default()).is_some());
}

fn why_missing<'a>(
    record: &'a WorkloadRecord,
    workload: &str,
    copies: u32,
    setting: Setting,
) -> Option<&'a str> {
    let is_it = |missing: &&Missing| {
        missing.workload == workload
            && missing.copies.is_none_or(|of| of == copies)
            && missing.setting.is_none_or(|of| of == setting)
    };
    record.missing.iter().find(is_it).map(|missing| missing.why.as_str())
}
