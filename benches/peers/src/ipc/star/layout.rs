//! Memory that md, strategies and td share.
//!
//! ```text
//! md  --quotes, ring and inbox of each strategy--> strategy
//! strategy --its orders, ring of its own, td's inbox--> td
//! td  --answers, ring and inbox of each strategy--> strategy
//! ```

use crate::ipc::trial::{
    Role, Scene,
    load::Load,
    memory::{Cutter, Part},
};
use anyhow::Context;
use lowlat_ipc::{
    doorbell::Futex,
    inbox::{self, Inbox},
    index_ring,
    interest::{self, Interest},
    router::{Delivery, Router},
    stream::{Owner, Reader, Segment, Writer},
};
use std::ops::Range;

/// The ring of quotes, and that of answers: what md writes in four seconds at 8,000 quotes a second.
const SHARED_BYTES: u64 = 4 << 20;
/// The ring of one strategy's orders.
const ORDERS_BYTES: u64 = 128 << 10;
/// Entries of a ring of positions.
const ENTRIES: u64 = 4096;
/// The stream of answers in a strategy's inbox comes right after its quotes.
const STREAMS_OF_STRATEGY: u32 = 2;

/// One publisher's segment, and the table of interest in it.
#[derive(Debug)]
struct Source {
    segment: Range<u64>,
    interest: Range<u64>,
    capacity_bytes: u64,
    keys: u32,
}

impl Source {
    fn cut(cutter: &mut Cutter, capacity_bytes: u64, keys: u32) -> Self {
        Self {
            segment: cutter.cut(Segment::<Part>::bytes(capacity_bytes)),
            interest: cutter.cut(interest::bytes(keys)),
            capacity_bytes,
            keys,
        }
    }

    fn prepare(&self, scene: &Scene, stream: u32) -> anyhow::Result<Interest<Part>> {
        let owner = Owner::current()?;
        Segment::create(scene.part(&self.segment), self.capacity_bytes, stream, 1, 0, owner)?;
        Interest::create(scene.part(&self.interest), self.keys).context("memory for a table of interest")
    }

    fn writer(&self, scene: &Scene) -> anyhow::Result<(Writer<Part>, Router<Part>)> {
        let writer = Writer::new(Segment::open(scene.part(&self.segment))?);
        let table = Interest::open(scene.part(&self.interest)).context("a table of interest")?;
        Ok((writer, Router::new(table)))
    }

    fn reader(&self, scene: &Scene) -> anyhow::Result<Reader<Part>> {
        Ok(Reader::from_start(Segment::open(scene.part(&self.segment))?))
    }
}

/// Memory that belongs to one strategy.
#[derive(Debug)]
struct Strategy {
    inbox: Range<u64>,
    quotes: Range<u64>,
    answers: Range<u64>,
    orders: Source,
    to_td: Range<u64>,
}

/// Memory of the whole star.
#[derive(Debug)]
pub struct Layout {
    quotes: Source,
    answers: Source,
    td_inbox: Range<u64>,
    strategies: Vec<Strategy>,
}

/// Writer and router of one publisher.
pub type Ends = (Writer<Part>, Router<Part>);

impl Layout {
    /// Cuts the memory for a load.
    pub fn cut(cutter: &mut Cutter, load: &Load) -> Self {
        let ring = |cutter: &mut Cutter| cutter.cut(index_ring::bytes(ENTRIES));
        Self {
            quotes: Source::cut(cutter, SHARED_BYTES, load.strategies),
            answers: Source::cut(cutter, SHARED_BYTES, load.strategies),
            td_inbox: cutter.cut(inbox::BYTES),
            strategies: (0..load.strategies)
                .map(|_| Strategy {
                    inbox: cutter.cut(inbox::BYTES),
                    quotes: ring(cutter),
                    answers: ring(cutter),
                    orders: Source::cut(cutter, ORDERS_BYTES, 1),
                    to_td: ring(cutter),
                })
                .collect(),
        }
    }

    fn strategy(&self, number: u32) -> anyhow::Result<&Strategy> {
        let strategy = usize::try_from(number).ok().and_then(|at| self.strategies.get(at));
        strategy.with_context(|| format!("no strategy {number}"))
    }

    fn numbered(&self) -> impl Iterator<Item = (u32, &Strategy)> {
        (0..).zip(&self.strategies)
    }

    /// The inbox of a strategy. In a host all strategies share the first one's, with separate streams in it.
    fn inbox_of(&self, scene: &Scene, number: u32) -> anyhow::Result<(Inbox<Part>, u32)> {
        let is_hosted = scene.roles.contains(&Role::Host);
        let owner = self.strategy(if is_hosted { 0 } else { number })?;
        let inbox = Inbox::new(scene.part(&owner.inbox)).context("memory for an inbox")?;
        Ok((inbox, if is_hosted { number * STREAMS_OF_STRATEGY } else { 0 }))
    }

