//! Origin of the interruption that ended a run, and the trace around it.

use super::TraceReader;
use crate::jitter::observe::senders::{SenderReader, Waker};
use crate::tracefs::{CpuPipe, trace_file};
use lowlat_host::{CpuId, Reading};
use lowlat_jitter::{
    CauseKind, CpuCauses, GroupMember, Sender, Stop, TimelineChange, TimelineStep,
    attribution::{CauseKey, Hit},
};
use lowlat_trace::{Activity, TraceNames};
use std::fmt::Write as _;

impl TraceReader {
    /// Keeps what is around this moment, for [`TraceReader::file`] and the search for an origin.
    pub fn end_keeping(&mut self) {
        let senders = self.senders.iter_mut().flat_map(|of| &mut of.senders).map(|(pipe, _)| pipe);
        self.pipes.iter_mut().chain(senders).for_each(CpuPipe::end_keeping);
    }

    /// The trace as a trace.dat.
    pub(super) fn file(&self, names: &TraceNames) -> Vec<u8> {
        let senders = self.senders.as_ref();
        let mut file = trace_file(&self.tracing, senders.map(|of| &of.tracing), self.scale.hz());
        let mut threads = senders.map(SenderReader::threads).unwrap_or_default();
        threads.extend(names.threads.iter().map(|(thread, name)| (*thread, name.comm.clone())));
        for (thread, name) in threads {
            let _ = writeln!(file.threads, "{thread} {name}");
        }
        let pages = |pipe: &CpuPipe| (pipe.cpu(), pipe.kept());
        file.pages = self.pipes.iter().map(pages).collect();
        file.senders = senders.iter().flat_map(|of| &of.senders).map(|(pipe, _)| pages(pipe)).collect();
        file.to_bytes()
    }
}

/// The steps of the interruption that ended the run; empty if they were not kept.
pub fn steps_of(cpus: &[CpuCauses], member: Option<&GroupMember>) -> Vec<TimelineStep> {
    let of = |member: &GroupMember| {
        let mut kept =
            cpus.iter().filter(|of| of.cpu == member.cpu).flat_map(|of| of.worst.iter().chain(&of.first));
        kept.find(|of| of.interruption == member.interruption).map(|of| of.timeline.clone())
    };
    member.and_then(of).unwrap_or_default()
}

/// The thread that took the CPU, or that ran the function that took it.
pub fn thread_of(hit: &Hit, steps: &[TimelineStep]) -> Option<i32> {
    let mut threads = steps.iter().filter(|step| step.cause.kind == CauseKind::Thread);
    let thread = match hit.key {
        CauseKey::Activity(Activity::Thread(thread)) => thread,
        CauseKey::Activity(Activity::Work(_)) => {
            threads.find_map(|step| step.cause.number)?.try_into().ok()?
        }
        _ => return None,
    };
    (thread > 0).then_some(thread)
}

/// The origin of an interruption with these steps, on this CPU: the waker of its thread, otherwise another CPU that
/// interrupted it. `symbols`: whether functions have names.
pub fn settle(
    stop: &mut Stop,
    (cpu, steps): (CpuId, &[TimelineStep]),
    woken: Option<Waker>,
    (senders, symbols): (&[Sender], Reading<()>),
) {
    let sent =
        |step: &TimelineStep| Some((step.offset_ns, senders.get(step.sender?)?.clone(), symbols.clone()));
    let Some((offset_ns, mut sender, symbols)) = woken.or_else(|| steps.iter().find_map(sent)) else {
        stop.origin_reason =
            "no wake-up of a thread and no interrupt from another CPU is in the trace".into();
        return;
    };
    stop.origin_offset_ns = Some(offset_ns);
    let why = match &symbols {
        _ if sender.path.is_empty() && sender.cpus.contains(cpu) => {
            sender.path = running_at(steps, offset_ns);
            "no stack is recorded where a thread is woken on its own CPU"
        }
        Reading::Denied => "the kernel hides the addresses of its functions (kernel.kptr_restrict)",
        Reading::Unparsable(_) => "/proc/kallsyms cannot be read",
        Reading::Known(()) | Reading::Absent => "the trace has no stack",
    };
    if sender.path.is_empty() {
        stop.origin_reason = format!("{why}; it came from {}", sender.who());
        stop.origin = symbols.and_then(|()| Reading::Absent);
    } else {
        stop.origin = Reading::Known(sender);
    }
}

