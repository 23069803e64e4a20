//! Documents that look like measured ones. Every figure is invented.

use lowlat_host::{CpuSet, Topology, topology::Node};
use lowlat_pipeline::{
    MatrixDocument, MatrixRow, Mode, PipelineDocument, PipelineOptions, PipelineParameters, PipelineRecord,
    ProcessRole,
    matrix::{self, MatrixPins},
    size::{
        Answer, Capacity, CapacityGoal, CapacityLimit, CheckedPoint, Cores, Costs, Fit, HugePages, Load,
        PlacedGroup, Placement, SizeDocument, StrategyGroup, capacity, predict,
    },
    testing,
};
use std::sync::LazyLock;

/// One run of 80 strategies.
pub fn run() -> PipelineDocument {
    let pins = [(ProcessRole::Md, vec![0]), (ProcessRole::Td, vec![1])].into();
    let parameters = PipelineParameters { pins, ..testing::run(1, 1).parameters };
    document(testing::run_of(parameters, 20_000, 38_000))
}

/// A run with a feed and a gateway.
pub fn wire_run() -> PipelineDocument {
    let mut document = run();
    document.options.feed = Some("udp:239.1.1.1:5000".to_owned());
    document.options.gateway = Some("tcp:10.0.0.1:5001".to_owned());
    document.record.wire = Some(testing::wire(8_000, 60_000));
    document
}

/// A run with every problem that is reported.
pub fn broken_run() -> PipelineDocument {
    let mut record = testing::run(400, 900_000);
    record.ticks_scheduled = 8_000;
    record.answers = 390;
    record.lost = 12;
    record.missed_wakes = 3;
    record.restarts = 1;
    record.balance.senders[0].answered = 390;
    record.balance.senders[0].unsent = 20;
    record.findings = lowlat_pipeline::findings(&record);
    record.warnings = [
        "Latencies from the write hide the delay of a late md: use tick to order from the due time.",
        "swap: 300 MiB in use: pages that come back from a disk take milliseconds.",
    ]
    .map(str::to_owned)
    .to_vec();
    PipelineDocument { is_interrupted: true, ..document(record) }
}

fn document(record: PipelineRecord) -> PipelineDocument {
    PipelineDocument {
        options: PipelineOptions::default(),
        document: PipelineDocument::DOCUMENT.into(),
        schema_version: PipelineDocument::SCHEMA_VERSION,
        lowlat_version: "0.1.0".into(),
        started_at: "2026-01-02T03:04:05Z".into(),
        is_interrupted: false,
        labels: lowlat_host::Labels::default(),
        record,
    }
}

/// Factors by which the invented latency varies with the scenario.
const SHAPE: [f64; 12] = [1.3, 1.28, 1.2, 1.32, 1.24, 1.1, 1.02, 0.95, 0.88, 0.78, 0.7, 1.6];

fn two_nodes() -> Topology {
    let node = |(id, list)| Node { id, cpus: CpuSet::parse_list(list).unwrap(), ..Node::default() };
    Topology { nodes: [(0, "0-5"), (1, "6-11")].map(node).into(), ..Topology::default() }
}

/// The matrix of a host of 12 CPUs, made once: it has half a million latencies.
pub fn matrix() -> MatrixDocument {
    static MATRIX: LazyLock<MatrixDocument> = LazyLock::new(make_matrix);
    MATRIX.clone()
}

fn make_matrix() -> MatrixDocument {
    let (cpus, topology) = (CpuSet::first(12), two_nodes());
    let pins = MatrixPins::new(&cpus, &topology);
    let rows = matrix::rows().map(|row| {
        let base_ns = match row.group.letter {
            'A' => 52_000.0,
            'B' => 49_000.0,
            'C' => 31_000.0,
            'D' => 29_500.0,
            'S' => 24_000.0,
            'T' => 36_000.0,
            'R' => 20_000.0,
            'M' => 21_000.0,
            'O' => 30_500.0,
            'Q' => 61_000.0,
            'X' => 32_000.0,
            'Y' => 33_000.0,
            'J' => 3_900.0,
            'H' => 9_000.0,
            _ => 2_400.0,
        };
        let number = usize::from(row.scenario.number);
        let duration_s = (3.0_f64).max(1.0 / row.scenario.rate_per_s);
        let parameters = row.parameters(duration_s, &pins);
        let ticks = whole(duration_s * row.scenario.rate_per_s).max(1);
        let not_run = match row.group.letter {
            'F' | 'G' => Some("spinners: 82 processes spin on 12 CPUs: they would take whole time slices from each other, and that would be measured"),
            'L' => Some("its CPUs share one last-level cache, so none are far from each other"),
            'B' if number < 2 => Some("one tick takes 5.0 s, and a run of this budget 3.1 s"),
            _ => None,
        };
        let runs = if not_run.is_some() { 0 } else { 2 };
        let made = (0..runs).map(|repeat| {
            let t2o_ns = base_ns * SHAPE[number - 1] * (1.0 + 0.06 * f64::from(repeat));
            testing::run_of(parameters.clone(), ticks, whole(t2o_ns))
        });
        MatrixRow {
            id: row.id(),
            group: row.group.letter,
            group_name: row.group.name.to_owned(),
            scenario: row.scenario.number,
            ticks_per_run: ticks,
            not_run: not_run.map(str::to_owned),
            runs: made.collect(),
            parameters,
        }
    });
    MatrixDocument {
        document: MatrixDocument::DOCUMENT.into(),
        schema_version: MatrixDocument::SCHEMA_VERSION,
        lowlat_version: "0.1.0".into(),
        started_at: "2026-01-02T03:04:05Z".into(),
        elapsed_s: 588.0,
        budget_s: 600.0,
        is_interrupted: false,
        labels: lowlat_host::Labels::default(),
        host: "Made-up server: made-up processor, 12 CPUs".into(),
        kernel: "Linux 6.12.0-made-up".into(),
        repeats: 2,
        pinning: pins.how(),
        platform:
            "6 processes beside the strategies, as in the report: master, cached, md, td, and 2 others."
                .into(),
        rows: rows.collect(),
        warnings: vec!["swap: 300 MiB in use: pages that come back from a disk take milliseconds.".into()],
    }
}

