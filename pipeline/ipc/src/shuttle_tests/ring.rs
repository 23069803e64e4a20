//! A ring, its gaps, and processes that die at any access.

use super::{draw, explore, nap};
use crate::{
    index_ring::{self, Pusher, RingGap, Taken, Taker},
    region::{Heap, Region},
    testing::{Mortal, unless_it_ends},
};
use shuttle::thread;
use std::sync::Arc;

/// Number of entries pushed, starting at 1.
const COUNT: u64 = 300;

/// The account of every entry. All are taken or in a gap, in order. An entry that was not released is returned
/// again to the taker's successor; a gap that was taken is not.
struct EntryAccount {
    next: u64,
    given_back: u64,
    is_lost: Vec<bool>,
}

impl EntryAccount {
    fn new() -> Self {
        Self { next: 1, given_back: 1, is_lost: vec![false; usize::try_from(COUNT).unwrap() + 2] }
    }

    fn is_over(&self) -> bool {
        self.next > COUNT
    }

    fn lost(&mut self, entry: u64) -> &mut bool {
        &mut self.is_lost[usize::try_from(entry).unwrap()]
    }

    /// A gap taken by a predecessor is not reported again.
    fn pass_over(&mut self) {
        while *self.lost(self.next) {
            self.next += 1;
        }
    }

    fn give(&mut self, entry: u64) {
        assert_eq!(entry, self.next, "the next entry");
        self.next += 1;
        self.pass_over();
    }

    fn lose(&mut self, gap: RingGap) {
        assert_eq!((gap.first, gap.last), (self.next, self.next + gap.count - 1), "the next gap");
        (gap.first..=gap.last).for_each(|entry| *self.lost(entry) = true);
        self.pass_over();
    }

    /// The taker has died. A gap that it took but did not count was reported to it, and its place is still
    /// occupied.
    fn end(&mut self, heap: &Arc<Heap>) {
        self.next = self.given_back;
        self.pass_over();
        if let Some(gap) = index_ring::taken_and_not_counted(heap)
            && !*self.lost(gap.first)
        {
            let next = std::mem::replace(&mut self.next, gap.first);
            let count = gap.last - gap.first + 1;
            self.lose(RingGap { count, ..gap });
            self.next = next;
            self.pass_over();
        }
    }
}

/// One taking process; returns when it dies, or everything is accounted for.
fn take(heap: &Arc<Heap>, accesses: u64, books: &mut EntryAccount) -> Option<()> {
    let mut taker: Taker<_> =
        unless_it_ends(|| index_ring::open(Mortal::new(heap, accesses)))?.expect("a ring");
    while !books.is_over() {
        match unless_it_ends(|| taker.hold())? {
            Some(Taken::Entry(entry)) => books.give(entry),
            Some(Taken::Gap(gap)) => books.lose(gap),
            None => nap(),
            Some(Taken::Evicted { .. }) => panic!("nothing evicts it"),
        }
        if draw(3) > 0 {
            unless_it_ends(|| taker.release())?;
            books.given_back = books.next;
            // Slow enough for gaps to accumulate.
            nap();
        }
    }
    Some(())
}

fn take_all(heap: &Arc<Heap>) {
    let mut books = EntryAccount::new();
    while !books.is_over() {
        let accesses = if draw(8) == 0 { u64::MAX } else { draw(200) };
        if take(heap, accesses, &mut books).is_none() {
            books.end(heap);
            // The publisher continues until the next item is available.
            (0..draw(20)).for_each(|_| nap());
        }
    }
}

fn ring() -> (Arc<Heap>, Pusher<Arc<Heap>>) {
    let entries = 8 << draw(4).min(3 - draw(3));
    let heap = Arc::new(Heap::zeroed(index_ring::bytes(entries)));
    let pusher = index_ring::create(Arc::clone(&heap), entries).unwrap();
    (heap, pusher)
}

/// Every entry is taken or in a gap, exactly and in order, by takers that die and restart at any access, also
/// between taking a gap and counting it.
#[test]
fn shuttle_gaps_are_exact_whenever_the_taker_ends() {
    explore(|| {
        let (heap, mut pusher) = ring();
        let pushing = thread::spawn(move || {
            for entry in 1..=COUNT {
                if !pusher.push(entry) {
                    wait_for_room(&mut pusher);
                } else if draw(8) == 0 {
                    nap();
                }
            }
        });
        take_all(&heap);
        pushing.join().unwrap();
    });
}

/// The same, while the publisher dies at any access and its successor completes its work:
/// [`index_ring::resume`].
#[test]
fn shuttle_gaps_are_exact_whenever_the_publisher_ends() {
    explore(|| {
        let (heap, pusher) = ring();
        drop(pusher);
        let its = Arc::clone(&heap);
        let pushing = thread::spawn(move || while push(&its).is_none() {});
        take_all(&heap);
        pushing.join().unwrap();
    });
}

/// A ring that stays full reports everything as one gap. With room for one at a time there are as many gaps as
/// possible.
fn wait_for_room<R: Region>(pusher: &mut Pusher<R>) {
    if draw(8) == 0 {
        nap();
    }
    while draw(16) > 0 && pusher.is_full() {
        thread::yield_now();
    }
}

/// One process that pushes what its predecessors have not; `None` if it dies.
fn push(heap: &Arc<Heap>) -> Option<()> {
    let region = Mortal::new(heap, 1 + draw(800));
    let mut pusher = unless_it_ends(|| index_ring::resume(region))?.expect("consistent words");
    let first = unless_it_ends(|| pusher.last())?.map_or(1, |last| last + 1);
    for entry in first..=COUNT {
        if !unless_it_ends(|| pusher.push(entry))? {
            unless_it_ends(|| wait_for_room(&mut pusher))?;
        }
    }
    Some(())
}

/// A subscriber with little room: what is refused, evicted or held agrees with the ring.
#[test]
fn shuttle_an_eviction_is_reported_after_the_last_entry() {
    explore(|| {
        let (heap, mut pusher) = ring();
        let behind_max = 1 + draw(8);
        let pushing = thread::spawn(move || {
            (1..=COUNT).find(|entry| {
                let is_out = pusher.is_behind(behind_max) || !pusher.has_room();
                if is_out {
                    pusher.evict(*entry);
                } else {
                    assert!(pusher.push(*entry));
                }
                is_out
            })
        });
        let mut taker = index_ring::open(Arc::clone(&heap)).unwrap();
        let mut next = 1;
        let told = loop {
            match taker.next() {
                Some(Taken::Entry(entry)) => {
                    assert_eq!(entry, next);
                    next += 1;
                }
                Some(Taken::Evicted { first }) => break Some(first),
                Some(Taken::Gap(gap)) => panic!("{gap:?}"),
                None if next > COUNT => break None,
                None => thread::yield_now(),
            }
        };
        assert_eq!(pushing.join().unwrap(), told);
        assert!(told.is_none_or(|first| first == next));
    });
}