/// The names of the functions and threads that ran at a moment, innermost first.
fn running_at(steps: &[TimelineStep], offset_ns: i64) -> Vec<String> {
    let mut running = Vec::new();
    for step in steps.iter().take_while(|step| step.offset_ns <= offset_ns) {
        running.truncate(step.depth.into());
        running.extend((step.change == TimelineChange::Begins).then(|| step.cause.label()));
    }
    running.reverse();
    running
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowlat_host::CpuSet;
    use lowlat_jitter::Cause;

    fn sender(cpu: CpuId, path: &[&str]) -> Sender {
        let path = path.iter().map(|name| (*name).to_owned()).collect();
        Sender { thread: Some(7), name: "md".into(), cpus: CpuSet::of(cpu), path, ..Sender::default() }
    }

    fn step(offset_ns: i64, depth: u8, change: TimelineChange, name: &str) -> TimelineStep {
        let cause = Cause { name: name.into(), ..Cause::of(CauseKind::Vector) };
        TimelineStep { offset_ns, depth, change, cause, sender: None }
    }

    /// The origin, its time and why it is not known.
    fn settled(
        steps: &[TimelineStep],
        woken: Option<Waker>,
        symbols: Reading<()>,
    ) -> (Reading<Vec<String>>, String) {
        let mut stop = Stop::default();
        let senders = [sender(0, &["smp_call_function"]), sender(0, &[])];
        settle(&mut stop, (1, steps), woken, (&senders, symbols));
        (stop.origin.map(|sender| sender.path), stop.origin_reason)
    }

    #[test]
    fn what_is_not_known_of_an_origin_has_its_reason() {
        let known = || Reading::Known(());
        let woken = |cpu, path: &[&str], symbols| Some((-5, sender(cpu, path), symbols));
        let (origin, reason) = settled(&[], woken(0, &["try_to_wake_up"], known()), known());
        assert_eq!((origin, reason.as_str()), (Reading::Known(vec!["try_to_wake_up".into()]), ""));
        let (origin, reason) = settled(&[], None, known());
        assert_eq!(origin, Reading::Absent);
        assert!(reason.starts_with("no wake-up"), "{reason}");
        let (origin, reason) = settled(&[], woken(0, &[], known()), known());
        assert_eq!(
            (origin, reason.as_str()),
            (Reading::Absent, "the trace has no stack; it came from md (pid 7)")
        );
        let (origin, reason) = settled(&[], woken(0, &[], Reading::Denied), known());
        assert!(origin == Reading::Denied && reason.contains("kernel.kptr_restrict"), "{reason}");
        let garbage = Reading::unparsable("/proc/kallsyms", "x", "functions");
        let (origin, reason) = settled(&[], woken(0, &[], garbage), known());
        assert!(matches!(origin, Reading::Unparsable(_)) && reason.contains("/proc/kallsyms"), "{reason}");
    }

    #[test]
    fn an_interrupt_from_another_cpu_is_an_origin() {
        let sent = |place| {
            [TimelineStep { sender: Some(place), ..step(0, 0, TimelineChange::Begins, "reschedule") }]
        };
        let (origin, _) = settled(&sent(0), None, Reading::Known(()));
        assert_eq!(origin, Reading::Known(vec!["smp_call_function".into()]));
        assert_eq!(settled(&sent(1), None, Reading::Denied).0, Reading::Denied);
        assert_eq!(settled(&sent(9), None, Reading::Denied).0, Reading::Absent);
    }

    #[test]
    fn what_ran_on_the_cpu_itself_stands_for_a_stack() {
        use TimelineChange::{Begins, Ends};
        let steps = [
            step(10, 0, Begins, "reschedule"),
            step(20, 0, Ends, "reschedule"),
            step(30, 0, Begins, "local timer"),
            step(40, 1, Begins, "irq work"),
            step(60, 1, Ends, "irq work"),
            step(70, 0, Ends, "local timer"),
        ];
        let at = |offset_ns| {
            settled(&steps, Some((offset_ns, sender(1, &[]), Reading::Known(()))), Reading::Known(()))
        };
        assert_eq!(at(50).0, Reading::Known(vec!["irq work".into(), "local timer".into()]));
        assert_eq!(at(65).0, Reading::Known(vec!["local timer".into()]));
        let (origin, reason) = at(25);
        assert!(origin == Reading::Absent && reason.contains("on its own CPU"), "{reason}");
    }
}
