//! Many strategies in one process on one core: what they are told waits in a queue of each, and they are served in turn,
//! one record each. A wake is paid once for all of them, and a strategy with many records waiting keeps the others
//! waiting for one call at a time.
//!
//! No call can be cut short. It is measured instead: a strategy that takes longer than its budget too often is moved
//! out, into a process of its own, where it only keeps itself waiting.

mod member;
#[cfg(test)]
mod tests;

use super::{AnswerSeen, Cause, Gap, OrderSink, Orders, QuoteSeen, Strategy};
use member::{Member, Waiting};
use std::{collections::VecDeque, hint::black_box};
use thiserror::Error;

/// What a strategy may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Longest time of one call, ns.
    pub call_ns_max: u64,
    /// So many calls over it within [`Budget::window_calls`], and the strategy is moved out.
    pub overruns_max: u32,
    /// Calls after which overruns are counted from 0 again. A virtual CPU that is taken away makes anybody overrun.
    pub window_calls: u32,
    /// Records that may wait for one strategy; more are lost to it, and it is told.
    pub queue_max: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self { call_ns_max: 50_000, overruns_max: 20, window_calls: 1000, queue_max: 256 }
    }
}

/// What a strategy of a host used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Calls.
    pub calls: u64,
    /// Time in them, ns.
    pub sum_ns: u64,
    /// The longest, ns.
    pub max_ns: u64,
    /// Calls over the budget.
    pub overruns: u64,
    /// Records that were lost because its queue was full, or because it was moved out.
    pub dropped: u64,
    /// Whether it was moved out.
    pub is_moved_out: bool,
}

/// Why a strategy is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum AddError {
    /// Its number is in use.
    #[error("strategy number {number} is in the host already; give each its own")]
    Taken {
        /// The number.
        number: u32,
    },
}

/// A strategy host.
pub struct Host {
    members: Vec<Member>,
    /// Places of members by instrument.
    by_instrument: Vec<Vec<usize>>,
    /// Places of members by strategy number.
    by_number: Vec<Option<usize>>,
    /// Members with something to do, each once, in the order in which they are served.
    ready: VecDeque<usize>,
    /// Places of the member and of the instrument that are warmed next.
    warmed: [usize; 2],
    budget: Budget,
}

impl Host {
    /// A host without strategies.
    pub fn new(budget: Budget) -> Self {
        Self {
            members: Vec::new(),
            by_instrument: Vec::new(),
            by_number: Vec::new(),
            ready: VecDeque::new(),
            warmed: [0; 2],
            budget,
        }
    }

    /// Takes a strategy. Before anything else: it allocates all that is needed later.
    pub fn add(
        &mut self,
        number: u32,
        instruments: &[u32],
        strategy: Box<dyn Strategy>,
    ) -> Result<(), AddError> {
        if self.place(number).is_some() {
            return Err(AddError::Taken { number });
        }
        let place = self.members.len();
        put(&mut self.by_number, number, Some(place));
        for instrument in instruments {
            let at = index(*instrument);
            if self.by_instrument.len() <= at {
                self.by_instrument.resize_with(at + 1, Vec::new);
            }
            if let Some(members) = self.by_instrument.get_mut(at).filter(|members| !members.contains(&place))
            {
                members.push(place);
            }
        }
        self.members.push(Member::new(number, strategy, self.budget.queue_max));
        self.ready.reserve(self.members.len());
        Ok(())
    }

    /// Numbers of its strategies that are not moved out.
    pub fn numbers(&self) -> impl Iterator<Item = u32> {
        self.members.iter().filter(|member| !member.usage.is_moved_out).map(|member| member.number)
    }

    /// Instruments that somebody in it wants.
    pub fn instruments(&self) -> impl Iterator<Item = u32> {
        (0..).zip(&self.by_instrument).filter(|(_, members)| !members.is_empty()).map(|(number, _)| number)
    }

