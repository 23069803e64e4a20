//! Many strategies in one process on one core: pending items are queued per strategy, and strategies are served
//! in turn, one item each. One wake serves all of them, and a strategy with many pending items delays the
//! others by one call at a time.
//!
//! A call cannot be interrupted. It is timed instead: a strategy that exceeds its budget too often is moved out
//! to a separate process, where it only delays itself.

mod member;
#[cfg(test)]
mod tests;

use lowlat_node::{
    Refusal,
    strategy::{AnswerSeen, Item, OrderSink, QuoteSeen, Strategy, StrategyGap},
};
use member::HostedStrategy;
use std::{collections::VecDeque, hint::black_box};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StrategyBudget {
    /// Longest duration of one call, ns.
    pub call_ns_max: u64,
    /// This many calls over budget within [`StrategyBudget::window_calls`], and the strategy is moved out.
    pub overruns_max: u32,
    /// Calls after which the count of overruns restarts. A virtual CPU that is preempted makes any strategy
    /// overrun.
    pub window_calls: u32,
    /// Maximum queued records per strategy; further ones are lost, and it is notified.
    pub queue_max: usize,
}

impl Default for StrategyBudget {
    fn default() -> Self {
        Self { call_ns_max: 50_000, overruns_max: 20, window_calls: 1000, queue_max: 256 }
    }
}

/// Resource use of a strategy in a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    pub calls: u64,
    pub sum_ns: u64,
    pub max_ns: u64,
    /// Calls over budget.
    pub overruns: u64,
    /// Records lost because its queue was full, or because it was moved out.
    pub dropped: u64,
    /// It was moved out of the host.
    pub is_moved_out: bool,
}

/// Calls its argument once with the order sink of a strategy.
pub type SinkOf<'a> = dyn FnMut(u32, &mut dyn FnMut(&mut dyn OrderSink)) + 'a;

pub struct StrategyHost {
    members: Vec<HostedStrategy>,
    /// Indexes of members by instrument.
    by_instrument: Vec<Vec<usize>>,
    /// Indexes of members by strategy number.
    by_number: Vec<Option<usize>>,
    /// Members with pending items, each once, in serving order.
    ready: VecDeque<usize>,
    /// Indexes of the member and instrument to warm next.
    warmed: [usize; 2],
    budget: StrategyBudget,
    /// No timer of a member is due earlier, ns.
    timer_ns: u64,
}

impl StrategyHost {
    pub fn new(budget: StrategyBudget) -> Self {
        Self {
            members: Vec::new(),
            by_instrument: Vec::new(),
            by_number: Vec::new(),
            ready: VecDeque::new(),
            warmed: [0; 2],
            budget,
            timer_ns: u64::MAX,
        }
    }

    /// Adds a strategy. To be called first: it allocates everything that is needed later.
    pub fn add(
        &mut self,
        number: u32,
        instruments: &[u32],
        strategy: Box<dyn Strategy>,
    ) -> Result<(), Refusal> {
        if self.place(number).is_some() {
            return Err(Refusal::new(format!(
                "strategy number {number} is already in the host\nhint: give each strategy a different number"
            )));
        }
        let place = self.members.len();
        *made(&mut self.by_number, number) = Some(place);
        for instrument in instruments {
            let members = made(&mut self.by_instrument, *instrument);
            if !members.contains(&place) {
                members.push(place);
            }
        }
        self.members.push(HostedStrategy::new(number, strategy, self.budget.queue_max));
        self.ready.reserve(self.members.len());
        Ok(())
    }

    /// Numbers of its strategies that are not moved out.
    pub fn numbers(&self) -> impl Iterator<Item = u32> {
        self.members.iter().filter(|member| !member.usage.is_moved_out).map(|member| member.number)
    }

    /// Resource use of a strategy; `None` if the number is unknown.
    pub fn usage(&self, number: u32) -> Option<Usage> {
        self.members.get(self.place(number)?).map(|member| member.usage)
    }

