//! Sentences on a run and its causes, shared by the terminal and the page.

use crate::figures::{Longest, ROUGH_BELOW, Side};
use lowlat_host::{Allocation, CpuSet, Reading};
use lowlat_host_report::cpu_parts::bounded;
use lowlat_jitter::{
    CauseShares, CauseSource, GUIDE_RUN, Group, JitterCauses, JitterGroups, JitterRecord, JitterStudy,
    ReadinessPoint, ReadinessState,
};
use lowlat_text::units::{clean, count, duration, duration_fine, percent, plural, rate, span};

/// Highest number of functions shown of a stack.
const PATH_MAX: usize = 10;

/// Returns what a run measured: "interruptions of 100 ns or longer".
pub fn what(record: &JitterRecord) -> String {
    match record.wake_every_ns {
        Some(every_ns) => format!("latency of wake-ups by a timer every {}", duration(every_ns)),
        None => format!("interruptions of {} or longer", duration(record.threshold_ns)),
    }
}

/// Returns one sentence on a run: the measurement, the longest interruption, the rate.
pub fn headline(record: &JitterRecord, allocation: &Allocation) -> String {
    let cpus = plural(record.cpus.len(), "CPU");
    let run =
        format!("{cpus} for {}, {}, counter {}", span(record.ran_ns()), what(record), clean(&record.counter));
    let Some(side) = Side::of(record, allocation) else {
        return format!("{run}: no samples.");
    };
    let longest = match Longest::of(record, allocation) {
        Some(Longest { length_ns: Some(ns), cpu, .. }) => format!("longest {} on CPU {cpu}", duration(ns)),
        _ => "none occurred".to_owned(),
    };
    let place = match (side.cpu_count, side.is_isolated) {
        (1, _) if record.cpus.len() == 1 => "per second".to_owned(),
        (1, true) => "per second on the CPU chosen for isolation".to_owned(),
        (1, false) => "per second on one CPU".to_owned(),
        (cpus, true) => format!("per second on each of the {} chosen for isolation", plural(cpus, "CPU")),
        (_, false) => "per second on each CPU".to_owned(),
    };
    format!("{run}: {longest}, {} {place}{}.", rate(side.rate.per_s), interval(&side))
}

/// Returns what ended a run that was to end at an interruption, and where that came from; empty if none was to end it.
pub fn stop(record: &JitterRecord) -> Vec<String> {
    let Some(stop) = &record.stop else { return Vec::new() };
    let what = if record.wake_every_ns.is_some() { "latency" } else { "interruption" };
    let limit = duration(stop.on_ns);
    let Some(hit) = &stop.hit else { return vec![format!("No {what} of {limit} or longer ended the run.")] };
    let mut sentences = vec![format!(
        "The first {what} of {limit} or longer ended the run: {} on CPU {} at {}, by {}.",
        duration(hit.interruption.length_ns),
        hit.cpu,
        moment(hit.interruption.at_ns),
        clean(&hit.cause.label())
    )];
    let Reading::Known(of) = &stop.origin else {
        let reason = if stop.origin_reason.is_empty() { "it was not traced" } else { &stop.origin_reason };
        sentences.push(format!("Where it came from is not known: {}.", clean(reason)));
        return sentences;
    };
    let place = if of.thread.is_some() { format!(" on {:#}", of.cpus) } else { String::new() };
    let offset_ns = stop.origin_offset_ns.unwrap_or(0);
    let side = if offset_ns > 0 { "after" } else { "before" };
    let distance = duration(offset_ns.unsigned_abs());
    sentences.push(format!("It came from {}{place}, {distance} {side} its start.", clean(&of.who())));
    let path = of.path.iter().take(PATH_MAX).map(|name| clean(name)).collect::<Vec<_>>().join(", ");
    sentences.push(format!("What ran there, innermost first: {path}."));
    sentences
}

/// Returns one sentence on the longest interruption of the run.
pub fn longest_sentence(jitter: &JitterRecord, allocation: &Allocation) -> String {
    let Some(longest) = Longest::of(jitter, allocation) else {
        return "No CPU was measured.".to_owned();
    };
    let place = if longest.is_isolated { " on the CPUs chosen for isolation" } else { "" };
    match longest.length_ns {
        Some(ns) => format!("Longest interruption{place}: {} on CPU {}.", duration(ns), longest.cpu),
        None => format!("No interruption of {} or longer{place}.", duration(jitter.threshold_ns)),
    }
}

