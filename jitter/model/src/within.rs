//! Causes in a part of a longer interruption, by its timeline.

use super::{Cause, CauseKind, CausePart, Explained, TimelineChange};
use std::cmp::Reverse;

impl Explained {
    /// The causes between two moments, in nanoseconds since its start, longest first. At each moment the innermost
    /// activity counts; time in which the measured thread itself ran has no cause. Where the timeline was cut, the rest
    /// counts as not traced.
    pub fn within(&self, from_ns: u64, to_ns: u64) -> Vec<CausePart> {
        let mut found = Found { window: (from_ns, to_ns), parts: Vec::new() };
        let mut stack: Vec<&Cause> = Vec::new();
        let mut cursor = 0;
        for step in &self.timeline {
            let at = u64::try_from(step.offset_ns).unwrap_or(0).max(cursor);
            found.add(stack.last().copied(), cursor, at);
            cursor = at;
            let depth = usize::from(step.depth);
            match step.change {
                TimelineChange::Begins => {
                    stack.truncate(depth);
                    stack.push(&step.cause);
                }
                TimelineChange::Ends => stack.truncate(depth),
                TimelineChange::Returns | TimelineChange::Lost => stack.clear(),
                TimelineChange::Happens => {}
            }
        }
        let rest = Cause::of(CauseKind::NotTraced);
        let is_cut = self.timeline_cut_count > 0;
        found.add(
            if is_cut { Some(&rest) } else { stack.last().copied() },
            cursor,
            self.interruption.length_ns,
        );
        found.parts.sort_by_key(|part| Reverse(part.ns));
        found.parts
    }
}

/// The causes within a window.
struct Found {
    window: (u64, u64),
    parts: Vec<CausePart>,
}

impl Found {
    fn add(&mut self, cause: Option<&Cause>, from: u64, to: u64) {
        let ns = to.min(self.window.1).saturating_sub(from.max(self.window.0));
        let Some(cause) = cause.filter(|_| ns > 0) else { return };
        match self.parts.iter_mut().find(|part| part.cause == *cause) {
            Some(part) => part.ns += ns,
            None => self.parts.push(CausePart { cause: cause.clone(), ns }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Interruption, TimelineStep};

    fn explained(steps: &[(i64, u8, TimelineChange, &str)]) -> Explained {
        let step = |&(offset_ns, depth, change, name): &(i64, u8, TimelineChange, &str)| TimelineStep {
            offset_ns,
            depth,
            change,
            cause: Cause { name: name.to_owned(), ..Cause::of(CauseKind::Thread) },
            sender: None,
        };
        Explained {
            interruption: Interruption { at_ns: 0, length_ns: 1_000 },
            timeline: steps.iter().map(step).collect(),
            ..Explained::default()
        }
    }

    fn names(explained: &Explained, from: u64, to: u64) -> Vec<(String, u64)> {
        let parts = explained.within(from, to);
        parts.into_iter().map(|part| (part.cause.name, part.ns)).collect()
    }

    #[test]
    fn the_innermost_activity_counts_within_the_window() {
        use TimelineChange::{Begins, Ends, Returns};
        let of = explained(&[
            (-5, 0, Begins, "idle"),
            (300, 1, Begins, "timer"),
            (350, 1, Ends, "timer"),
            (600, 0, Returns, ""),
        ]);
        let named =
            |pairs: &[(&str, u64)]| pairs.iter().map(|(n, ns)| ((*n).to_owned(), *ns)).collect::<Vec<_>>();
        assert_eq!(names(&of, 0, 1_000), named(&[("idle", 550), ("timer", 50)]));
        assert_eq!(names(&of, 320, 400), named(&[("idle", 50), ("timer", 30)]));
        assert_eq!(names(&of, 600, 1_000), []);
        assert_eq!(names(&of, 400, 400), []);
    }

    #[test]
    fn what_never_ended_lasts_and_what_was_cut_is_not_traced() {
        let mut of = explained(&[(900, 0, TimelineChange::Begins, "x")]);
        assert_eq!(names(&of, 0, 2_000), [("x".to_owned(), 100)]);
        of.timeline_cut_count = 1;
        assert_eq!(of.within(0, 2_000)[0].cause.kind, CauseKind::NotTraced);
    }
}
