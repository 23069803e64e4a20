//! Events that wait for their interruption.

use lowlat_trace::{TraceEvent, TraceStep};
use std::collections::VecDeque;

/// Minimum capacity of a queue, whatever the plan says.
const EVENTS_MIN: usize = 16;

/// A bounded queue. If it is full the oldest event is dropped, and a [`TraceStep::Lost`] in front of the remaining
/// ones marks the loss.
///
/// All its memory is reserved at the start and none is freed during a run: returning memory to the kernel
/// interrupts every CPU on which a thread of the process runs.
#[derive(Debug)]
pub(super) struct Queue {
    /// The waiting events, oldest first.
    pub(super) events: VecDeque<TraceEvent>,
    events_max: usize,
    pub(super) lost_count: u64,
}

impl Queue {
    pub(super) fn new(events_max: usize) -> Self {
        let events_max = events_max.max(EVENTS_MIN);
        Self { events: VecDeque::with_capacity(events_max), events_max, lost_count: 0 }
    }

    pub(super) fn push(&mut self, event: TraceEvent) {
        if self.events.len() >= self.events_max {
            self.drop_oldest();
        }
        self.events.push_back(event);
    }

    /// Makes space: the first event becomes the mark of the loss, so that each further loss costs one event.
    fn drop_oldest(&mut self) {
        let missing = |step: TraceStep| match step {
            TraceStep::Lost(count) => count,
            _ => 1,
        };
        let Some(oldest) = self.events.pop_front() else { return };
        let Some(mark) = self.events.front_mut() else { return };
        let count = missing(oldest.step).saturating_add(missing(mark.step));
        for dropped in [oldest.step, mark.step] {
            self.lost_count += u64::from(!matches!(dropped, TraceStep::Lost(_)));
        }
        mark.step = TraceStep::Lost(count);
    }

    pub(super) fn pop(&mut self) -> Option<TraceEvent> {
        let event = self.events.pop_front();
        if self.events.is_empty() {
            // Starts at the beginning of its memory again, so that only what is really needed is ever
            // touched.
            self.events.clear();
        }
        event
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowlat_trace::Activity;

    #[test]
    fn a_full_queue_says_what_it_lost() {
        let mut queue = Queue::new(0);
        let capacity = queue.events.capacity();
        for ticks in 0..100 {
            queue.push(TraceEvent { ticks, step: TraceStep::Enter(Activity::Nmi) });
        }
        assert_eq!((queue.events.len(), queue.events.capacity(), queue.lost_count), (16, capacity, 85));
        assert_eq!(queue.pop(), Some(TraceEvent { ticks: 84, step: TraceStep::Lost(85) }));
        assert_eq!(queue.pop(), Some(TraceEvent { ticks: 85, step: TraceStep::Enter(Activity::Nmi) }));
    }
}
