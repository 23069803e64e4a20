//! Causes of the slowest round trips: which part was long, and what ran during it.

use lowlat_host::CpuId;
use lowlat_jitter::{Cause, CauseKind, CausePart, CpuCauses, Explained, attribution::IDLE_NAME};
use lowlat_net::pingpong::parts::{Kept, Part, RoundTrip, SlowCause, SlowMessage, Tally, Wakes};

/// A cause must explain at least one in this many parts of the excess of a part over its median.
const EXCESS_PART: u64 = 2;

/// The ends of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ends {
    pub client_cpu: Option<CpuId>,
    pub server_cpu: Option<CpuId>,
    /// The server's CPU is one of this host.
    pub is_same_host: bool,
}

/// The slowest round trips of a size, with the causes that the trace shows.
pub fn slowest(tally: &Tally, traced: &[CpuCauses], ends: &Ends) -> Vec<SlowMessage> {
    let slow = |kept: Kept| {
        let (part, usual_ns) = tally.longest_part(&kept.split);
        let part_ns = kept.split.ns(part);
        let (cause, cpu, cause_ns) = cause_of(&kept, part, part_ns - usual_ns.min(part_ns), traced, ends);
        SlowMessage {
            at_ns: kept.exchange.at_ns,
            round_trip_ns: kept.exchange.measured_ns,
            part,
            part_ns,
            usual_ns,
            cause,
            cpu,
            cause_ns,
        }
    };
    tally.slowest().into_iter().map(slow).collect()
}

fn cause_of(
    kept: &Kept,
    part: Part,
    excess_ns: u64,
    traced: &[CpuCauses],
    ends: &Ends,
) -> (SlowCause, Option<CpuId>, u64) {
    if part.is_server() && !ends.is_same_host {
        return (SlowCause::OtherHost, None, 0);
    }
    let own_cpu = if part.is_server() { ends.server_cpu } else { ends.client_cpu };
    // Packets can be handled on any CPU; what a program does happens on its own.
    let is_anywhere = matches!(part, Part::Wire | Part::Nics | Part::ServerSocket | Part::ClientSocket);
    let explained: Vec<(CpuId, &Explained)> = traced
        .iter()
        .filter(|causes| is_anywhere || Some(causes.cpu) == own_cpu)
        .filter_map(|causes| Some((causes.cpu, explained_at(causes, kept.exchange.at_ns)?)))
        .collect();
    if explained.is_empty() {
        return (SlowCause::NotTraced, None, 0);
    }
    let windows = windows(&kept.exchange, part, ends.is_same_host);
    let longest = explained
        .iter()
        .flat_map(|(cpu, explained)| candidates(explained, &windows).map(|found| (found, *cpu)))
        .filter(|(found, _)| is_cause(&found.cause, part))
        .max_by_key(|(found, _)| found.ns);
    let is_enough = |ns: u64| ns > 0 && ns.saturating_mul(EXCESS_PART) >= excess_ns;
    if let Some((found, cpu)) = longest.filter(|(found, _)| is_enough(found.ns)) {
        return (in_words(&found.cause), Some(cpu), found.ns);
    }
    let stolen = |explained: &Explained| {
        let is_stolen = |part: &&CausePart| part.cause.kind == CauseKind::FirmwareOrHypervisor;
        explained.parts.iter().find(is_stolen).map_or(0, |part| part.ns)
    };
    let stolen = explained.iter().map(|(cpu, explained)| (stolen(explained), *cpu)).max();
    match stolen.filter(|(ns, _)| is_enough(*ns)) {
        Some((ns, cpu)) => (SlowCause::Steal, Some(cpu), ns),
        None => (SlowCause::NotFound, None, 0),
    }
}

/// Causes that ran during a part. A timeline that was cut does not show them, but the causes of the whole round trip
/// are known.
fn candidates(explained: &Explained, windows: &[(u64, u64)]) -> impl Iterator<Item = CausePart> {
    let within: Vec<CausePart> = if explained.timeline_cut_count > 0 {
        explained.parts.clone()
    } else {
        windows.iter().flat_map(|(from, to)| explained.within(*from, *to)).collect()
    };
    within.into_iter()
}

fn explained_at(causes: &CpuCauses, at_ns: u64) -> Option<&Explained> {
    causes.worst.iter().find(|explained| explained.interruption.at_ns == at_ns)
}