    fn links(
        &self,
        scene: &Scene,
        source: &Source,
        ring: impl Fn(&Strategy) -> &Range<u64>,
        offset: u32,
    ) -> anyhow::Result<Ends> {
        let (writer, mut router) = source.writer(scene)?;
        for (number, strategy) in self.numbered() {
            let (inbox, stream) = self.inbox_of(scene, number)?;
            let ring =
                index_ring::create(scene.part(ring(strategy)), ENTRIES).context("memory for a ring")?;
            router.connect(number, Delivery::Gap(ring), inbox, stream + offset);
        }
        Ok((writer, router))
    }

    /// md's ends: quotes to every strategy.
    pub fn md(&self, scene: &Scene) -> anyhow::Result<Ends> {
        self.links(scene, &self.quotes, |strategy| &strategy.quotes, 0)
    }

    /// td's ends: answers to every strategy.
    pub fn td(&self, scene: &Scene) -> anyhow::Result<Ends> {
        self.links(scene, &self.answers, |strategy| &strategy.answers, 1)
    }

    /// td's other ends: its inbox, and each strategy's orders with the ring of their positions.
    pub fn orders(&self, scene: &Scene) -> anyhow::Result<(Inbox<Part>, Vec<Stream>)> {
        let inbox = Inbox::new(scene.part(&self.td_inbox)).context("memory for an inbox")?;
        let streams = self.strategies.iter().map(|strategy| {
            Ok(Stream {
                ring: index_ring::open(scene.part(&strategy.to_td)).context("a ring")?,
                reader: strategy.orders.reader(scene)?,
            })
        });
        Ok((inbox, streams.collect::<anyhow::Result<_>>()?))
    }

    /// The inbox of the process that runs these strategies, and for each its quotes, its answers and its orders.
    pub fn desk(&self, scene: &Scene, numbers: Range<u32>) -> anyhow::Result<(Inbox<Part>, Vec<Place>)> {
        let (inbox, _) = self.inbox_of(scene, numbers.start)?;
        let places = numbers.map(|number| {
            let strategy = self.strategy(number)?;
            let (writer, mut router) = strategy.orders.writer(scene)?;
            let ring =
                index_ring::create(scene.part(&strategy.to_td), ENTRIES).context("memory for a ring")?;
            let td = Inbox::new(scene.part(&self.td_inbox)).context("memory for an inbox")?;
            router.connect(0, Delivery::Gap(ring), td, number);
            let open = |ring: &Range<u64>, source: &Source| {
                Ok::<_, anyhow::Error>(Stream {
                    ring: index_ring::open(scene.part(ring)).context("a ring")?,
                    reader: source.reader(scene)?,
                })
            };
            Ok(Place {
                number,
                quotes: open(&strategy.quotes, &self.quotes)?,
                answers: open(&strategy.answers, &self.answers)?,
                orders: (writer, router),
            })
        });
        Ok((inbox, places.collect::<anyhow::Result<_>>()?))
    }
}

/// Records that are announced by their positions.
#[derive(Debug)]
pub struct Stream {
    /// Ring of the records' positions.
    pub ring: index_ring::Taker<Part>,
    /// Reader of the records themselves.
    pub reader: Reader<Part>,
}

/// Inputs and outputs of one strategy.
#[derive(Debug)]
pub struct Place {
    pub number: u32,
    /// Quotes of the strategy's instrument.
    pub quotes: Stream,
    /// Answers of td to it.
    pub answers: Stream,
    pub orders: Ends,
}

/// Fills the memory before any process starts.
pub fn prepare(scene: &Scene, layout: &Layout) -> anyhow::Result<()> {
    let quotes = layout.quotes.prepare(scene, 1)?;
    let answers = layout.answers.prepare(scene, 2)?;
    for (number, strategy) in layout.numbered() {
        quotes.set(number, Some(number), true);
        answers.set(number, Some(number), true);
        strategy.orders.prepare(scene, 3 + number)?.set(0, Some(0), true);
        for ring in [&strategy.quotes, &strategy.answers, &strategy.to_td] {
            // Publishers create it again before they push anything; readers find it complete, whichever process starts
            // first.
            index_ring::create(scene.part(ring), ENTRIES).context("memory for a ring")?;
        }
    }
    Ok(())
}

fn inboxes(scene: &Scene, layout: &Layout) -> impl Iterator<Item = Inbox<Part>> {
    let all = layout.strategies.iter().map(|strategy| &strategy.inbox).chain([&layout.td_inbox]);
    all.filter_map(|inbox| Inbox::new(scene.part(inbox)))
}

/// Wakes all processes after a change of phase. It marks a stream, because a bell alone does not wake a process that is
/// about to sleep.
pub fn wake_all(scene: &Scene, layout: &Layout) {
    for inbox in inboxes(scene, layout) {
        inbox.notify(super::END_STREAM, &Futex);
    }
}

/// Returns the number of wakes by publishers, and of wakes that only the safety net caught.
pub fn wakes(scene: &Scene, layout: &Layout) -> (u64, u64) {
    inboxes(scene, layout)
        .map(|inbox| inbox.woken_and_missed())
        .fold((0, 0), |(woken, missed), one| (woken + one.0, missed + one.1))
}
