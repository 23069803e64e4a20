use super::*;

/// A warning of each variant, and of each text of a variant.
fn every_warning() -> Vec<Warning> {
    let cpus = || CpuSet::parse_list("2-3,7").unwrap();
    let error = || "Permission denied (os error 13)".to_owned();
    let counter = |number: usize| (format!("irq {number}"), CpuSet::of(2));
    let moved = |is_offline| Warning::SamplerMoved { cpu: 5, to: 1, after_ns: 2_000_400_000, is_offline };
    vec![
        Warning::Suspended { suspended_ns: 60_000_000_000 },
        Warning::ClockSourceChanged { before: Reading::Known("tsc".to_owned()), after: Reading::Absent },
        Warning::TimeOfDaySet { step_ns: -1_000_000_000 },
        Warning::CounterDrifted { counter: "tsc", drift_ppm: 500.4 },
        Warning::TscNotOffered,
        Warning::TscNotReportedInvariant,
        Warning::TscNotUsed,
        Warning::ClockSourceNotTsc { name: "hpet".to_owned() },
        Warning::SamplersLost { cpus: cpus() },
        moved(true),
        moved(false),
        Warning::Stolen { cpus: CpuSet::of(1), stolen_ns: 30_000_000 },
        Warning::CounterWentBackwards { cpus: CpuSet::of(2) },
        Warning::NoCpuLeft { has_collector: false },
        Warning::NoCpuLeft { has_collector: true },
        Warning::CollectorDied,
        Warning::MemoryNotLocked { error: error() },
        Warning::RealTime { policy: "SCHED_FIFO 10".to_owned() },
        Warning::FairServer {
            cpus: cpus(),
            runtime_ns: 50_000_000,
            period_ns: 1_000_000_000,
            directory: "/sys/kernel/debug/sched/fair_server",
        },
        Warning::FairServerUnknown { directory: "/sys/kernel/debug/sched/fair_server" },
        Warning::RealTimeThrottled {
            runtime_us: 950_000,
            period_us: 1_000_000,
            path: "/proc/sys/kernel/sched_rt_runtime_us",
        },
        Warning::RawLost { cpus: cpus(), lost_count: 3 },
        Warning::RawEndsEarly { cpus: cpus(), error: error(), lost_count: 3_000 },
        Warning::RawNotWritten {
            path: "raw.2".to_owned(),
            error: error(),
            count: 12,
            spool: "raw.2.part".to_owned(),
        },
        Warning::LeftoverRemoved { name: "lowlat-12-345".to_owned() },
        Warning::LeftoverKept { name: "lowlat-12-345".to_owned(), error: error() },
        Warning::OtherTracer { fact: "function is the current tracer".to_owned() },
        Warning::TraceIncomplete { problem: "the kernel has no event irq/softirq_entry".to_owned() },
        Warning::TraceSideEffect { effect: "This kernel keeps its own buffer small.".to_owned() },
        Warning::SwitchesNotTraced { error: error() },
        Warning::CostNotMeasured { error: error() },
        Warning::TraceNotOn { error: error() },
        Warning::TraceBroken { cpu: 2, error: error() },
        Warning::SwitchesMissed { count: 9 },
        Warning::SendersTooMany { count: 31 },
        Warning::SendersMissed { count: 2 },
        Warning::EventsDropped { cpus: cpus(), count: 900 },
        Warning::NotAnalysed { cpus: cpus(), count: 900 },
        Warning::GroupsLate { count: 4 },
        Warning::FunctionsUnnamed { error: error() },
        Warning::TraceNotRemoved { error: error() },
        Warning::CountsUnknown { path: "/proc/interrupts", why: "absent".to_owned() },
        Warning::CountsOffline { cpus: CpuSet::of(2), path: "/proc/interrupts" },
        Warning::CountersRestarted { counters: vec![counter(1)] },
        Warning::CountersRestarted { counters: (0..NAMED_MAX + 3).map(counter).collect() },
        Warning::MoreThanCounted {
            cpu: 4,
            cause: "softirq RCU".to_owned(),
            traced_count: 9,
            counted_count: 0,
        },
    ]
}

#[test]
fn each_text_is_complete_sentences() {
    for warning in every_warning() {
        let text = warning.to_string();
        let starts_well = text.starts_with(|c: char| c.is_uppercase() || c.is_ascii_digit());
        assert!(starts_well && text.ends_with('.'), "{text}");
        for flaw in ["  ", "..", "\n", " .", "{", "}"] {
            assert!(!text.contains(flaw), "{flaw:?} in {text}");
        }
    }
}

#[test]
fn texts_stay_as_they_are() {
    let texts: Vec<String> = every_warning().iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(texts.join("\n"));
}