/// The times of a part, in nanoseconds since the start of the round trip. On one host both ends have one clock.
fn windows(exchange: &RoundTrip, part: Part, is_same_host: bool) -> Vec<(u64, u64)> {
    let RoundTrip { client, server, client_wake, server_wake, .. } = exchange;
    let woken =
        |wake: Wakes, otherwise: Option<u64>| if let Wakes::At(at) = wake { Some(at) } else { otherwise };
    let (client_woken, server_woken) =
        (woken(*client_wake, client.received_ns), woken(*server_wake, server.received_ns));
    let pairs = match part {
        Part::ClientSend => vec![(client.sending_ns, client.queued_ns)],
        Part::ClientDriver => vec![(client.queued_ns, client.sent_ns)],
        Part::Wire | Part::Nics if is_same_host => {
            vec![(client.sent_ns, server.arrived_ns), (server.sent_ns, client.arrived_ns)]
        }
        Part::Wire | Part::Nics => vec![(client.sent_ns, client.arrived_ns)],
        Part::ServerSocket => vec![(server.arrived_ns, server_woken)],
        Part::ServerWake => vec![(server_woken, server.received_ns)],
        Part::Program => vec![(server.received_ns, server.sending_ns)],
        Part::ServerSend => vec![(server.sending_ns, server.queued_ns)],
        Part::ServerDriver => vec![(server.queued_ns, server.sent_ns)],
        Part::ClientSocket => vec![(client.arrived_ns, client_woken)],
        Part::ClientWake => vec![(client_woken, client.received_ns)],
    };
    let since = |ns: Option<u64>| Some(ns?.saturating_sub(client.sending_ns?));
    pairs.into_iter().filter_map(|(from, to)| Some((since(from)?, since(to)?))).collect()
}

/// Returns whether something can be the cause of a long part. An idle CPU delays only the thread that is being woken on
/// it. The kernel handles packets in interrupts, softirqs and the threads that stand in for them: other threads give
/// way to those, and run because the ends wait.
fn is_cause(cause: &Cause, part: Part) -> bool {
    let handles_packets = || {
        let stands_in = |start: &&str| cause.name.starts_with(*start);
        match cause.kind {
            CauseKind::Thread => ["ksoftirqd/", "irq/", "napi/", "ktimers/"].iter().any(stands_in),
            CauseKind::Work
            | CauseKind::PageFault
            | CauseKind::Signal
            | CauseKind::Held
            | CauseKind::EntryExit => false,
            _ => true,
        }
    };
    let is_named = !matches!(cause.kind, CauseKind::Unexplained | CauseKind::FirmwareOrHypervisor);
    is_named
        && match part {
            Part::Wire | Part::Nics | Part::ServerSocket | Part::ClientSocket => handles_packets(),
            Part::ServerWake | Part::ClientWake => true,
            _ => !is_idle(cause),
        }
}

fn is_idle(cause: &Cause) -> bool {
    cause.kind == CauseKind::Thread && cause.name == IDLE_NAME
}

fn in_words(cause: &Cause) -> SlowCause {
    let label = || cause.label();
    match cause.kind {
        CauseKind::Thread if is_idle(cause) => SlowCause::IdleExit,
        CauseKind::Thread if cause.name.is_empty() => SlowCause::Preempted(label()),
        CauseKind::Thread => SlowCause::Preempted(cause.name.clone()),
        CauseKind::Softirq | CauseKind::Tasklet => SlowCause::Softirq(label()),
        CauseKind::Hrtimer | CauseKind::Timer => SlowCause::Timer(label()),
        CauseKind::Vector if cause.is_local_timer() => SlowCause::Timer(label()),
        CauseKind::Nmi | CauseKind::Irq | CauseKind::Vector | CauseKind::CallFunction => {
            SlowCause::Interrupt(label())
        }
        CauseKind::Held => SlowCause::Held(label()),
        CauseKind::Work | CauseKind::PageFault | CauseKind::Signal | CauseKind::EntryExit => {
            SlowCause::Kernel(label())
        }
        CauseKind::FirmwareOrHypervisor => SlowCause::Steal,
        CauseKind::NotTraced => SlowCause::NotTraced,
        CauseKind::Unexplained => SlowCause::NotFound,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_delayed_only_by_what_can_delay_it() {
        let of = |kind, name: &str| Cause { name: name.to_owned(), ..Cause::of(kind) };
        let thread = |name| of(CauseKind::Thread, name);
        let held = of(CauseKind::Held, "throttled (CPU quota)");
        // Causes that delay packets on their way from the driver of one end to the socket of the other.
        for part in [Part::Wire, Part::ServerSocket, Part::ClientSocket] {
            for cause in [
                thread("ksoftirqd/1"),
                thread("irq/47-eth0"),
                thread("napi/eth0-5"),
                of(CauseKind::Irq, "nvme0q3"),
                of(CauseKind::Softirq, "RCU"),
                of(CauseKind::CallFunction, "flush_tlb_func"),
            ] {
                assert!(is_cause(&cause, part), "{part:?}: {cause:?}");
            }
            for cause in [thread("rustc"), thread(IDLE_NAME), held.clone(), of(CauseKind::PageFault, "")] {
                assert!(!is_cause(&cause, part), "{part:?}: {cause:?} runs because the ends wait");
            }
        }
        // Causes that delay the ends' own threads.
        for part in [Part::Program, Part::ServerSend, Part::ClientWake, Part::ServerWake] {
            for cause in [thread("rustc"), held.clone(), of(CauseKind::Irq, "nvme0q3")] {
                assert!(is_cause(&cause, part), "{part:?}: {cause:?}");
            }
        }
        assert!(
            is_cause(&thread(IDLE_NAME), Part::ClientWake) && !is_cause(&thread(IDLE_NAME), Part::Program)
        );
        for kind in [CauseKind::Unexplained, CauseKind::FirmwareOrHypervisor] {
            assert!(!is_cause(&Cause::of(kind), Part::Program), "{kind:?} is counted separately");
        }
    }
}
