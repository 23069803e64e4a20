//! One strategy in a separate process.

use super::{
    Item, Numbers, OrderCause, OrderSink, OrderStream, Orders, OtherSeen, Strategy, StrategyGap, note,
    numbers_of,
};
use crate::{
    Event, Join, Keys, MD_STREAM, Node, NodePublishError, ORDERS_PREFIX, Overrun, Publisher, Reads,
    ReadsFrom, Refusal, Strategies, TD_STREAM, Wait, Writes,
    clock::now_ns,
    records::{PayloadError, kind},
};

/// Result of a strategy's process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct StrategyDone {
    pub quotes: u64,
    pub answers: u64,
    pub lost: u64,
}

/// The request with which a strategy, or a host of several, joins: with its strategies, whose numbers the node
/// knows after joining ([`Node::strategies`]), and their instruments. Quotes that it is too slow for are gaps;
/// [`with_overrun`] changes that. It is refused an order that td has no room for
/// ([`super::SendError::NoCredit`]).
pub fn join(
    name: &str,
    role: &str,
    strategies: Strategies,
    instruments: &[u32],
    capacity_bytes: u64,
    wait: Wait,
) -> Join {
    Join {
        name: name.to_owned(),
        role: role.to_owned(),
        writes: Some(Writes {
            stream: format!("{ORDERS_PREFIX}{name}"),
            capacity_bytes,
            keys: 1,
            gives_credit: true,
        }),
        reads: vec![
            Reads::new(MD_STREAM, Keys::Only(instruments.to_vec())),
            Reads::new(TD_STREAM, Keys::Strategies),
        ],
        wait,
        strategies,
    }
}

/// The same with another policy for quotes. Answers are never conflated.
#[must_use]
pub fn with_overrun(join: Join, overrun: Overrun) -> Join {
    let change = |reads: Reads| if reads.streams == MD_STREAM { reads.with(overrun) } else { reads };
    Join { reads: join.reads.into_iter().map(change).collect(), ..join }
}

/// The same with another first quote.
#[must_use]
pub fn starting(join: Join, from: ReadsFrom) -> Join {
    let change = |reads: Reads| if reads.streams == MD_STREAM { reads.starting(from) } else { reads };
    Join { reads: join.reads.into_iter().map(change).collect(), ..join }
}

/// Calls the strategy with its records, until it is stopped.
///
/// Not inlined, or the caller's optimisation for size would count.
#[inline(never)]
// SAFETY: an executable section, as that of any other code.
#[unsafe(link_section = ".text.hot.wake")]
pub fn run(mut node: Node, number: u32, strategy: &mut dyn Strategy) -> Result<StrategyDone, Refusal> {
    node.must_be_stopped();
    let numbers = numbers_of(&node, number);
    let mut process = StrategyProcess {
        number,
        strategy,
        numbers,
        done: StrategyDone::default(),
        failed: None,
        unsent: None,
        is_over: false,
    };
    while !process.is_over && process.failed.is_none() && process.unsent.is_none() {
        node.wait_rehearsing(None, &mut |_, event| {
            if let Event::Record { record, payload, .. } = event
                && record.stamp.kind == kind::QUOTE
            {
                std::hint::black_box(Item::of(record, payload).is_ok());
                process.strategy.warm();
            }
        });
        node.poll(&mut |publisher, event| process.hear(publisher, &event));
    }
    match process.failed.or(process.unsent.map(Refusal::of)) {
        Some(error) => Err(error),
        None => node.result(process.done),
    }
}

/// A strategy between the events of its process.
struct StrategyProcess<'a> {
    number: u32,
    strategy: &'a mut dyn Strategy,
    numbers: Numbers,
    done: StrategyDone,
    failed: Option<Refusal>,
    unsent: Option<NodePublishError>,
    is_over: bool,
}

impl StrategyProcess<'_> {
    // SAFETY: an executable section, as that of any other code.
    #[unsafe(link_section = ".text.hot.wake")]
    #[inline(never)]
    fn hear(&mut self, publisher: &mut Publisher, event: &Event<'_>) {
        let Self { number, strategy, numbers, done, failed, unsent, is_over } = self;
        let mut sink = OrderStream::new(publisher, numbers, |error| note(unsent, error));
        let item = match *event {
            Event::Record { stream, record, payload } => match Item::of(record, payload) {
                Ok(Some(item)) => item,
                Ok(None) => {
                    let seen = OtherSeen { stream, record, payload, received_ns: now_ns() };
                    let timer = hear_other(*strategy, *number, &mut sink, &seen);
                    if let Some(at_ns) = timer {
                        publisher.set_timer(at_ns);
                    }
                    return;
                }
                Err(error) => {
                    failed.get_or_insert_with(|| undecoded(stream.as_str(), record.sequence, &error));
                    return;
                }
            },
            Event::Lost { stream, count } => Item::Gap(gap(stream.as_str(), count)),
            Event::Timer { due_ns } => Item::Timer(due_ns),
            Event::Stop => {
                *is_over = true;
                return;
            }
            Event::Begin | Event::Command(_) => return,
        };
        match item {
            Item::Quote(_) => done.quotes += 1,
            Item::Answer(_) => done.answers += 1,
            Item::Gap(
                StrategyGap::Quotes(count) | StrategyGap::Answers(count) | StrategyGap::Others(count),
            ) => {
                done.lost += count;
            }
            Item::Timer(_) => {}
        }
        if let Some(at_ns) = item.tell(*strategy, *number, &mut sink, now_ns) {
            publisher.set_timer(at_ns);
        }
    }
}

/// Gives the strategy a record of another stream. Returns the time that it set for its timer.
#[cold]
fn hear_other(
    strategy: &mut dyn Strategy,
    number: u32,
    sink: &mut dyn OrderSink,
    seen: &OtherSeen<'_>,
) -> Option<u64> {
    let generated_ns = seen.record.stamp.generated;
    let cause = OrderCause {
        generated_ns,
        scheduled_ns: generated_ns,
        received_ns: seen.received_ns,
        sequence: seen.record.sequence,
        ..OrderCause::default()
    };
    let mut orders = Orders::new(sink, number, cause);
    strategy.on_record(&mut orders, seen);
    orders.timer()
}

/// The gap for lost records of a stream.
pub fn gap(stream: &str, count: u64) -> StrategyGap {
    match stream {
        TD_STREAM => StrategyGap::Answers(count),
        MD_STREAM => StrategyGap::Quotes(count),
        _ => StrategyGap::Others(count),
    }
}

/// The refusal of a record that does not match its kind.
pub fn undecoded(stream: &str, sequence: u64, error: &PayloadError) -> Refusal {
    Refusal::new(format!("stream {stream}, record {sequence}: {error}"))
}