/// Returns the guide's result and this run's, if both count the same gaps.
pub fn beside_the_guide(study: &JitterStudy) -> Option<String> {
    let own = study.all.rate?;
    let guide = &GUIDE_RUN;
    (study.threshold_ns == guide.threshold_ns).then(|| {
        format!(
            "For comparison, {}: {} interruptions of {} or longer on {} in {} s, {} per second on each CPU. This run: {}.",
            guide.name,
            count(guide.interruption_count.into()),
            duration(guide.threshold_ns),
            plural(guide.cpu_count as usize, "isolated CPU"),
            guide.duration_s,
            rate(guide.rate_per_s()),
            rate(own.per_s)
        )
    })
}

/// Returns one sentence for each point that was not ready before the run or could not be checked.
pub fn not_ready(points: &[ReadinessPoint]) -> Vec<String> {
    let open = points.iter().filter(|point| point.state != ReadinessState::Ready);
    open.map(|point| {
        let name = point.id.replace('_', " ");
        let not_known = if point.state == ReadinessState::NotKnown { " (not checked)" } else { "" };
        let action =
            if point.action.is_empty() { String::new() } else { format!(" {}", sentence(&point.action)) };
        format!("{name}{not_known}: {}{action}", sentence(&point.observed))
    })
    .collect()
}

/// Ends a text with exactly one full stop.
fn sentence(text: &str) -> String {
    format!("{}.", text.trim_end_matches('.'))
}

/// Returns a title for [`not_ready`].
pub fn readiness_title(points: &[ReadinessPoint]) -> &'static str {
    if points.iter().any(|point| point.state == ReadinessState::NotReady) {
        "The host was not ready for this run."
    } else {
        "The host's readiness for this run could not be fully checked."
    }
}

/// Returns " (95 % interval 0.0012 to 0.0034)" if the rate is based on few interruptions.
pub fn interval(side: &Side) -> String {
    if side.count >= ROUGH_BELOW {
        return String::new();
    }
    format!(" (95 % interval {} to {})", rate(side.rate.per_s_low), rate(side.rate.per_s_high))
}

/// Returns the shares of the time of all interruptions, with their names; untraced time only if there is any.
pub fn shares(shares: &CauseShares) -> Vec<(&'static str, f64)> {
    let parts = [
        ("explained", shares.named),
        ("kernel entry and exit", shares.entry_exit),
        ("firmware or hypervisor", shares.firmware_or_hypervisor),
        ("unexplained", shares.unexplained),
    ];
    let rest = (shares.not_traced > 0.0).then_some(("not traced", shares.not_traced));
    parts.into_iter().chain(rest).collect()
}

/// Returns "explained 93.0 %, kernel entry and exit 4.00 %, …".
pub fn shares_text(of: &CauseShares) -> String {
    let part = |(word, share)| format!("{word} {}", percent(share * 100.0));
    shares(of).into_iter().map(part).collect::<Vec<_>>().join(", ")
}

/// Describes the source of the causes, and why no better one was used.
pub fn source(causes: &JitterCauses) -> String {
    let clock = match causes.trace_clock.as_str() {
        "" => String::new(),
        clock => format!(" (trace clock {})", clean(clock)),
    };
    let mut text = match causes.source {
        CauseSource::Trace => {
            format!("Each interruption was compared with the kernel's trace of its CPU{clock}.")
        }
        CauseSource::Counters => {
            "Counts only: individual interruptions have no cause. The counts are the kernel's counters of what \
             ran on each CPU during the run."
                .to_owned()
        }
        CauseSource::Off => "Causes were not traced.".to_owned(),
    };
    if !causes.reason.is_empty() {
        text.push_str(&format!(" Reason: {}", ended(&causes.reason)));
    }
    text
}

/// Returns why senders of interrupts between CPUs are unknown, if they were not traced.
pub fn senders(causes: &JitterCauses) -> Option<String> {
    let reason = &causes.senders_reason;
    (!reason.is_empty()).then(|| format!("Who interrupted from other CPUs is unknown: {}", ended(reason)))
}

/// A cleaned text with a full stop, unless it ends like a sentence.
fn ended(text: &str) -> String {
    let end = if text.ends_with(['.', '!', '?']) { "" } else { "." };
    clean(text) + end
}

/// Describes the sender of a step of a timeline, if known: "by md (pid 812) on CPU 0, TLB shootdown".
pub fn sent_by(causes: Option<&JitterCauses>, sender: Option<usize>) -> Option<String> {
    let of = causes?.senders.as_ref()?.get(sender?)?;
    let place = if of.thread.is_some() { format!(" on {:#}", of.cpus) } else { String::new() };
    Some(clean(&format!("by {}{place}, {}", of.who(), of.reason().what)))
}