/// A matrix in which no row ran, with hostile texts.
pub fn hostile_matrix() -> MatrixDocument {
    let mut document = matrix();
    document.rows.truncate(3);
    for row in &mut document.rows {
        row.runs.clear();
        row.not_run = Some("<script>alert(1)</script>\u{1b}[31m".into());
    }
    document.host = "<img src=x onerror=alert(1)>\u{202e}".into();
    document
}

/// The sizing of a host with 12 CPUs.
pub fn size() -> SizeDocument {
    let costs = Costs {
        transfer_ns: 310.0,
        wake_ns: 7_900.0,
        tail_ns: 21_000.0,
        is_tail_from_max: false,
        decide_ns: 2_100.0,
        md_cpu_ns: 6_200.0,
        strategy_cpu_ns: 11_800.0,
        td_cpu_ns: 7_700.0,
    };
    let load = |strategies| Load {
        strategies,
        rate_per_s: f64::from(strategies) * 100.0,
        mode: Mode::Parked,
        cores: Cores::Own { strategy_cpus: 6 },
    };
    let checked: Vec<CheckedPoint> = [(10, 18_000), (40, 21_000), (80, 27_000)]
        .map(|(strategies, t2o_ns)| CheckedPoint {
            load: load(strategies),
            predicted: predict(&costs, &load(strategies)),
            measured: testing::run(5_000, t2o_ns),
        })
        .into();
    let fit = Fit::of(&checked);
    let goal = CapacityGoal { p99_ns: 500_000.0, utilisation: 0.6 };
    let capacity = capacity(&costs, &fit, &load(1), 100.0, &goal);
    let answer = Answer::of(&checked, &goal, &capacity, None);
    let group = StrategyGroup { strategies: capacity.strategies, rate_per_s: 100.0 };
    let pins = [
        (ProcessRole::Master, vec![0]),
        (ProcessRole::Cached, vec![1]),
        (ProcessRole::Recorder, vec![1]),
        (ProcessRole::Md, vec![4]),
        (ProcessRole::Td, vec![5]),
        (ProcessRole::Strategies, vec![6, 7, 8, 9, 10, 11]),
    ];
    SizeDocument {
        document: SizeDocument::DOCUMENT.into(),
        schema_version: SizeDocument::SCHEMA_VERSION,
        lowlat_version: "0.1.0".into(),
        started_at: "2026-01-02T03:04:05Z".into(),
        is_interrupted: false,
        labels: lowlat_host::Labels::default(),
        host: "Made-up server: made-up processor, 12 CPUs".into(),
        costs,
        strategy_cost_ns: 0,
        checked,
        fit,
        rate_each_per_s: 100.0,
        load: load(1),
        goal,
        capacity,
        answer,
        huge_pages: Some(HugePages {
            strategies: 80,
            not_tried: Some("48 MiB of 2 MiB pages are needed, 0 MiB are free".into()),
            ..HugePages::default()
        }),
        placement: Placement {
            pins: pins.into(),
            groups: vec![PlacedGroup { group, cpus: CpuSet::parse_list("6-11").unwrap() }],
            steps: vec!["md on CPU 4 and td on CPU 5: cores under one last-level cache.".into()],
            warnings: Vec::new(),
        },
        warnings: vec!["40 strategies could not be checked: md did not start.".into()],
    }
}

/// A host that cannot carry a single strategy.
pub fn nothing_fits() -> SizeDocument {
    SizeDocument {
        capacity: Capacity { strategies: 0, expected: None, limit: CapacityLimit::P99 },
        answer: Answer::default(),
        checked: Vec::new(),
        fit: Fit::default(),
        ..size()
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "made-up figures above 0")]
fn whole(of: f64) -> u64 {
    of.round() as u64
}
