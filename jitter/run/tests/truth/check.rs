//! Compares injected interruptions with those found.

use crate::truth::spin::Spin;
use lowlat_host::TickScale;
use lowlat_jitter::{Cause, CauseKind, CpuCauses, Explained, Interruption, JitterRecord};

/// Readings are rounded to the nanosecond, and the end of an interruption is the sum of two.
const ROUNDING_NS: u64 = 2;
/// Tolerance of timestamps of a trace whose clock is not the samplers' counter but aligned with it.
const OTHER_CLOCK_NS: u64 = 2_000;

/// An injection in nanoseconds since the start of the run, with the interruption that contains it.
#[derive(Debug, Clone, Copy)]
pub struct Found {
    pub from_ns: u64,
    pub to_ns: u64,
    pub own_ns: u64,
    /// Index of the interruption in the record.
    pub place: usize,
}

/// An injection may start while the sampler records another interruption, and is then shortened by that time;
/// see the sampler. Each gap also contains a turn of the loop.
pub fn error_ns(record: &JitterRecord) -> u64 {
    let cpu = &record.cpus[0];
    let recording_ns = cpu.recording_ns_total / cpu.interruption_count.max(1);
    // A turn takes some nanoseconds.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let turn_ns = cpu.loop_period_ns.ceil() as u64;
    2 * (recording_ns + turn_ns) + ROUNDING_NS
}

/// Recall: each injection above the threshold inside the run is inside one interruption, because the sampler
/// cannot have run meanwhile. If more arrived than were kept, only the time of kept ones is checked.
pub fn recall(record: &JitterRecord, spins: &[Spin]) -> Vec<Found> {
    let (scale, cpu) = (TickScale::new(record.counter_hz), &record.cpus[0]);
    let is_all = cpu.first.len() as u64 == cpu.interruption_count;
    let kept_until = cpu.first.last().filter(|_| !is_all).map_or(u64::MAX, |last| last.at_ns);
    let error_ns = error_ns(record);
    let mut found = Vec::new();
    for spin in spins.iter().filter(|spin| spin.from > cpu.start_ticks && spin.to < cpu.stop_ticks) {
        let ns = |ticks: u64| scale.ns(ticks - record.start_ticks);
        let (from_ns, to_ns) = (ns(spin.from), ns(spin.to));
        if to_ns - from_ns < record.threshold_ns || to_ns > kept_until {
            continue;
        }
        let after = cpu.first.partition_point(|one| one.at_ns <= from_ns + error_ns);
        let holds = |one: &Interruption| one.at_ns + one.length_ns + ROUNDING_NS >= to_ns;
        let place = after.checked_sub(1).filter(|place| holds(&cpu.first[*place]));
        let around = &cpu.first[after.saturating_sub(2)..cpu.first.len().min(after + 2)];
        let place = place.unwrap_or_else(|| panic!("nothing found over {from_ns}..{to_ns} ns: {around:?}"));
        found.push(Found { from_ns, to_ns, own_ns: scale.ns(spin.own), place });
    }
    found
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Blamed {
    /// Number of interruptions that contain injections.
    pub holding_count: u64,
    /// Number of interruptions with a part of this cause.
    pub blamed_count: u64,
}

/// The cause of each interruption with injections is correct, its part at least as long as they were, and the
/// totals include them all.
pub fn blame(record: &JitterRecord, found: &[Found], kind: CauseKind, name: &str) -> Blamed {
    let causes = &record.causes.as_ref().unwrap().cpus[0];
    check_causes(record, causes);
    let is_it = |cause: &Cause| cause.kind == kind && cause.name == name;
    let mut stamp_ns = error_ns(record);
    if record.causes.as_ref().is_some_and(|causes| causes.trace_clock != "x86-tsc") {
        stamp_ns += OTHER_CLOCK_NS;
    }
    let (mut holding_count, mut own_ns, mut error_ns) = (0, 0, 0);
    for held in found.chunk_by(|a, b| a.place == b.place) {
        // After a full ring, the rest of the run cannot be explained consistently.
        let Some(one) = causes.first.get(held[0].place).filter(|_| causes.ring_lost_count == 0) else {
            continue;
        };
        let held_ns: u64 = held.iter().map(|one| one.own_ns).sum();
        let off_ns = stamp_ns * held.len() as u64;
        let part_ns = part_ns(one, is_it);
        assert!(
            part_ns + lost_ns(one) + off_ns >= held_ns,
            "{held_ns} ns of {kind:?} {name}, found {part_ns} ns: {one:#?}"
        );
        if held_ns > one.interruption.length_ns / 2 + off_ns && lost_ns(one) == 0 {
            assert!(one.parts.first().is_some_and(|part| is_it(&part.cause)), "{one:#?}");
        }
        (holding_count, own_ns) = (holding_count + 1, own_ns + held_ns);
        error_ns += off_ns + lost_ns(one);
    }
    let totals = || causes.totals.iter().filter(|total| is_it(&total.cause));
    if causes.event_lost_count == 0 {
        assert!(totals().map(|total| total.count).sum::<u64>() >= holding_count, "{:#?}", causes.totals);
        assert!(
            totals().map(|total| total.ns_total).sum::<u64>() + error_ns >= own_ns,
            "{:#?}",
            causes.totals
        );
    }
    Blamed { holding_count, blamed_count: totals().map(|total| total.count).sum() }
}

fn part_ns(one: &Explained, is_it: impl Fn(&Cause) -> bool) -> u64 {
    one.parts.iter().filter(|part| is_it(&part.cause)).map(|part| part.ns).sum()
}

/// Time unknown to the trace: its buffer was full, or a switch is missing.
pub fn lost_ns(one: &Explained) -> u64 {
    part_ns(one, |cause| cause.kind == CauseKind::NotTraced)
}

/// Checks the invariants of all causes.
fn check_causes(record: &JitterRecord, causes: &CpuCauses) {
    let cpu = &record.cpus[0];
    assert_eq!(causes.attributed_count + causes.ring_lost_count, cpu.interruption_count);
    for one in causes.first.iter().chain(&causes.worst) {
        assert_eq!(one.parts.iter().map(|part| part.ns).sum::<u64>(), one.interruption.length_ns, "{one:#?}");
    }
    if causes.ring_lost_count == 0 {
        check_same(&causes.first, &cpu.first);
        check_same(&causes.worst, &cpu.worst);
        let total_ns = causes.totals.iter().map(|total| total.ns_total).sum::<u64>();
        assert_eq!(total_ns, cpu.interruption_ns_total);
    }
}

fn check_same(explained: &[Explained], plain: &[Interruption]) {
    assert_eq!(explained.len(), plain.len());
    for (explained, plain) in explained.iter().zip(plain) {
        assert_eq!(explained.interruption, *plain);
    }
}
