//! Made-up runs that look like measured ones, for tests and golden files. No figure here was measured.

use super::{
    Balance, Delivered, FeedFigures, GatewayFigures, Mode, PipelineParameters, PipelineRecord, ProcessUse,
    SentOrders, StageFigures, Stages, WireRecord, WireStages,
};
use hdrhistogram::Histogram;

/// A run of so many ticks whose tick to order is about `t2o_ns`.
pub fn run(ticks: u64, t2o_ns: u64) -> PipelineRecord {
    let parameters = PipelineParameters {
        strategies: 80,
        rate_per_s: 800.0,
        mode: Mode::Parked,
        duration_s: 10.0,
        pins: std::collections::BTreeMap::new(),
        host_core: None,
        may_use_huge_pages: false,
        has_md_threads: false,
        strategy_cost_ns: 0,
    };
    run_of(parameters, ticks, t2o_ns)
}

/// Feed and gateway of such a run, without a loss.
pub fn wire(ticks: u64, trade_ns: u64) -> WireRecord {
    let part = |per_cent: u64| spread(ticks, trade_ns * per_cent / 100);
    let stages = WireStages {
        packet_to_read: part(12),
        read_to_published: part(4),
        published_to_strategy: part(38),
        strategy: part(5),
        order_to_td: part(32),
        td_to_send: part(3),
        send_to_wire: part(6),
        tick_to_trade: part(100),
    };
    let feed = FeedFigures {
        datagrams: ticks / 2 + 8,
        received: ticks,
        published: ticks,
        sessions: 1,
        is_ended: true,
        ..FeedFigures::default()
    };
    let gateway = GatewayFigures {
        sent: ticks,
        accepted: ticks,
        fills: ticks,
        measured: ticks,
        adding_up: ticks,
        ..GatewayFigures::default()
    };
    WireRecord { feed: Some(feed), gateway: Some(gateway), stages }
}

/// A run with given parameters.
pub fn run_of(parameters: PipelineParameters, ticks: u64, t2o_ns: u64) -> PipelineRecord {
    let strategies = parameters.strategies;
    let measured_s = parameters.duration_s;
    let has_host = parameters.host_core.is_some();
    let of = |role: &str, processes: u32, wakes: u64| ProcessUse {
        role: role.to_owned(),
        processes,
        cpu_s: wakes as f64 * 6e-6,
        voluntary_switches: wakes,
        involuntary_switches: wakes / 50,
        minor_faults: 0,
        major_faults: 0,
        private_bytes_max: Some(1_200 << 10),
    };
    let (role, processes) = if has_host { ("host", 1) } else { ("strategies", strategies) };
    PipelineRecord {
        parameters,
        measured_s,
        ready_s: 0.4,
        is_cut_short: false,
        ticks_scheduled: ticks,
        ticks_published: ticks,
        orders: ticks,
        answers: ticks,
        rejected: 0,
        lost: 0,
        wakes: ticks * 3,
        missed_wakes: 0,
        restarts: 0,
        stages: Stages {
            md: spread(ticks, t2o_ns * 11 / 20),
            order: spread(ticks, t2o_ns * 2 / 5),
            t2o: spread(ticks, t2o_ns),
            t2o_scheduled: spread(ticks, t2o_ns * 21 / 20),
        },
        wire: None,
        uses: vec![
            of("master", 1, 40),
            of("cached", 1, ticks / 10),
            of("md", 1, ticks),
            of("td", 1, ticks),
            of(role, processes, ticks * 2),
        ],
        uses_s: measured_s,
        others_cpu_s: Some(measured_s / 50.0),
        backing_bytes: [("pages of the usual size".to_owned(), 96 << 20)].into(),
        runs_beside: Vec::new(),
        failed: Vec::new(),
        balance: Balance {
            quotes: Delivered { published: ticks, received: ticks, lost: 0 },
            answers: Delivered { published: 2 * ticks, received: 2 * ticks, lost: 0 },
            compares_deliveries: true,
            fills: ticks,
            senders: vec![SentOrders { name: "s0".to_owned(), sent: ticks, answered: ticks, unsent: 0 }],
            ..Balance::default()
        },
        findings: Vec::new(),
        warnings: Vec::new(),
    }
}

/// Latencies around a middle, with a tail to fifteen times of it.
fn spread(count: u64, middle_ns: u64) -> StageFigures {
    let Ok(mut histogram) = Histogram::<u64>::new_with_bounds(1, 1 << 40, 3) else {
        return StageFigures::default();
    };
    for at in 0..count {
        // The golden ratio's multiples fill the unit interval evenly.
        let part = (at as f64 * 0.618_033_988_75).fract();
        let tail = (0.004 / (1.004 - part)).powf(0.55);
        let ns = middle_ns as f64 * (0.7 + 0.55 * part + 13.0 * tail * part.powi(40));
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a made-up latency above 0"
        )]
        histogram.saturating_record(ns as u64);
    }
    StageFigures::of(&histogram)
}
