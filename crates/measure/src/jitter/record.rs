//! Builds the record of a run from the samplers' results and the host before and after.

use super::{options::JitterOptions, series::SeriesPlan, steal::Steal, team::Done};
use crate::clock::{ClockState, CounterKind, Frequency, TickScale};
use lowlat_host::CpuSet;
use lowlat_jitter::{JitterCpu, JitterRecord};
use lowlat_sys::Root;

const ONLINE: &str = "/sys/devices/system/cpu/online";

/// The host before a run.
pub struct Before {
    kind: CounterKind,
    frequency: Frequency,
    clocks: ClockState,
    steal: Steal,
    /// Doubts so far.
    pub warnings: Vec<String>,
}

impl Before {
    /// Reads it.
    pub fn read(root: &Root, kind: CounterKind, frequency: Frequency, warnings: Vec<String>) -> Self {
        Self { kind, frequency, clocks: ClockState::read(root), steal: Steal::read(root), warnings }
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
    let online = root.read_cpu_list(ONLINE).into_known();
    let missing = options.cpus.difference(&done.iter().map(|one| one.cpu).collect());
    if !missing.is_empty() {
        warnings.push(format!(
            "The samplers of {missing:#} died during the run because of a bug in lowlat; the others were kept."
        ));
    }
    warnings.extend(done.iter().filter_map(|one| move_in_words(one, online.as_ref(), scale)));
    let cpus: Vec<JitterCpu> = done
        .into_iter()
        .map(|one| JitterCpu {
            steal_ns: before.steal.ns_until(&steal_after, one.cpu),
            ..record_of(one, scale)
        })
        .collect();
    warnings.extend(steal_in_words(&cpus));
    warnings.extend(backwards_in_words(&cpus));
    JitterRecord {
        counter: before.kind.name().to_owned(),
        counter_hz: before.frequency.hz,
        counter_hz_source: before.frequency.source.to_string(),
        start_ticks: epoch.unwrap_or(0),
        threshold_ns,
        duration_ns: u64::try_from(options.duration.as_nanos()).unwrap_or(u64::MAX),
        second_ns: SeriesPlan::of(options.duration, options.cpus.len()).bin_ns(),
        cpus,
        missing,
        causes: None,
        real_time: options.real_time.map(|real_time| real_time.to_string()),
        warnings,
    }
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

fn move_in_words(done: &Done, online: Option<&CpuSet>, scale: TickScale) -> Option<String> {
    let (cpu, to) = (done.cpu, done.outcome.moved_to?);
    let why = match online {
        Some(online) if !online.contains(cpu) => "the CPU was taken offline",
        _ => "its affinity was changed, or the CPU was offline for a while",
    };
    let after_s = scale.ns(done.outcome.run_ticks()) as f64 / 1e9;
    Some(format!(
        "The sampler of CPU {cpu} was found on CPU {to} after {after_s:.3} s: {why}. Its earlier results are \
         kept."
    ))
}

fn steal_in_words(cpus: &[JitterCpu]) -> Option<String> {
    let stolen_ns = |cpu: &&JitterCpu| cpu.steal_ns.known().copied().unwrap_or(0);
    let total_ns: u64 = cpus.iter().map(|cpu| stolen_ns(&cpu)).sum();
    let from: CpuSet = cpus.iter().filter(|cpu| stolen_ns(cpu) > 0).map(|cpu| cpu.cpu).collect();
    (total_ns > 0).then(|| {
        format!(
            "The hypervisor took {} ms from {from:#} during the run (steal time): interruptions there may come from the \
             hypervisor.",
            total_ns / 1_000_000
        )
    })
}

fn backwards_in_words(cpus: &[JitterCpu]) -> Option<String> {
    let from: CpuSet = cpus.iter().filter(|cpu| cpu.backward_count > 0).map(|cpu| cpu.cpu).collect();
    (!from.is_empty()).then(|| {
        format!("The counter went backwards on {from:#}: it is unreliable, and lengths measured there may be wrong.")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jitter::{calibrate::Calibration, recorder::Recorder, sampler::Outcome};
    use lowlat_host::Reading;
    use lowlat_jitter::JitterCpu;
    use std::time::Duration;

    fn done(moved_to: Option<u32>) -> Done {
        let scale = TickScale::new(1_000_000_000);
        let mut recorder = Recorder::new(scale, SeriesPlan::of(Duration::from_secs(2), 1), 4, 4);
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
        let words = |online: &str| {
            move_in_words(&done(Some(1)), Some(&CpuSet::parse_list(online).unwrap()), scale).unwrap()
        };
        assert_eq!(
            words("0-4"),
            "The sampler of CPU 5 was found on CPU 1 after 2.000 s: the CPU was taken offline. Its earlier results \
             are kept."
        );
        assert!(words("0-7").contains("its affinity was changed"));
        assert_eq!(move_in_words(&done(None), None, scale), None);
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
        assert!(steal_in_words(&cpus).unwrap().starts_with("The hypervisor took 30 ms from CPU 1 during"));
        assert!(backwards_in_words(&cpus).unwrap().starts_with("The counter went backwards on CPU 2:"));
        assert_eq!((steal_in_words(&cpus[2..]), backwards_in_words(&cpus[..1])), (None, None));
    }
}