    /// What a strategy used; none when there is none of that number.
    pub fn usage(&self, number: u32) -> Option<Usage> {
        self.members.get(self.place(number)?).map(|member| member.usage)
    }

    /// Takes a quote for all that want its instrument.
    ///
    /// Not inlined, as [`Host::serve`]: what a host rehearses is what a quote goes through.
    #[inline(never)]
    pub fn take_quote(&mut self, seen: &QuoteSeen) {
        let Some(wanted) = self.by_instrument.get(index(seen.instrument)) else { return };
        for place in wanted {
            if let Some(member) = self.members.get_mut(*place)
                && member.take(Waiting::Quote(*seen))
            {
                self.ready.push_back(*place);
            }
        }
    }

    /// Takes an answer for a strategy.
    #[inline]
    pub fn take_answer(&mut self, strategy: u32, seen: &AnswerSeen) {
        if let Some(place) = self.place(strategy) {
            self.wait_at(place, Waiting::Answer(*seen));
        }
    }

    /// Records are lost to this process: everybody is told, for whom they were is not known.
    pub fn take_gap(&mut self, gap: Gap) {
        for place in 0..self.members.len() {
            self.wait_at(place, Waiting::Gap(gap));
        }
    }

    /// Whether somebody has something to do.
    #[inline]
    pub fn is_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Serves the strategy whose turn it is with one record; false when nobody has one. `now_ns` is read before and after
    /// the call. Whoever goes over its budget too often is not called any more, and `move_out` is told its number.
    #[inline(never)]
    pub fn serve(
        &mut self,
        sink_of: &mut dyn SinkOf,
        now_ns: &mut dyn FnMut() -> u64,
        move_out: &mut dyn FnMut(u32),
    ) -> bool {
        let Some(place) = self.ready.pop_front() else { return false };
        let Some(member) = self.members.get_mut(place) else { return true };
        let Some(waiting) = member.next() else { return true };
        let before_ns = now_ns();
        let cause = match &waiting {
            Waiting::Quote(seen) => Cause::from(seen),
            Waiting::Answer(seen) => Cause::from(seen),
            Waiting::Gap(_) => Cause::at(before_ns),
        };
        sink_of.with(member.number, &mut |sink| {
            let mut orders = Orders::new(sink, member.number, cause);
            match &waiting {
                Waiting::Quote(seen) => member.strategy.on_quote(&mut orders, seen),
                Waiting::Answer(seen) => member.strategy.on_answer(&mut orders, seen),
                Waiting::Gap(gap) => member.strategy.on_gap(&mut orders, *gap),
            }
        });
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

    /// Looks at what the next call of one strategy needs, for a process that has nothing to do: each call is for the next one,
    /// whose number is given back. None when there are no strategies.
    pub fn warm(&mut self) -> Option<u32> {
        let [place, instrument] = self.warmed;
        let next = |at: usize, count: usize| if at + 1 < count { at + 1 } else { 0 };
        self.warmed = [next(place, self.members.len()), next(instrument, self.by_instrument.len())];
        black_box(self.by_instrument.get(instrument).and_then(|members| members.first()));
        let member = self.members.get_mut(place)?;
        member.warm();
        Some(member.number)
    }

    fn wait_at(&mut self, place: usize, waiting: Waiting) {
        if let Some(member) = self.members.get_mut(place)
            && member.take(waiting)
        {
            self.ready.push_back(place);
        }
    }

    fn place(&self, number: u32) -> Option<usize> {
        self.by_number.get(index(number)).copied().flatten()
    }
}

/// Gives the sink of a strategy's orders to a call.
pub trait SinkOf {
    /// Calls `then` once with the sink of that strategy.
    fn with(&mut self, strategy: u32, then: &mut dyn FnMut(&mut dyn OrderSink));
}

fn index(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn put(places: &mut Vec<Option<usize>>, number: u32, value: Option<usize>) {
    let at = index(number);
    if places.len() <= at {
        places.resize(at + 1, None);
    }
    if let Some(place) = places.get_mut(at) {
        *place = value;
    }
}
