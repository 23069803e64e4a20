//! Refusals and warnings of runs.

use super::{check, is_ours, outcome::of_figures, plan, run, tally::Tally};
use crate::master::{Master, Options, Program};
use lowlat_ipc::region::Heap;
use lowlat_node::address::RunFolder;
use lowlat_pipeline::{
    Balance, Delivered, Mode, PipelineOptions, PipelineParameters, PipelineRecord, PipelineRequest,
    ProcessUse, SentOrders, Stages, findings,
};
use std::{collections::BTreeMap, sync::atomic::AtomicBool};

fn parameters() -> PipelineParameters {
    PipelineParameters {
        strategies: 2,
        rate_per_s: 100.0,
        mode: Mode::Parked,
        duration_s: 1.0,
        pins: BTreeMap::new(),
        host_core: None,
        may_use_huge_pages: false,
        has_md_threads: false,
        strategy_cost_ns: 0,
    }
}

fn clean() -> PipelineRecord {
    PipelineRecord {
        parameters: parameters(),
        measured_s: 1.0,
        ready_s: 0.1,
        is_cut_short: false,
        ticks_scheduled: 100,
        ticks_published: 100,
        orders: 100,
        answers: 100,
        rejected: 0,
        lost: 0,
        wakes: 200,
        missed_wakes: 0,
        restarts: 0,
        stages: Stages::default(),
        wire: None,
        uses: vec![ProcessUse { role: "md".to_owned(), ..ProcessUse::default() }],
        uses_s: 1.0,
        others_cpu_s: Some(0.1),
        backing_bytes: BTreeMap::new(),
        runs_beside: Vec::new(),
        failed: Vec::new(),
        balance: Balance {
            answers: Delivered { published: 100, received: 100, lost: 0 },
            senders: vec![SentOrders { name: "s0".to_owned(), sent: 100, answered: 100, unsent: 0 }],
            ..Balance::default()
        },
        findings: Vec::new(),
        warnings: Vec::new(),
    }
}

#[test]
fn each_fault_is_a_finding_each_doubt_a_warning_and_a_clean_run_has_neither() {
    assert_eq!(of_figures(&clean(), Some(1)), Vec::<String>::new());
    assert_eq!(findings(&clean()), Vec::<String>::new());
    let changed = |change: fn(&mut PipelineRecord)| {
        let mut record = clean();
        change(&mut record);
        record
    };
    let doubt = |change, words: &str| {
        let warnings = of_figures(&changed(change), Some(3));
        assert!(warnings.len() == 1 && warnings[0].contains(words), "{words}: {warnings:?}");
    };
    doubt(|record| record.parameters.mode = Mode::Fast, "4 processes spin on 3 CPUs");
    doubt(|record| record.ticks_published = 99, "hide the delay");
    doubt(|record| record.uses[0].major_faults = 3, "3 pages from a disk");
    doubt(|record| record.others_cpu_s = Some(1.5), "kept 1.50 CPUs of this machine busy");
    let fault = |change, words: &str| {
        let findings = findings(&changed(change));
        assert!(findings.len() == 1 && findings[0].contains(words), "{words}: {findings:?}");
    };
    fault(|record| record.ticks_published = 99, "99 of 100");
    fault(|record| record.measured_s = 2.0, "50.0 quotes/s");
    fault(|record| record.balance.senders[0].sent = 107, "7 of 107 orders have no answer (s0 7)");
    fault(|record| record.balance.senders[0].unsent = 3, "3 orders could not be sent");
    fault(|record| record.balance.not_orders = 2, "2 records that are no orders");
    fault(|record| record.balance.answers.published = 99, "published 99");
    fault(|record| record.lost = 1, "too slow");
    fault(|record| record.missed_wakes = 1, "safety net");
    fault(|record| record.restarts = 2, "2 restarts after");
    let mut stopped = clean();
    (stopped.is_cut_short, stopped.ticks_published) = (true, 10);
    assert_eq!(of_figures(&stopped, Some(3)), Vec::<String>::new(), "the user stopped md, not the host");
    assert_eq!(findings(&stopped), Vec::<String>::new());
    let mut mixed = clean();
    mixed.parameters.mode = Mode::Mixed;
    assert!(of_figures(&mixed, Some(3)).is_empty(), "two spinners on three CPUs");
    assert!(of_figures(&mixed, None).is_empty(), "unknown");
}