/// Returns one sentence for each kind of lost data; empty if nothing was lost.
pub fn lost(causes: &JitterCauses) -> Vec<String> {
    let mut sentences = Vec::new();
    let (ring, ring_cpus) = sum(causes, |cpu| cpu.ring_lost_count);
    if ring > 0 {
        let ring = plural(ring, "interruption");
        sentences.push(format!(
            "{ring} on CPU {ring_cpus} could not be compared with the trace: the ring to the collector was full."
        ));
    }
    let (events, event_cpus) = sum(causes, |cpu| cpu.event_lost_count);
    if events > 0 {
        let events = plural(events, "trace event");
        sentences.push(format!("The kernel dropped {events} of CPU {event_cpus}: its buffer was full."));
    }
    sentences
}

/// Returns a sum over CPUs, and a short list of the CPUs that contribute to it.
fn sum(causes: &JitterCauses, of: fn(&lowlat_jitter::CpuCauses) -> u64) -> (u64, String) {
    let total = causes.cpus.iter().fold(0u64, |sum, cpu| sum.saturating_add(of(cpu)));
    let cpus = bounded(causes.cpus.iter().filter(|cpu| of(cpu) > 0).map(|cpu| cpu.cpu));
    (total, cpu_list(&cpus, 40))
}

/// Describes how much was compared with the trace: "31,204 of 31,204 interruptions, 93,120 trace events."
pub fn looked_at(record: &JitterRecord, causes: &JitterCauses) -> String {
    let (attributed, _) = sum(causes, |cpu| cpu.attributed_count);
    let (kernel, _) = sum(causes, |cpu| cpu.kernel_count);
    let (events, _) = sum(causes, |cpu| cpu.event_count);
    let (own, _) = sum(causes, |cpu| cpu.own_holds.as_ref().map_or(0, |own| own.count));
    let all = record.cpus.iter().fold(own, |sum, cpu| sum.saturating_add(cpu.interruption_count));
    let (kernel_ns, _) = sum(causes, |cpu| cpu.kernel_ns_total);
    let (unnamed_ns, _) = sum(causes, |cpu| cpu.kernel_unnamed_ns_total);
    let share = percent(unnamed_ns as f64 * 100.0 / kernel_ns.max(1) as f64);
    let unnamed = format!(", and {share} of their time is unnamed");
    let unnamed = if kernel_ns == 0 { "" } else { &unnamed };
    let (attributed, all, events) =
        (count(attributed), plural(all, "interruption"), plural(events, "trace event"));
    let kernel = count(kernel);
    format!("{attributed} of {all} were compared with {events}. In {kernel} of them the kernel ran{unnamed}.")
}

/// Describes the cost of tracing, or returns `None` if nothing was traced.
pub fn cost(record: &JitterRecord) -> Option<String> {
    let causes = record.causes.as_ref()?;
    let cost = causes.cost?;
    let (events, _) = sum(causes, |cpu| cpu.event_count);
    let runtime_ns: f64 = record.cpus.iter().map(|cpu| cpu.runtime_ns as f64).sum();
    let (low, high) = cost.event_ns_quartiles;
    let [added, low, high] = [cost.event_ns, low, high].map(signed);
    let rounds = plural(cost.round_count, "round");
    let mut text =
        format!("Tracing adds {added} to each event it records (quartiles {low} to {high}, {rounds}).");
    if runtime_ns > 0.0 && cost.event_ns > 0.0 {
        let share = percent(cost.event_ns * events as f64 * 100.0 / runtime_ns);
        let events = plural(events, "event");
        text.push_str(&format!(" Over the {events} of this run that is {share} of the sampled time."));
    }
    Some(text)
}

/// Formats a difference of two medians, which noise can make negative.
fn signed(ns: f64) -> String {
    if ns < 0.0 { format!("-{}", duration_fine(-ns)) } else { duration_fine(ns) }
}

/// Describes system-management interrupts over all CPUs, or returns `None` if the processor does not count them.
pub fn smi(causes: &JitterCauses) -> Option<String> {
    let known: Vec<u64> = causes.cpus.iter().filter_map(|cpu| cpu.smi_count.known().copied()).collect();
    let denied = causes.cpus.iter().find(|cpu| matches!(cpu.smi_count, Reading::Denied));
    match (known.iter().max(), denied) {
        (Some(0), _) => Some("No system-management interrupt was counted during the run.".to_owned()),
        (Some(most), _) => {
            let (most, verb) =
                (plural(*most, "system-management interrupt"), if *most == 1 { "was" } else { "were" });
            Some(format!("Up to {most} {verb} counted on one CPU during the run."))
        }
        (None, Some(_)) => {
            Some("System-management interrupts could not be counted: this needs root.".to_owned())
        }
        (None, None) => None,
    }
}

