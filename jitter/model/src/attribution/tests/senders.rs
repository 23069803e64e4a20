//! Sends of other CPUs, and their arrival.

use super::bench::*;
use crate::attribution::{CpuAttributor, NOTES_MAX, SenderBook, SenderNames};
use crate::{CpuCauses, Sender};
use lowlat_host::CpuSet;
use lowlat_trace::{
    Activity, Channel, Level, Send, SendStep, Targets, TraceEvent, TraceNames, TraceStep, Vector,
};
use std::collections::BTreeSet;

const HERE: u32 = 3;
const FLUSH: u64 = 0xffff_ffff_8110_0200;
const WAKE: u64 = 0xffff_ffff_8110_0400;
const CALLSITE: u64 = 0xffff_ffff_8120_0010;
const MD: i32 = 812;
const TD: i32 = 813;

/// A receiver and its senders, on CPUs 0 and 1.
struct Host {
    book: SenderBook,
    attributor: CpuAttributor,
    /// The CPU whose events are being read.
    from: u32,
}

impl Host {
    fn new() -> Self {
        let attributor = CpuAttributor::new(plan(EPOCH)).with_senders();
        Self { book: SenderBook::new(&CpuSet::of(HERE)), attributor, from: 0 }
    }

    fn send(&mut self, from: u32, at: u64, thread: i32, step: SendStep<'_>) -> &mut Self {
        self.send_at(from, at, thread, Level::Thread, step)
    }

    fn send_at(&mut self, from: u32, at: u64, thread: i32, level: Level, step: SendStep<'_>) -> &mut Self {
        let send = Send { ticks: EPOCH + at, thread, level, step };
        let attributor = &mut self.attributor;
        if std::mem::replace(&mut self.from, from) != from {
            self.book.end(1 - from, |_, note| attributor.take_note(note));
        }
        self.book.take(from, &send, |cpu, note| {
            assert_eq!(cpu, HERE);
            attributor.take_note(note);
        });
        self
    }

    /// A function is queued, and its interrupt sent.
    fn request(&mut self, from: u32, at: u64, thread: i32, request: u64, function: u64) -> &mut Self {
        self.send(from, at, thread, queue(HERE, request, function));
        self.send(from, at + 10, thread, call(HERE))
    }

    /// The rest of the round: reads end, threads get names, and this is what interrupted.
    fn interruptions(&mut self, steps: &[(u64, TraceStep)], spans: &[(u64, u64)]) -> CpuCauses {
        let attributor = &mut self.attributor;
        self.book.end(self.from, |_, note| attributor.take_note(note));
        self.attributor.settle_notes();
        self.book.name_threads(|thread| match thread {
            MD => Some(("md".into(), String::new())),
            TD => Some(("td".into(), "engine".into())),
            _ => None,
        });
        for (at, step) in steps {
            self.attributor.push_events(&[TraceEvent { ticks: EPOCH + at, step: *step }]);
        }
        for (before, now) in spans {
            self.attributor.attribute(EPOCH + before, EPOCH + now);
        }
        let attributor = std::mem::replace(&mut self.attributor, CpuAttributor::new(plan(EPOCH)));
        let mut names = names();
        names.functions.insert(WAKE, "sched_ttwu_pending".into());
        let mut causes = attributor.finish(&names, 0);
        causes.place_senders(&self.senders(&names).1);
        causes
    }

    fn senders(&self, names: &TraceNames) -> (Vec<Sender>, Vec<usize>) {
        self.book.finish(&SenderNames { names, own_tids: &BTreeSet::new() })
    }

    /// The senders of all interruptions, with counts: "md 2, ? 1".
    fn who(&self, causes: &CpuCauses) -> String {
        let senders = self.senders(&names()).0;
        let name = |place: Option<usize>| place.map_or("?".to_owned(), |place| senders[place].who());
        let mut all: Vec<String> =
            causes.senders.iter().map(|of| format!("{} {}", name(of.sender), of.count)).collect();
        all.sort();
        all.join(", ")
    }
}

fn queue(cpu: u32, request: u64, function: u64) -> SendStep<'static> {
    SendStep::Queues { cpu, function, request, callsite: CALLSITE }
}

fn call(cpu: u32) -> SendStep<'static> {
    SendStep::Sends {
        targets: Targets::One(cpu),
        channel: Some(Channel::Call),
        callsite: CALLSITE,
        callback: 0xffff_ffff_8130_0000,
    }
}