#[test]
fn invalid_parameters_are_refused() {
    let refused = |change: fn(&mut PipelineParameters), words: &str| {
        let mut parameters = parameters();
        change(&mut parameters);
        let error = check(&parameters, &PipelineOptions::default(), false).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    };
    refused(|parameters| parameters.strategies = 0, "strategies: found 0, expected 1 to");
    refused(|parameters| parameters.rate_per_s = f64::NAN, "rate_per_s: found NaN");
    refused(|parameters| parameters.duration_s = 0.0, "duration_s: found 0");
}

#[test]
fn a_process_that_fails_at_its_start_ends_the_run_with_its_output() {
    let program = Program {
        name: "md".to_owned(),
        role: "md".to_owned(),
        program: "/bin/sh".into(),
        arguments: ["-c", "echo no feed at $0 >&2; exit 3", plan::MASTER].map(str::to_owned).to_vec(),
        ..Program::default()
    };
    let (options, stop) = (PipelineOptions::default(), AtomicBool::new(false));
    let error = run(&parameters(), vec![program.clone()], &options, &mut |_| (), &stop).unwrap_err();
    let error = error.to_string();
    assert!(
        error.starts_with("process md ended: exit status: 3") && error.contains("no feed at /"),
        "{error}"
    );
    assert!(!error.contains("its words are in"), "the folder with its log is removed: {error}");
    let missing = Program { program: "/nonexistent/lowlat".into(), ..program };
    let error = run(&parameters(), vec![missing], &options, &mut |_| (), &stop).unwrap_err().to_string();
    assert!(error.contains("cannot start md (/nonexistent/lowlat)"), "{error}");
}

#[test]
fn a_name_has_one_master() {
    let name = format!("twice-{}", std::process::id());
    let folder = RunFolder::named(&name).unwrap();
    let first = Master::open(Options::new(folder.clone())).unwrap();
    let options = PipelineOptions { name: Some(name), ..PipelineOptions::default() };
    let request = PipelineRequest { parameters: parameters(), options: options.clone() };
    let programs = || plan::programs(&request, std::path::Path::new("/bin/true"), &[]);
    let stop = AtomicBool::new(false);
    let error = run(&parameters(), programs(), &options, &mut |_| (), &stop).unwrap_err().to_string();
    let said = format!("process {} is its master\nhint: end it, or use another name", std::process::id());
    assert!(error.contains(&said), "{error}");
    assert!(folder.socket().exists(), "the first continues");
    drop(first);
    // Its processes end at once.
    let error = run(&parameters(), programs(), &options, &mut |_| (), &stop).unwrap_err();
    assert!(error.to_string().starts_with("process "), "{error}");
    assert!(!folder.path().exists(), "and its folder is removed with it");
}

#[test]
fn a_folder_of_another_process_is_left_alone() {
    let home = tempfile::tempdir().unwrap();
    let folder = RunFolder::at(home.path()).unwrap();
    assert!(!is_ours(&folder), "nobody's");
    std::fs::write(folder.lock(), "1\n").unwrap();
    assert!(!is_ours(&folder));
    std::fs::write(folder.lock(), format!("{}\n", std::process::id())).unwrap();
    assert!(is_ours(&folder));
}

#[test]
fn only_existing_counts_are_reported() {
    let tally = Tally::new(Heap::zeroed(4096)).unwrap();
    assert_eq!((tally.scheduled(), tally.published_ns()), (None, None));
    tally.set_scheduled(9);
    tally.published(50);
    tally.published(80);
    tally.refused_foreign();
    assert_eq!((tally.scheduled(), tally.published_ns()), (Some(9), Some(30)));
    assert_eq!(tally.refused(), [1, 0]);
    assert!(Tally::new(Heap::zeroed(8)).is_none());
}