/// Describes groups: the window, their number, the number expected by chance.
pub fn groups(groups: &JitterGroups) -> String {
    let total = groups.sizes.iter().fold(0u64, |sum, size| sum.saturating_add(size.count));
    let window = span(groups.window_ns);
    if total == 0 {
        return format!("No interruptions of several CPUs started within {window} of each other.");
    }
    let chance = groups.chance_pair_count;
    let by_chance = match chance {
        chance if !chance.is_finite() => String::new(),
        chance if chance < 0.05 => " By chance, fewer than 0.05 pairs are expected.".to_owned(),
        chance if chance < 10.0 => format!(" By chance, about {chance:.1} pairs are expected."),
        chance => format!(" By chance, about {} pairs are expected.", rate(chance)),
    };
    let times = if total == 1 { "once".to_owned() } else { format!("{} times", count(total)) };
    format!("Interruptions of several CPUs started within {window} of each other {times}.{by_chance}")
}

/// Returns the CPUs of a group, and its longest interruption.
pub fn group_facts(group: &Group) -> Option<(CpuSet, &lowlat_jitter::GroupMember)> {
    let longest = group.members.iter().max_by_key(|member| member.interruption.length_ns)?;
    Some((bounded(group.members.iter().map(|member| member.cpu)), longest))
}

/// Formats a list of CPUs, cut after a comma if it is longer than `chars_max`.
pub fn cpu_list(cpus: &CpuSet, chars_max: usize) -> String {
    let list = cpus.to_list();
    if list.len() <= chars_max {
        return list;
    }
    let kept = list.get(..chars_max.saturating_sub(4)).unwrap_or_default();
    let kept = kept.rsplit_once(',').map_or(kept, |(before, _)| before);
    format!("{kept}, ...")
}

/// Formats a time within the run: "31.402118 s".
pub fn moment(at_ns: u64) -> String {
    format!("{}.{:06} s", count(at_ns / 1_000_000_000), at_ns % 1_000_000_000 / 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowlat_host::statistics::RateInterval;
    use lowlat_jitter::{CpuCauses, GroupSize, JitterCpu, TracingCost};

    #[test]
    fn long_lists_of_cpus_are_cut_after_a_comma() {
        let cpus = CpuSet::parse_list("1-7,9-15,17-23,25-31").unwrap();
        assert_eq!(cpu_list(&cpus, 20), "1-7,9-15,17-23,25-31");
        assert_eq!(cpu_list(&cpus, 19), "1-7,9-15,17-23, ...");
        assert_eq!(cpu_list(&cpus, 18), "1-7,9-15, ...");
        assert_eq!(moment(31_402_118_733), "31.402118 s");
    }

    #[test]
    fn the_cost_of_tracing_counts_the_events_of_the_run() {
        let causes = JitterCauses {
            cpus: vec![CpuCauses { event_count: 10_000, ..CpuCauses::default() }],
            cost: Some(TracingCost { event_ns: 84.0, event_ns_quartiles: (-2.0, 91.5), round_count: 20 }),
            ..JitterCauses::default()
        };
        let cpu = JitterCpu { runtime_ns: 1_000_000_000, ..JitterCpu::default() };
        let record = JitterRecord { cpus: vec![cpu], causes: Some(causes), ..JitterRecord::default() };
        assert_eq!(
            cost(&record).unwrap(),
            "Tracing adds 84.0 ns to each event it records (quartiles -2.0 ns to 91.5 ns, 20 rounds). Over the \
             10,000 events of this run that is 0.084 % of the sampled time."
        );
    }

    #[test]
    fn groups_are_compared_with_chance() {
        let of = |count, chance_pair_count| JitterGroups {
            window_ns: 1_000,
            sizes: vec![GroupSize { cpu_count: 2, count }],
            chance_pair_count,
            worst: Vec::new(),
        };
        assert!(groups(&of(0, 3.0)).starts_with("No interruptions of several CPUs"));
        assert!(groups(&of(12, 0.8)).ends_with("By chance, about 0.8 pairs are expected."));
        assert!(groups(&of(12, f64::NAN)).ends_with("within 1 us of each other 12 times."));
    }

    #[test]
    fn the_guides_run_is_named_where_the_threshold_is_the_same() {
        let mut study = JitterStudy { threshold_ns: 100, ..JitterStudy::default() };
        assert_eq!(beside_the_guide(&study), None, "nothing was sampled");
        study.all.rate = RateInterval::of(61, 610.0);
        assert_eq!(
            beside_the_guide(&study).unwrap(),
            "For comparison, guide 57037: 10 interruptions of 100 ns or longer on 14 isolated CPUs in 610 s, \
             0.0012 per second on each CPU. This run: 0.10."
        );
        study.threshold_ns = 250;
        assert_eq!(beside_the_guide(&study), None);
    }
}