    /// Queues a quote for all strategies that want its instrument.
    ///
    /// Not inlined, like [`StrategyHost::serve`], so that a rehearsal uses the same code as a quote.
    #[inline(never)]
    pub fn take_quote(&mut self, seen: &QuoteSeen) {
        let Some(wanted) = self.by_instrument.get(index(seen.instrument)) else { return };
        for place in wanted {
            queue(&mut self.members, &mut self.ready, *place, Item::Quote(*seen));
        }
    }

    /// Queues an answer for a strategy.
    #[inline]
    pub fn take_answer(&mut self, strategy: u32, seen: &AnswerSeen) {
        if let Some(place) = self.place(strategy) {
            queue(&mut self.members, &mut self.ready, place, Item::Answer(*seen));
        }
    }

    /// This process lost records: notifies all affected strategies, since it is unknown whose they were.
    pub fn take_gap(&mut self, gap: StrategyGap) {
        for place in 0..self.members.len() {
            queue(&mut self.members, &mut self.ready, place, Item::Gap(gap));
        }
    }

    /// The time at which [`StrategyHost::take_timers`] should be called next, ns; `u64::MAX` without timers.
    pub fn timer_ns(&self) -> u64 {
        self.timer_ns
    }

    /// Queues the timers that are due.
    pub fn take_timers(&mut self, now_ns: u64) {
        self.timer_ns = u64::MAX;
        for place in 0..self.members.len() {
            let due_ns = self.members[place].timer_ns;
            if due_ns <= now_ns {
                self.members[place].timer_ns = u64::MAX;
                queue(&mut self.members, &mut self.ready, place, Item::Timer(due_ns));
            }
            self.timer_ns = self.timer_ns.min(self.members[place].timer_ns);
        }
    }

    /// True if any strategy has pending items.
    #[inline]
    pub fn is_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Serves the next strategy with one item; returns false if none is pending. `now_ns` is called before and
    /// after. A strategy over its budget too often is not called any more, and `move_out` gets its number.
    #[inline(never)]
    pub fn serve(
        &mut self,
        sink_of: &mut SinkOf<'_>,
        now_ns: &mut dyn FnMut() -> u64,
        move_out: &mut dyn FnMut(u32),
    ) -> bool {
        let Some(place) = self.ready.pop_front() else { return false };
        let Some(member) = self.members.get_mut(place) else { return true };
        let Some(item) = member.next() else { return true };
        let before_ns = now_ns();
        let mut timer_ns = None;
        sink_of(member.number, &mut |sink| {
            timer_ns = item.tell(&mut *member.strategy, member.number, sink, || before_ns);
        });
        if let Some(at_ns) = timer_ns {
            member.timer_ns = at_ns;
            self.timer_ns = self.timer_ns.min(at_ns);
        }
        let took_ns = now_ns().saturating_sub(before_ns);
        if member.used(took_ns, &self.budget) {
            for members in &mut self.by_instrument {
                members.retain(|other| *other != place);
            }
            move_out(member.number);
        } else if member.has_more() {
            self.ready.push_back(place);
        }
        true
    }

    /// Touches what the next call of one strategy needs, while the process is idle: each call covers the next
    /// strategy, whose number is returned. `None` without strategies.
    pub fn warm(&mut self) -> Option<u32> {
        let [place, instrument] = self.warmed;
        let next = |at: usize, count: usize| if at + 1 < count { at + 1 } else { 0 };
        self.warmed = [next(place, self.members.len()), next(instrument, self.by_instrument.len())];
        black_box(self.by_instrument.get(instrument).and_then(|members| members.first()));
        let member = self.members.get_mut(place)?;
        member.warm();
        Some(member.number)
    }

    fn place(&self, number: u32) -> Option<usize> {
        self.by_number.get(index(number)).copied().flatten()
    }
}

pub(crate) fn index(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// The place of a number, made if it is missing.
pub(crate) fn made<T: Default>(places: &mut Vec<T>, number: u32) -> &mut T {
    let at = index(number);
    if places.len() <= at {
        places.resize_with(at + 1, T::default);
    }
    &mut places[at]
}

/// Queues an item for the strategy at a place.
#[inline]
fn queue(members: &mut [HostedStrategy], ready: &mut VecDeque<usize>, place: usize, item: Item) {
    if members.get_mut(place).is_some_and(|member| member.take(item)) {
        ready.push_back(place);
    }
}
