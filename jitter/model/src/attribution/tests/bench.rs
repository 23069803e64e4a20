//! One CPU with an attributor, and its causes as text.

use crate::{CpuCauses, Explained, TimelineChange};
use crate::{
    attribution::AttributionPlan, attribution::CpuAttributor, attribution::Main, attribution::Sleep,
};
use lowlat_trace::{Activity, ThreadName, TraceEvent, TraceNames, TraceStep};
use std::{collections::BTreeSet, fmt::Write};

/// Thread ID of the sampler.
pub(super) const SAMPLER: i32 = 1_000;
/// Thread ID of lowlat's collector.
pub(super) const COLLECTOR: i32 = 1_001;
pub(super) const KWORKER: i32 = 41;
pub(super) const KSOFTIRQD: i32 = 17;
pub(super) const FIFO: i32 = 2_000;

pub(super) const TICK: Activity = Activity::Hrtimer(0xffff_ffff_8110_0000);
pub(super) const VMSTAT: Activity = Activity::Work(0xffff_ffff_8110_0100);
pub(super) const FLUSH_TLB: Activity = Activity::CallFunction(0xffff_ffff_8110_0200);
pub(super) const WATCHDOG: Activity = Activity::Timer(0xffff_ffff_8110_0300);
pub(super) const NVME: Activity = Activity::Irq(47);
pub(super) const SCHED: Activity = Activity::Softirq(7);
pub(super) const NET_RX: Activity = Activity::Softirq(3);

/// Slack between stamps and readings.
pub(super) const SLACK: u64 = 200;
pub(super) const EPOCH: u64 = 5_000_000;

/// One tick is one nanosecond.
pub(super) fn plan(epoch_ticks: u64) -> AttributionPlan {
    AttributionPlan {
        cpu: 3,
        sampler_tid: SAMPLER,
        own_tids: BTreeSet::from([SAMPLER, COLLECTOR]).into(),
        hz: 1_000_000_000,
        epoch_ticks,
        slack_ticks: SLACK,
        worst_count: 4,
        first_count: 4,
        sleep: Sleep::Never,
        events_max: 1_024,
    }
}

pub(super) fn names() -> TraceNames {
    let mut names = TraceNames::default();
    names.irqs.insert(47, "nvme0q3".into());
    for (address, name) in [
        (0, "tick_nohz_handler"),
        (0x100, "vmstat_update"),
        (0x200, "flush_tlb_func"),
        (0x300, "watchdog_fn"),
    ] {
        names.functions.insert(0xffff_ffff_8110_0000 + address, name.into());
    }
    for (tid, comm, prio) in [
        (SAMPLER, "jitter/3", 120),
        (COLLECTOR, "collector", 120),
        (KWORKER, "kworker/3:1", 120),
        (KSOFTIRQD, "ksoftirqd/3", 120),
        (FIFO, "md-handler", 49),
    ] {
        names.threads.insert(tid, ThreadName { comm: comm.into(), prio, allowed_cpus: None });
    }
    names
}

/// An attributor whose moments count from the epoch.
pub(super) struct Bench {
    pub(super) attributor: CpuAttributor,
    epoch: u64,
}

impl Bench {
    pub(super) fn new() -> Self {
        Self::with(plan(EPOCH))
    }

    pub(super) fn with(plan: AttributionPlan) -> Self {
        let epoch = plan.epoch_ticks;
        Self { attributor: CpuAttributor::new(plan), epoch }
    }

    /// Events at moments since the epoch.
    pub(super) fn events(&mut self, steps: &[(i64, TraceStep)]) -> &mut Self {
        for (at, step) in steps {
            let event = TraceEvent { ticks: self.epoch.wrapping_add_signed(*at), step: *step };
            self.attributor.push_events(&[event]);
        }
        self
    }

    /// An interruption from one moment to another.
    pub(super) fn interruption(&mut self, before: u64, now: u64) -> Main {
        self.attributor.attribute(self.epoch.wrapping_add(before), self.epoch.wrapping_add(now))
    }

    pub(super) fn finish(self) -> CpuCauses {
        self.finish_after(0)
    }

    /// Ends a run of this length.
    pub(super) fn finish_after(self, run_ns: u64) -> CpuCauses {
        self.attributor.finish(&names(), run_ns)
    }
}

/// The first interruptions of a stream as text.
pub(super) fn explain(steps: &[(i64, TraceStep)], interruptions: &[(u64, u64)]) -> String {
    let mut bench = Bench::new();
    bench.events(steps);
    for (before, now) in interruptions {
        bench.interruption(*before, *now);
    }
    let causes = bench.finish();
    assert_eq!(causes.totals.iter().map(|total| total.ns_total).sum::<u64>(), total_ns(interruptions));
    causes.first.iter().map(text).collect()
}

fn total_ns(interruptions: &[(u64, u64)]) -> u64 {
    interruptions.iter().map(|(before, now)| now - before).sum()
}

/// One interruption as text: its parts, then its timeline.
pub(super) fn text(explained: &Explained) -> String {
    let interruption = explained.interruption;
    assert_eq!(explained.parts.iter().map(|part| part.ns).sum::<u64>(), interruption.length_ns);
    let mut text = format!("{} ns at {}\n", interruption.length_ns, interruption.at_ns);
    for part in &explained.parts {
        writeln!(text, "  {} {}", part.ns, part.cause.label()).unwrap();
    }
    for step in &explained.timeline {
        let word = match step.change {
            TimelineChange::Begins => "begins",
            TimelineChange::Ends => "ends",
            TimelineChange::Happens => "happens",
            TimelineChange::Returns => "returns",
            TimelineChange::Lost => "lost",
        };
        let indent = "  ".repeat(usize::from(step.depth));
        let subject = match step.change {
            TimelineChange::Returns | TimelineChange::Lost => String::new(),
            _ => step.cause.label() + " ",
        };
        writeln!(text, "    {:+} {indent}{subject}{word}", step.offset_ns).unwrap();
    }
    text
}

pub(super) fn enter(activity: Activity) -> TraceStep {
    TraceStep::Enter(activity)
}

pub(super) fn exit(activity: Activity) -> TraceStep {
    TraceStep::Exit(activity)
}

pub(super) fn switch(from: i32, to: i32) -> TraceStep {
    TraceStep::Switch { from, to, hold: None }
}
