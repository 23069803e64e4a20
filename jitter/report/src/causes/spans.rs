//! Timeline of an interruption as spans: activities with start, end and nesting depth.

use lowlat_jitter::{Cause, Explained, TimelineChange};

/// An activity or event during an interruption.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span<'a> {
    /// What it is: an activity, from where it begins; an event whose length is unknown; the return to the measured
    /// thread; or a gap, before which events are missing.
    pub kind: TimelineChange,
    /// Activity or event to which it belongs.
    pub cause: &'a Cause,
    /// Sender on another CPU: an index into the record's list of senders.
    pub sender: Option<usize>,
    /// Start, relative to the start of the interruption; slightly negative if clocks differ.
    pub offset_ns: i64,
    /// Length including nested activities; 0 for events.
    pub took_ns: u64,
    /// Length without its nested activities.
    pub own_ns: u64,
    /// Number of activities around it.
    pub depth: usize,
    /// True if its end is missing from the steps. It then lasts until the end of the interruption or, if steps were
    /// left out, at least until the last of them.
    pub is_open: bool,
}

/// Returns the spans of a timeline, ordered by start.
pub fn spans(explained: &Explained) -> Vec<Span<'_>> {
    let length = i64::try_from(explained.interruption.length_ns).unwrap_or(i64::MAX);
    let mut spans: Vec<Span<'_>> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    for step in &explained.timeline {
        let has_begun = step.change == TimelineChange::Begins;
        if step.change == TimelineChange::Ends {
            close(&mut spans, &mut open, &step.cause, step.offset_ns);
            continue;
        }
        if has_begun {
            open.push(spans.len());
        }
        spans.push(Span {
            kind: step.change,
            cause: &step.cause,
            sender: step.sender,
            offset_ns: step.offset_ns,
            took_ns: 0,
            own_ns: 0,
            depth: usize::from(step.depth),
            is_open: has_begun,
        });
    }
    let last = explained.timeline.last().map_or(length, |step| step.offset_ns);
    let end = if explained.timeline_cut_count > 0 { last } else { length };
    for at in open {
        if let Some(span) = spans.get_mut(at) {
            span.took_ns = between(span.offset_ns, end);
        }
    }
    set_own(&mut spans);
    spans
}

/// Ends the innermost open activity of this cause, and everything still open inside it. An end without a start is
/// ignored.
fn close(spans: &mut [Span<'_>], open: &mut Vec<usize>, cause: &Cause, end_ns: i64) {
    let is_it = |at: &usize| spans.get(*at).is_some_and(|span| span.cause == cause);
    let Some(place) = open.iter().rposition(is_it) else { return };
    for at in open.drain(place..) {
        if let Some(span) = spans.get_mut(at) {
            span.took_ns = between(span.offset_ns, end_ns);
            span.is_open = false;
        }
    }
}

/// Subtracts directly nested spans from each span.
fn set_own(spans: &mut [Span<'_>]) {
    let mut path: Vec<usize> = Vec::new();
    for at in 0..spans.len() {
        let Some(span) = spans.get(at).copied() else { break };
        if span.kind != TimelineChange::Begins {
            continue;
        }
        path.retain(|outer| {
            spans.get(*outer).is_some_and(|outer| end(outer) > span.offset_ns && outer.depth < span.depth)
        });
        if let Some(outer) = path.last().and_then(|outer| spans.get_mut(*outer)) {
            outer.own_ns = outer.own_ns.saturating_sub(span.took_ns);
        }
        if let Some(span) = spans.get_mut(at) {
            span.own_ns = span.took_ns;
        }
        path.push(at);
    }
}

fn end(span: &Span<'_>) -> i64 {
    span.offset_ns.saturating_add(i64::try_from(span.took_ns).unwrap_or(i64::MAX))
}

fn between(start_ns: i64, end_ns: i64) -> u64 {
    u64::try_from(end_ns.saturating_sub(start_ns)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowlat_jitter::{CauseKind, Interruption, TimelineStep};

    fn step(offset_ns: i64, depth: u8, change: TimelineChange, kind: CauseKind) -> TimelineStep {
        TimelineStep { offset_ns, depth, change, cause: Cause::of(kind), sender: None }
    }

    fn explained(timeline: Vec<TimelineStep>) -> Explained {
        Explained {
            interruption: Interruption { at_ns: 0, length_ns: 1_000 },
            timeline,
            ..Explained::default()
        }
    }

    #[test]
    fn nested_activities_have_their_own_time() {
        use CauseKind::{Hrtimer, PageFault, Softirq, Vector};
        let of = explained(vec![
            step(-4, 0, TimelineChange::Begins, Vector),
            step(100, 1, TimelineChange::Begins, Hrtimer),
            step(300, 1, TimelineChange::Ends, Hrtimer),
            step(500, 0, TimelineChange::Ends, Vector),
            step(510, 0, TimelineChange::Begins, Softirq),
            step(600, 1, TimelineChange::Happens, PageFault),
        ]);
        let short: Vec<_> =
            spans(&of).iter().map(|span| (span.offset_ns, span.took_ns, span.own_ns, span.is_open)).collect();
        assert_eq!(
            short,
            [(-4, 504, 304, false), (100, 200, 200, false), (510, 490, 490, true), (600, 0, 0, false)]
        );
    }

    #[test]
    fn omitted_steps_make_no_step_longer() {
        let of = Explained {
            timeline_cut_count: 3,
            ..explained(vec![
                step(0, 0, TimelineChange::Begins, CauseKind::Thread),
                step(300, 1, TimelineChange::Happens, CauseKind::PageFault),
            ])
        };
        assert_eq!((spans(&of)[0].took_ns, spans(&of)[0].is_open), (300, true));
    }

    #[test]
    fn ends_without_a_start_and_hostile_offsets_are_harmless() {
        use CauseKind::{Irq, Work};
        let of = explained(vec![
            step(i64::MIN, 255, TimelineChange::Ends, Work),
            step(i64::MIN, 255, TimelineChange::Begins, Irq),
            step(i64::MAX, 0, TimelineChange::Begins, Work),
            step(i64::MIN, 0, TimelineChange::Ends, Irq),
        ]);
        assert_eq!(spans(&of).len(), 2);
        assert!(spans(&of).iter().all(|span| span.own_ns <= span.took_ns));
    }
}