fn reschedule(cpu: u32) -> SendStep<'static> {
    SendStep::Sends {
        targets: Targets::One(cpu),
        channel: Some(Channel::Reschedule),
        callsite: CALLSITE + 0x100,
        callback: 0,
    }
}

const CALL: Activity = Activity::Vector(Vector::CallFunctionSingle);
const RESCHEDULE: Activity = Activity::Vector(Vector::Reschedule);

/// An interrupt that runs functions: requests and functions.
fn arrival(at: u64, functions: &[(u64, u64)]) -> Vec<(u64, TraceStep)> {
    let mut steps = vec![(at, enter(CALL))];
    let mut now = at;
    for (request, function) in functions {
        now += 100;
        steps.push((now, TraceStep::Called { function: *function, request: *request }));
        now += 200;
        steps.push((now, exit(Activity::CallFunction(*function))));
    }
    steps.push((now + 100, exit(CALL)));
    steps
}

fn rescheduled(at: u64) -> Vec<(u64, TraceStep)> {
    vec![(at, enter(RESCHEDULE)), (at + 100, exit(RESCHEDULE))]
}

#[test]
fn a_function_has_the_sender_of_its_request() {
    let mut host = Host::new();
    host.request(0, 100, MD, 0x70, FLUSH).request(1, 5_000, TD, 0x70, FLUSH);
    let steps = [arrival(1_000, &[(0x70, FLUSH)]), arrival(6_000, &[(0x70, FLUSH)])].concat();
    let causes = host.interruptions(&steps, &[(900, 1_600), (5_900, 6_600)]);
    assert_eq!(host.who(&causes), "md (pid 812) 1, td of engine (pid 813) 1");
    let senders: Vec<Option<usize>> = causes.first[0].timeline.iter().map(|step| step.sender).collect();
    assert_eq!(senders, [Some(0), Some(0), None, None]);
    // All of the interrupt with entry and exit is its time.
    assert_eq!(causes.senders.iter().map(|of| of.ns_total).sum::<u64>(), 1_400);
    assert_eq!(causes.senders.iter().map(|of| of.ns_max).max(), Some(700));
}

#[test]
fn one_interrupt_may_bring_functions_of_two() {
    let mut host = Host::new();
    // The second finds the queue in use and sends no interrupt.
    host.request(0, 100, MD, 0x70, FLUSH).send(1, 150, TD, queue(HERE, 0x80, FLUSH));
    let causes = host.interruptions(&arrival(1_000, &[(0x70, FLUSH), (0x80, FLUSH)]), &[(900, 1_900)]);
    assert_eq!(host.who(&causes), "md (pid 812) 1, td of engine (pid 813) 1");
    // The interrupt itself is the first's.
    let of = |who: &str| {
        let (senders, _) = host.senders(&names());
        let place = senders.iter().position(|sender| sender.name == who);
        causes.senders.iter().find(|of| of.sender == place).map(|of| of.ns_total)
    };
    assert_eq!((of("md"), of("td")), (Some(800), Some(200)));
}

#[test]
fn two_reschedules_at_a_time_have_no_known_sender() {
    let mut host = Host::new();
    host.send(0, 100, MD, reschedule(HERE)).send(1, 120, TD, reschedule(HERE));
    host.send(0, 2_000, MD, reschedule(HERE));
    host.send(0, 500_000, MD, reschedule(HERE));
    let steps = [rescheduled(1_000), rescheduled(2_500), rescheduled(501_000)].concat();
    let causes = host.interruptions(&steps, &[(900, 1_200), (2_400, 2_700), (500_900, 501_200)]);
    // The second may be the first's other half, which came late.
    assert_eq!(host.who(&causes), "? 2, md (pid 812) 1");
}

#[test]
fn one_that_was_delivered_once_was_sent_by_its_only_sender() {
    let mut host = Host::new();
    host.send(0, 100, MD, reschedule(HERE)).send(0, 300, MD, reschedule(HERE));
    let causes = host.interruptions(&rescheduled(1_000), &[(900, 1_200)]);
    assert_eq!(host.who(&causes), "md (pid 812) 1");
}

