//! Builds the record of a run from the samplers' results and the host before and after.

use super::{options::JitterOptions, series::SeriesPlan, steal::Steal, team::Done};
use crate::clock::{ClockState, CounterKind, Frequency, TickScale};
use lowlat_host::CpuSet;
use lowlat_host_run::{Root, control_group::Throttled};
use lowlat_jitter::{JitterCpu, JitterRecord, Warning};

const ONLINE: &str = "/sys/devices/system/cpu/online";

/// The host before a run.
pub struct Before {
    kind: CounterKind,
    frequency: Frequency,
    clocks: ClockState,
    steal: Steal,
    throttled: Throttled,
    /// Warnings from before the run.
    pub warnings: Vec<Warning>,
}

impl Before {
    pub fn read(root: &Root, kind: CounterKind, frequency: Frequency, warnings: Vec<Warning>) -> Self {
        let (clocks, steal) = (ClockState::read(root), Steal::read(root));
        Self { kind, frequency, clocks, steal, throttled: Throttled::read(root), warnings }
    }
}

/// Builds the record. `epoch` is the counter at the samplers' start.
pub fn assemble(
    root: &Root,
    options: &JitterOptions,
    threshold_ns: u64,
    epoch: Option<u64>,
    before: Before,
    done: Vec<Done>,
) -> JitterRecord {
    let scale = TickScale::new(before.frequency.hz);
    let steal_after = Steal::read(root);
    let mut warnings = before.warnings;
    warnings.extend(before.clocks.doubts_until(&ClockState::read(root), before.kind, scale));
    let throttled_ns = before.throttled.elapsed_ns(root).into_known().filter(|ns| *ns > 0);
    warnings.extend(throttled_ns.map(|throttled_ns| Warning::QuotaThrottled { throttled_ns }));
    let online = root.read_cpu_list(ONLINE).into_known();
    let missing = options.cpus.difference(&done.iter().map(|one| one.cpu).collect());
    if !missing.is_empty() {
        warnings.push(Warning::SamplersLost { cpus: missing.clone() });
    }
    warnings.extend(done.iter().filter_map(|one| move_of(one, online.as_ref(), scale)));
    let cpus: Vec<JitterCpu> = done
        .into_iter()
        .map(|one| JitterCpu {
            steal_ns: before.steal.ns_until(&steal_after, one.cpu),
            ..record_of(one, scale)
        })
        .collect();
    warnings.extend(stolen_from(&cpus));
    warnings.extend(backwards_on(&cpus));
    let mut record = JitterRecord {
        counter: before.kind.name().to_owned(),
        counter_hz: before.frequency.hz,
        counter_hz_source: before.frequency.source.to_owned(),
        start_ticks: epoch.unwrap_or(0),
        threshold_ns,
        duration_ns: u64::try_from(options.duration.as_nanos()).unwrap_or(u64::MAX),
        second_ns: SeriesPlan::of(options.duration, options.cpus.len()).bin_ns(),
        others_busy_share: before.steal.busy_share_beside(&steal_after, &options.cpus),
        wake_every_ns: options.wake_every.and_then(|every| u64::try_from(every.as_nanos()).ok()),
        cpus,
        missing,
        causes: None,
        stop: None,
        real_time: options.real_time.map(|real_time| real_time.to_string()),
        warnings: Vec::new(),
    };
    record.warn(warnings);
    record
}

fn record_of(done: Done, scale: TickScale) -> JitterCpu {
    let Done { cpu, calibration, outcome, recorder } = done;
    JitterCpu {
        cpu,
        runtime_ns: scale.ns(outcome.run_ticks()),
        start_ticks: outcome.first,
        stop_ticks: outcome.last,
        recording_ns_total: scale.ns(outcome.recording_ticks),
        loop_period_ns: calibration.period_ns,
        loop_floor_ns: calibration.floor_ns,
        loop_count: outcome.turns,
        has_moved: outcome.moved_to.is_some(),
        backward_count: outcome.backward_count,
        ..recorder.into_record(outcome.last)
    }
}

