//! md: publishes quotes when they are due.

use super::{MD_STREAM, RoleError};
use crate::{
    clock::now_ns,
    md::{Due, Feed, Lateness, Pacer, Step},
    node::{Event, Join, Node, Wait, Writes},
    records::{SCHEMA, kind},
    run::tally::{self, Tally},
    scenario::{Scenario, Speed, Ticks},
};
use lowlat_ipc::stream::Stamp;
use rustix::{
    thread::{ClockId, clock_nanosleep_absolute, set_current_timer_slack},
    time::Timespec,
};
use std::{hint, num::NonZeroU64, path::PathBuf, sync::Arc};

/// From the word to begin to the first quote: everybody has heard it then.
const LEAD_NS: u64 = 50_000_000;
/// Longer waits are the node's, which hears its master then.
const SLEEP_NS_MAX: u64 = 20_000_000;
/// Quotes between two looks at what the master says, when there is no time to wait.
const QUOTES_PER_POLL: u32 = 64;

/// Where quotes come from.
#[derive(Debug, Clone, PartialEq)]
pub enum Source {
    /// Random walks at the times of a scenario.
    Simulated {
        /// The scenario.
        scenario: Scenario,
        /// The same seed gives the same quotes.
        seed: u64,
    },
    /// A file of recorded ticks.
    Recorded {
        /// The file.
        path: PathBuf,
        /// How fast.
        speed: Speed,
    },
}

/// What md does.
#[derive(Debug, Clone, PartialEq)]
pub struct MdOptions {
    /// Where quotes come from.
    pub source: Source,
    /// How it waits until a quote is due: spins, or sleeps.
    pub wait: Wait,
}

/// What md did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MdDone {
    /// How late its quotes were.
    pub lateness: Lateness,
}

/// How md joins: its stream has so many instruments and a ring of so many bytes.
pub fn join(instruments: u32, capacity_bytes: u64, wait: Wait) -> Join {
    Join {
        name: MD_STREAM.to_owned(),
        role: "md".to_owned(),
        writes: Some(Writes { stream: MD_STREAM.to_owned(), capacity_bytes, keys: instruments }),
        reads: Vec::new(),
        wait,
    }
}

/// Publishes all quotes from the word to begin on, then waits for the word to end. Late quotes are published at once, none
/// is left out.
pub fn run(node: Node, options: &MdOptions) -> Result<MdDone, RoleError> {
    serve(node, options, false)
}

/// The same for one run of [`crate::run`]: counts in its area, and ends by itself after the last quote.
pub fn run_once(node: Node, options: &MdOptions) -> Result<MdDone, RoleError> {
    serve(node, options, true)
}

fn serve(mut node: Node, options: &MdOptions, ends_by_itself: bool) -> Result<MdDone, RoleError> {
    let area = if ends_by_itself { node.area(tally::AREA) } else { None };
    let tally = area.map(Arc::clone).and_then(Tally::new);
    if let (Some(tally), Source::Simulated { scenario, .. }) = (&tally, &options.source) {
        tally.set_scheduled(scenario.records());
    }
    let mut feed = Some(match &options.source {
        Source::Simulated { scenario, seed } => Feed::simulated(scenario, *seed),
        Source::Recorded { path, speed } => Feed::recorded(Ticks::read(path)?, *speed),
    });
    // A sleep ends when it should, and not up to 50 µs later. Where it is refused, sleeps are as they are.
    set_current_timer_slack(NonZeroU64::new(1)).ok();
    let mut pacer: Option<Pacer> = None;
    let (mut has_begun, mut is_over) = (false, false);
    let mut until_poll = 0;
    while !is_over {
        if until_poll == 0 {
            until_poll = QUOTES_PER_POLL;
            node.poll(&mut |_, event| match event {
                Event::Begin => has_begun = true,
                Event::Stop => is_over = true,
                _ => {}
            });
            if has_begun && let Some(feed) = feed.take() {
                pacer = Some(Pacer::new(feed, now_ns() + LEAD_NS));
            }
        }
        match pacer.as_mut().map_or(Step::Done, |pacer| pacer.step(now_ns())) {
            Step::Publish(due) => {
                until_poll -= 1;
                publish(&mut node, &due)?;
                if let Some(tally) = &tally {
                    tally.published(now_ns());
                }
            }
            Step::WaitUntil(then_ns) => {
                until_poll = 0;
                wait(&mut node, options.wait, then_ns);
            }
            // Before the begin there is nothing to do yet.
            Step::Done if ends_by_itself && pacer.is_some() => is_over = true,
            Step::Done => {
                until_poll = 0;
                if !is_over {
                    node.wait(None);
                }
            }
        }
    }
    if let Some(ended) = node.ended() {
        return Err(ended.into());
    }
    Ok(MdDone { lateness: pacer.map(|pacer| pacer.lateness()).unwrap_or_default() })
}

fn publish(node: &mut Node, due: &Due) -> Result<(), RoleError> {
    let payload = due.quote.encode();
    let source = node.number();
    let generated = now_ns();
    let stamp = Stamp {
        kind: kind::QUOTE,
        schema: SCHEMA,
        instrument: due.instrument,
        source,
        generated,
        trigger: generated,
        cause: 0,
    };
    node.publisher().publish(&stamp, &payload)?;
    Ok(())
}

/// Waits until a quote is due, or a part of it that lets the master be heard.
fn wait(node: &mut Node, wait: Wait, then_ns: u64) {
    let now = now_ns();
    if then_ns.saturating_sub(now) > SLEEP_NS_MAX {
        node.wait(Some(then_ns - SLEEP_NS_MAX / 2));
        return;
    }
    // A sign of life, which master looks for.
    node.wait(Some(now));
    match wait {
        Wait::Fast => {
            while now_ns() < then_ns {
                hint::spin_loop();
            }
        }
        Wait::Parked | Wait::Adaptive => {
            let part = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
            let then =
                Timespec { tv_sec: part(then_ns / 1_000_000_000), tv_nsec: part(then_ns % 1_000_000_000) };
            // A signal ends it early; the caller looks at the clock again.
            clock_nanosleep_absolute(ClockId::Monotonic, &then).ok();
        }
    }
}