#[test]
fn what_nothing_sent_has_no_sender() {
    let mut host = Host::new();
    // Another request, another function, sent too late, to another CPU, too long ago.
    host.request(0, 100, MD, 0x70, WAKE).request(0, 5_000, MD, 0x80, FLUSH);
    host.send(0, 200, MD, queue(HERE + 1, 0x90, FLUSH)).send(0, 210, MD, call(HERE + 1));
    let late = 200_000_000;
    let steps = [
        arrival(1_000, &[(0x70, FLUSH)]),
        arrival(4_000, &[(0x80, FLUSH)]),
        rescheduled(10_000),
        arrival(late, &[(0x80, FLUSH)]),
    ]
    .concat();
    let spans = [(900, 1_600), (3_900, 4_600), (9_900, 10_300), (late - 100, late + 500)];
    let causes = host.interruptions(&steps, &spans);
    // The first interrupt itself is known: only one was under way.
    assert_eq!(host.who(&causes), "? 4, md (pid 812) 1");
}

#[test]
fn a_gap_in_a_senders_trace_leaves_interrupts_unknown_but_not_functions() {
    let mut host = Host::new();
    host.request(0, 100, MD, 0x70, FLUSH);
    host.send(1, 150, TD, SendStep::Lost { since: EPOCH });
    let causes = host.interruptions(
        &[arrival(1_000, &[(0x70, FLUSH)]), rescheduled(3_000)].concat(),
        &[(900, 1_600), (2_900, 3_200)],
    );
    assert_eq!(host.who(&causes), "? 1, md (pid 812) 1");
}

#[test]
fn lost_arrivals_are_not_waited_for() {
    let mut host = Host::new();
    host.send(0, 100, MD, reschedule(HERE)).request(0, 200, MD, 0x70, FLUSH);
    let steps =
        [vec![(1_000, TraceStep::Lost(3))], rescheduled(2_000), arrival(3_000, &[(0x70, FLUSH)])].concat();
    let causes = host.interruptions(&steps, &[(1_900, 2_200), (2_900, 3_600)]);
    assert_eq!(host.who(&causes), "? 2");
}

#[test]
fn an_interrupts_sender_is_not_the_thread_below() {
    let mut host = Host::new();
    host.send(0, 100, MD, queue(HERE, 0x70, FLUSH));
    host.send_at(0, 105, MD, Level::Interrupt, queue(HERE, 0x80, WAKE));
    host.send_at(0, 106, MD, Level::Interrupt, call(HERE));
    host.send(0, 110, MD, call(HERE));
    let causes = host.interruptions(&arrival(1_000, &[(0x80, WAKE), (0x70, FLUSH)]), &[(900, 1_900)]);
    // Both sent an interrupt, so this one's sender is unknown; the functions are known.
    assert_eq!(host.who(&causes), "? 1, interrupt on CPU 0 1, md (pid 812) 1");
}

#[test]
fn an_ended_thread_keeps_its_last_name_and_its_number_may_be_anothers() {
    const SHORT: i32 = 900;
    let mut host = Host::new();
    host.request(0, 100, SHORT, 0x70, FLUSH);
    host.send(1, 400, SHORT, SendStep::Ends(b"sh"));
    host.request(0, 5_000, SHORT, 0x70, FLUSH);
    host.send(1, 5_400, SHORT, SendStep::Ends(b"cron"));
    let steps = [arrival(1_000, &[(0x70, FLUSH)]), arrival(6_000, &[(0x70, FLUSH)])].concat();
    let causes = host.interruptions(&steps, &[(900, 1_600), (5_900, 6_600)]);
    assert_eq!(host.who(&causes), "cron (pid 900) 1, sh (pid 900) 1");
}

#[test]
fn memory_stays_as_it_is_however_much_is_sent() {
    let mut host = Host::new();
    for round in 0..50_u64 {
        for n in 0..2 * NOTES_MAX as u64 {
            let at = round * 10_000_000 + n * 100;
            let thread = MD + i32::try_from(n % 700).unwrap();
            host.request(0, at, thread, n, FLUSH).send(1, at + 20, TD, reschedule(HERE));
        }
        host.attributor.settle_notes();
    }
    assert!(host.book.full_count() > 0);
    assert!(host.senders(&names()).0.len() <= crate::attribution::SENDERS_MAX);
    let causes = host.interruptions(&rescheduled(499_999_999), &[(499_999_000, 500_000_999)]);
    assert_eq!(host.who(&causes), "? 1", "most were dropped, so nobody can know");
}
