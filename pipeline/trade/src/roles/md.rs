//! md: publishes quotes at their due times.

use super::{MD_STREAM, hear};
use crate::{
    md::{Feed, Lateness, Pacer, PacerStep},
    run::tally::{self, Tally},
    scenario::{Scenario, Speed, Ticks},
};
use lowlat_ipc::stream::Stamp;
use lowlat_node::{
    Join, Memory, Node, Refusal, Wait, Writes,
    clock::{now_ns, sleep_until},
    records::{Quote, SCHEMA, kind},
};
use rustix::thread::set_current_timer_slack;
use std::{num::NonZeroU64, sync::Arc};

/// Delay from the begin message to the first quote: every node has received it by then.
pub const LEAD_NS: u64 = 50_000_000;
/// Longer waits use the node, which then handles messages of its master.
const SLEEP_NS_MAX: u64 = 20_000_000;
/// Quotes between two polls of the master's messages, if there is no time to wait.
const QUOTES_PER_POLL: u32 = 64;

#[derive(Debug, Clone, PartialEq)]
pub enum Source {
    /// Random walks at the times of a scenario.
    Simulated {
        scenario: Scenario,
        /// The same seed gives the same quotes.
        seed: u64,
    },
    Recorded {
        /// Ticks, read before md joins: a long file takes seconds.
        ticks: Arc<Ticks>,
        speed: Speed,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub struct MdOptions {
    pub source: Source,
    /// Waiting mode until a quote is due: spins, or sleeps.
    pub wait: Wait,
    /// A successor need not continue the source where its predecessor stopped.
    pub is_endless: bool,
    /// When the source starts, in the pipeline's clock, ns; `None`: soon after the begin message.
    pub start_ns: Option<u64>,
}

/// The request with which md joins: its stream has this many instruments and a ring of this many bytes.
pub fn join(instruments: u32, capacity_bytes: u64, wait: Wait) -> Join {
    Join::new(MD_STREAM, "md").writing(Writes::new(MD_STREAM, capacity_bytes, instruments)).waiting(wait)
}

/// Publishes all quotes from the begin message on, and returns at the end or when it is stopped. Late quotes
/// are published at once, none is left out.
#[inline(never)]
// SAFETY: an executable section, as that of any other code.
#[unsafe(link_section = ".text.hot.wake")]
pub fn run(node: Node, options: &MdOptions) -> Result<Lateness, Refusal> {
    let mut md = Md::new(node, options);
    loop {
        match md.step()? {
            Next::Now => {}
            Next::At(then_ns) => wait(&mut md.node, options.wait, then_ns),
            Next::Word => md.node.wait(None),
            Next::Never => return md.end(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    Now,
    /// Publish a quote at that time, ns.
    At(u64),
    /// Wait for the master's message.
    Word,
    /// Nothing is left to do.
    Never,
}

/// md between two steps of its loop.
pub(super) struct Md {
    pub(super) node: Node,
    tally: Option<Tally<Memory>>,
    /// The feed until the begin message.
    feed: Option<Feed>,
    pacer: Option<Pacer>,
    start_ns: Option<u64>,
    until_poll: u32,
    has_begun: bool,
    is_over: bool,
}

impl Md {
    pub(super) fn new(node: Node, options: &MdOptions) -> Self {
        let mut feed = match &options.source {
            Source::Simulated { scenario, seed } => Feed::simulated(scenario, *seed),
            Source::Recorded { ticks, speed } => Feed::recorded(Arc::clone(ticks), *speed),
        };
        // Sleeps should end on time, not up to 50 µs later. If this is refused, the default slack remains.
        set_current_timer_slack(NonZeroU64::new(1)).ok();
        let tally = node.area(tally::MD_AREA).cloned().and_then(Tally::new);
        if let Some(tally) = &tally {
            tally.set_scheduled(feed.records());
        }
        if !options.is_endless {
            // The quotes that a predecessor published.
            feed.skip_first(node.published());
        }
        let start_ns = options.start_ns.map(|start_ns| start_ns.saturating_add(feed.skipped_ns()));
        let (feed, pacer) = (Some(feed), None);
        Self { node, tally, feed, pacer, start_ns, until_poll: 0, has_begun: false, is_over: false }
    }

    /// Publishes the next quote if it is due, and polls the master's messages now and then. Never blocks.
    #[inline]
    // SAFETY: an executable section, as that of any other code.
    #[unsafe(link_section = ".text.hot.wake")]
    pub(super) fn step(&mut self) -> Result<Next, Refusal> {
        if self.until_poll == 0 {
            self.until_poll = QUOTES_PER_POLL;
            self.hear();
        }
        if self.is_over {
            return Ok(Next::Never);
        }
        let step = self.pacer.as_mut().map(|pacer| pacer.step(now_ns()));
        if let Some(PacerStep::Publish(due)) = step {
            self.until_poll -= 1;
            let now = publish(&mut self.node, due.instrument, &due.quote)?;
            self.tally.iter().for_each(|tally| tally.published(now));
            return Ok(Next::Now);
        }
        self.until_poll = 0;
        Ok(match step {
            Some(PacerStep::WaitUntil(then_ns)) => {
                // Before the wait: behind it, a quote is due.
                self.hear();
                self.until_poll = QUOTES_PER_POLL;
                if self.is_over { Next::Never } else { Next::At(then_ns) }
            }
            Some(_) => {
                self.is_over = true;
                Next::Never
            }
            None => Next::Word,
        })
    }

    fn hear(&mut self) {
        let (may_begin, must_stop) = hear(&mut self.node);
        self.has_begun |= may_begin;
        self.is_over |= must_stop;
        if self.has_begun
            && let Some(feed) = self.feed.take()
        {
            self.pacer = Some(Pacer::new(feed, self.start_ns.unwrap_or_else(|| now_ns() + LEAD_NS)));
        }
    }

    /// Leaves its master.
    pub(super) fn end(self) -> Result<Lateness, Refusal> {
        let lateness = self.pacer.as_ref().map(Pacer::lateness).unwrap_or_default();
        self.node.result(lateness)
    }
}

/// Returns when it was written.
#[inline]
pub(super) fn publish(node: &mut Node, instrument: u32, quote: &Quote) -> Result<u64, Refusal> {
    let payload = quote.encode();
    let source = node.number();
    let generated = now_ns();
    let stamp = Stamp {
        kind: kind::QUOTE,
        schema: SCHEMA,
        instrument,
        source,
        generated,
        trigger: generated,
        cause: 0,
    };
    node.publisher().publish(&stamp, &payload).map_err(Refusal::of)?;
    Ok(generated)
}

/// Waits until a quote is due, or for part of that time, so that messages of the master are handled.
fn wait(node: &mut Node, wait: Wait, then_ns: u64) {
    let now = now_ns();
    if node.is_stepped() {
        return node.wait(Some(then_ns));
    }
    if then_ns.saturating_sub(now) > SLEEP_NS_MAX {
        node.wait(Some(then_ns - SLEEP_NS_MAX / 2));
        return;
    }
    // The master checks for it.
    node.show_life();
    match wait {
        Wait::Fast => loop {
            let now_ns = now_ns();
            if now_ns >= then_ns {
                break;
            }
            node.rehearse(now_ns, then_ns, &mut |_, _| ());
            lowlat_ipc::relax();
        },
        // The caller checks the clock again.
        Wait::Parked | Wait::Adaptive => sleep_until(node.monotonic_of(then_ns)),
    }
}