fn move_of(done: &Done, online: Option<&CpuSet>, scale: TickScale) -> Option<Warning> {
    let (cpu, to) = (done.cpu, done.outcome.moved_to?);
    let is_offline = online.is_some_and(|online| !online.contains(cpu));
    Some(Warning::SamplerMoved { cpu, to, after_ns: scale.ns(done.outcome.run_ticks()), is_offline })
}

fn stolen_from(cpus: &[JitterCpu]) -> Option<Warning> {
    let stolen_ns_of = |cpu: &JitterCpu| cpu.steal_ns.known().copied().unwrap_or(0);
    let stolen_ns: u64 = cpus.iter().map(stolen_ns_of).sum();
    let from = cpus.iter().filter(|cpu| stolen_ns_of(cpu) > 0).map(|cpu| cpu.cpu).collect();
    (stolen_ns > 0).then_some(Warning::Stolen { cpus: from, stolen_ns })
}

fn backwards_on(cpus: &[JitterCpu]) -> Option<Warning> {
    let from: CpuSet = cpus.iter().filter(|cpu| cpu.backward_count > 0).map(|cpu| cpu.cpu).collect();
    (!from.is_empty()).then_some(Warning::CounterWentBackwards { cpus: from })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jitter::{calibrate::Calibration, recorder::CpuRecorder, sampler::Outcome};
    use lowlat_host::Reading;
    use lowlat_jitter::JitterCpu;
    use std::time::Duration;

    fn done(moved_to: Option<u32>) -> Done {
        let scale = TickScale::new(1_000_000_000);
        let mut recorder = CpuRecorder::new(scale, SeriesPlan::of(Duration::from_secs(2), 1), 4, 4);
        recorder.begin(1_000);
        recorder.record(5_000, 5_300);
        Done {
            cpu: 5,
            calibration: Calibration { period_ns: 12.5, floor_ns: 11.0, recording_ticks: 40 },
            outcome: Outcome {
                first: 1_000,
                last: 2_000_001_000,
                turns: 9,
                recording_ticks: 70,
                backward_count: 0,
                moved_to,
            },
            recorder,
        }
    }

    #[test]
    fn a_sampler_becomes_a_cpu_of_the_record() {
        let cpu = record_of(done(Some(1)), TickScale::new(1_000_000_000));
        assert_eq!((cpu.cpu, cpu.runtime_ns, cpu.recording_ns_total), (5, 2_000_000_000, 70));
        assert_eq!((cpu.loop_count, cpu.has_moved, cpu.interruption_count), (9, true, 1));
        assert_eq!(cpu.seconds.len(), 2);
    }

    #[test]
    fn moves_are_reported_with_their_cause() {
        let scale = TickScale::new(1_000_000_000);
        let found = |online: &str| move_of(&done(Some(1)), Some(&CpuSet::parse_list(online).unwrap()), scale);
        let moved = |is_offline| Warning::SamplerMoved { cpu: 5, to: 1, after_ns: 2_000_000_000, is_offline };
        assert_eq!((found("0-4"), found("0-7")), (Some(moved(true)), Some(moved(false))));
        assert_eq!(move_of(&done(None), None, scale), None);
    }

    #[test]
    fn steal_and_backward_readings_are_reported() {
        let cpu = |cpu, steal_ns, backward_count| JitterCpu {
            cpu,
            steal_ns,
            backward_count,
            ..JitterCpu::default()
        };
        let cpus =
            [cpu(1, Reading::Known(30_000_000), 0), cpu(2, Reading::Known(0), 4), cpu(3, Reading::Denied, 0)];
        let stolen = Warning::Stolen { cpus: CpuSet::of(1), stolen_ns: 30_000_000 };
        assert_eq!(stolen_from(&cpus), Some(stolen));
        assert_eq!(backwards_on(&cpus), Some(Warning::CounterWentBackwards { cpus: CpuSet::of(2) }));
        assert_eq!((stolen_from(&cpus[2..]), backwards_on(&cpus[..1])), (None, None));
    }
}
