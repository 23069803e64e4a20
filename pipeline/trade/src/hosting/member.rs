//! One strategy of a host, with its queue.

use super::{StrategyBudget, Usage};
use lowlat_node::strategy::{Item, Strategy, StrategyGap};
use std::{collections::VecDeque, hint::black_box};

/// A strategy with its queue.
pub struct HostedStrategy {
    pub number: u32,
    pub strategy: Box<dyn Strategy>,
    pub usage: Usage,
    queue: VecDeque<Item>,
    queue_max: usize,
    /// Records lost since the last one in the queue: quotes, answers.
    lost: [u64; 2],
    window_calls: u32,
    window_overruns: u32,
    /// The time that it set for its timer, ns; `u64::MAX`: none.
    pub timer_ns: u64,
}

impl HostedStrategy {
    /// With room for this many records.
    pub fn new(number: u32, strategy: Box<dyn Strategy>, queue_max: usize) -> Self {
        let queue_max = queue_max.max(1);
        Self {
            number,
            strategy,
            usage: Usage::default(),
            // Plus a gap of each kind before the last record.
            queue: VecDeque::with_capacity(queue_max + 2),
            queue_max,
            lost: [0; 2],
            window_calls: 0,
            window_overruns: 0,
            timer_ns: u64::MAX,
        }
    }

    /// Queues an item; returns true if it must be scheduled and was not before.
    pub fn take(&mut self, item: Item) -> bool {
        if self.usage.is_moved_out {
            self.usage.dropped += 1;
            return false;
        }
        let was_idle = !self.has_more();
        if self.queue.len() >= self.queue_max {
            let [quotes, answers] = &mut self.lost;
            match item {
                Item::Quote(_) => *quotes += 1,
                Item::Answer(_) => *answers += 1,
                Item::Gap(StrategyGap::Quotes(count)) => *quotes += count,
                Item::Gap(StrategyGap::Answers(count)) => *answers += count,
                // A host reads no other streams.
                Item::Gap(StrategyGap::Others(_)) => {}
                // It is due again once there is room.
                Item::Timer(due_ns) => self.timer_ns = due_ns,
            }
            self.usage.dropped += u64::from(matches!(item, Item::Quote(_) | Item::Answer(_)));
        } else {
            while let Some(gap) = self.take_lost() {
                self.queue.push_back(Item::Gap(gap));
            }
            self.queue.push_back(item);
        }
        was_idle
    }

    fn take_lost(&mut self) -> Option<StrategyGap> {
        let [quotes, answers] = &mut self.lost;
        if *quotes > 0 {
            return Some(StrategyGap::Quotes(std::mem::take(quotes)));
        }
        (*answers > 0).then(|| StrategyGap::Answers(std::mem::take(answers)))
    }

    pub fn next(&mut self) -> Option<Item> {
        let next = self.queue.pop_front().or_else(|| self.take_lost().map(Item::Gap));
        if self.queue.is_empty() {
            // The first place is reused while it is in the cache; in a ring each place would be cold.
            self.queue.clear();
        }
        next
    }

    /// Touches what the next call needs.
    pub fn warm(&mut self) {
        // An item put into the first place is taken out again: an empty queue has no place to touch.
        if !self.has_more() {
            self.queue.push_back(Item::Gap(StrategyGap::Quotes(0)));
            black_box(self.queue.front());
            self.queue.clear();
        }
        black_box((self.usage, self.window_calls));
        self.strategy.warm();
    }

    /// True if items are pending.
    pub fn has_more(&self) -> bool {
        !self.queue.is_empty() || self.lost != [0; 2]
    }

    /// Counts a call; returns true if it exceeds the permitted number of overruns.
    pub fn used(&mut self, took_ns: u64, budget: &StrategyBudget) -> bool {
        let usage = &mut self.usage;
        usage.calls += 1;
        usage.sum_ns += took_ns;
        usage.max_ns = usage.max_ns.max(took_ns);
        if self.window_calls >= budget.window_calls {
            (self.window_calls, self.window_overruns) = (0, 0);
        }
        self.window_calls += 1;
        if took_ns > budget.call_ns_max {
            usage.overruns += 1;
            self.window_overruns += 1;
            if self.window_overruns >= budget.overruns_max {
                usage.is_moved_out = true;
                usage.dropped += u64::try_from(self.queue.len()).unwrap_or(u64::MAX);
                self.queue.clear();
                self.lost = [0; 2];
            }
        }
        usage.is_moved_out
    }
}
