//! The timeline of an interruption as spans: what ran, from when to when, how deep.

use lowlat_model::jitter::{Cause, Change, Explained};

/// What a span is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanKind {
    /// It ran.
    Ran,
    /// It happened; how long it took is not told.
    Point,
    /// The measured thread has the CPU back.
    Return,
    /// Events are missing before this moment.
    Lost,
}

/// One thing that ran or happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span<'a> {
    /// What it is.
    pub kind: SpanKind,
    /// To which activity.
    pub cause: &'a Cause,
    /// When it began, since the interruption began; negative when clocks differ by a little.
    pub offset_ns: i64,
    /// How long it took, what ran inside of it counted; 0 for what only happens.
    pub took_ns: u64,
    /// The same without what ran inside of it.
    pub own_ns: u64,
    /// How many activities it ran on top of.
    pub depth: usize,
    /// Whether its end was not seen, so that it is taken to last until the end.
    pub is_open: bool,
}

/// The spans of a timeline, by when they began.
pub fn spans(explained: &Explained) -> Vec<Span<'_>> {
    let length = i64::try_from(explained.interruption.length_ns).unwrap_or(i64::MAX);
    let mut spans: Vec<Span<'_>> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    for step in &explained.timeline {
        let kind = match step.change {
            Change::Begins => SpanKind::Ran,
            Change::Happens => SpanKind::Point,
            Change::Returns => SpanKind::Return,
            Change::Lost => SpanKind::Lost,
            Change::Ends => {
                close(&mut spans, &mut open, &step.cause, step.offset_ns);
                continue;
            }
        };
        if kind == SpanKind::Ran {
            open.push(spans.len());
        }
        spans.push(Span {
            kind,
            cause: &step.cause,
            offset_ns: step.offset_ns,
            took_ns: 0,
            own_ns: 0,
            depth: usize::from(step.depth),
            is_open: kind == SpanKind::Ran,
        });
    }
    for at in open {
        if let Some(span) = spans.get_mut(at) {
            span.took_ns = between(span.offset_ns, length);
        }
    }
    set_own(&mut spans);
    spans
}

/// Ends the innermost open activity of that cause, and what is still open inside of it. An end without a beginning
/// says nothing that could be shown.
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

/// Takes from each span what ran directly inside of it.
fn set_own(spans: &mut [Span<'_>]) {
    let mut path: Vec<usize> = Vec::new();
    for at in 0..spans.len() {
        let Some(span) = spans.get(at).copied() else { break };
        if span.kind != SpanKind::Ran {
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
    use lowlat_model::jitter::{CauseKind, Interruption, TimelineStep};

    fn step(offset_ns: i64, depth: u8, change: Change, kind: CauseKind) -> TimelineStep {
        TimelineStep { offset_ns, depth, change, cause: Cause::of(kind) }
    }

    fn explained(timeline: Vec<TimelineStep>) -> Explained {
        Explained {
            interruption: Interruption { at_ns: 0, length_ns: 1_000 },
            timeline,
            ..Explained::default()
        }
    }

    #[test]
    fn nested_activities_know_their_own_time() {
        use CauseKind::{Hrtimer, PageFault, Softirq, Vector};
        let of = explained(vec![
            step(-4, 0, Change::Begins, Vector),
            step(100, 1, Change::Begins, Hrtimer),
            step(300, 1, Change::Ends, Hrtimer),
            step(500, 0, Change::Ends, Vector),
            step(510, 0, Change::Begins, Softirq),
            step(600, 1, Change::Happens, PageFault),
        ]);
        let short: Vec<_> =
            spans(&of).iter().map(|span| (span.offset_ns, span.took_ns, span.own_ns, span.is_open)).collect();
        assert_eq!(
            short,
            [(-4, 504, 304, false), (100, 200, 200, false), (510, 490, 490, true), (600, 0, 0, false)]
        );
    }

    #[test]
    fn ends_without_a_beginning_and_hostile_offsets_do_no_harm() {
        use CauseKind::{Irq, Work};
        let of = explained(vec![
            step(i64::MIN, 255, Change::Ends, Work),
            step(i64::MIN, 255, Change::Begins, Irq),
            step(i64::MAX, 0, Change::Begins, Work),
            step(i64::MIN, 0, Change::Ends, Irq),
        ]);
        assert_eq!(spans(&of).len(), 2);
        assert!(spans(&of).iter().all(|span| span.own_ns <= span.took_ns));
    }
}
