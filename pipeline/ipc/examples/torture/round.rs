//! One round: what all participants agree on, as threads or processes. Everything follows from the seed, so
//! each computes it again, and a subscriber knows what it must get.

use lowlat_ipc::{
    inbox, index_ring, interest, latest,
    region::{Access, Heap, Memfd, Region},
    stream::Segment,
};
use std::{
    fs::File,
    os::fd::{AsRawFd, OwnedFd},
    sync::atomic::{AtomicU64, Ordering},
};

pub const PUBLISHERS: u64 = 3;
pub const SUBSCRIBERS: u64 = 5;
pub const INSTRUMENTS: u32 = 16;
/// Small, so that every limit is hit all the time.
const ENTRIES: u64 = 64;
pub const CAPACITY_BYTES: u64 = 1 << 15;

/// Hashes a number with SplitMix64.
pub fn mix(number: u64) -> u64 {
    let mut word = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    Gap,
    Conflate,
    Credit,
    Evict,
}

/// Choices that follow from the seed.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    pub seed: u64,
}

impl Plan {
    fn choose(self, what: u64, number: u64) -> u64 {
        mix(self.seed ^ mix(what << 32 ^ number))
    }

    pub fn policy(self, publisher: u64, subscriber: u64) -> Policy {
        let all = [Policy::Gap, Policy::Conflate, Policy::Credit, Policy::Evict];
        all[usize::try_from(self.choose(1, publisher << 8 | subscriber) % 4).unwrap()]
    }

    /// Bit set of the instruments that a subscriber wants.
    pub fn wanted(self, subscriber: u64) -> u64 {
        self.choose(2, subscriber) & self.choose(3, subscriber) & 0xffff | 1 << (subscriber % 16)
    }

    /// Returns true if the subscriber comes and goes, so that only the order of its records is known.
    pub fn comes_and_goes(self, subscriber: u64) -> bool {
        self.choose(4, subscriber).is_multiple_of(4)
    }

    pub fn is_process(self, role: u64, number: u64) -> bool {
        !self.choose(5, role << 8 | number).is_multiple_of(3)
    }

    pub fn instrument(self, publisher: u64, number: u64) -> u32 {
        u32::try_from(self.choose(16 + publisher, number) % u64::from(INSTRUMENTS)).unwrap()
    }

    pub fn payload_bytes(self, publisher: u64, number: u64) -> usize {
        usize::try_from(self.choose(32 + publisher, number) % 200).unwrap()
    }

    /// The first record from `number` on that a subscriber wants.
    pub fn next_wanted(self, publisher: u64, subscriber: u64, number: u64) -> u64 {
        let wanted = self.wanted(subscriber);
        (number..u64::MAX).find(|number| wanted >> self.instrument(publisher, *number) & 1 == 1).unwrap()
    }

    pub fn random(self, what: u64) -> impl FnMut() -> u64 {
        let mut state = self.choose(6, what);
        move || {
            state = mix(state);
            state
        }
    }
}

/// Words with everybody's progress. The first one signals the end.
pub mod word {
    pub const STOP: usize = 0;
    /// State of a publisher: 0 publishing, 1 ended, 2 killed.
    pub const DONE: usize = 0;
    pub const PUBLISHED: usize = 1;
    /// Per subscriber and publisher: the first record not accounted for.
    pub const NEXT: usize = 0;
    pub const TAKEN: usize = 1;
    pub const LOST: usize = 2;
    pub const CONFLATED: usize = 3;
    pub const EVICTED: usize = 4;
}

/// All memory of a round, by name.
pub struct Memory {
    pub control: Memfd,
    regions: Vec<Memfd>,
}

const CONTROL_BYTES: u64 = 8192;

impl Memory {
    fn sizes() -> Vec<u64> {
        let mut sizes = Vec::new();
        for _ in 0..PUBLISHERS {
            sizes.extend([Segment::<Heap>::bytes(CAPACITY_BYTES), interest::bytes(INSTRUMENTS).max(4096)]);
        }
        let way = index_ring::bytes(ENTRIES).max(latest::bytes(INSTRUMENTS)).max(4096);
        sizes.extend((0..SUBSCRIBERS).map(|_| inbox::BYTES.max(4096)));
        sizes.extend((0..PUBLISHERS * SUBSCRIBERS).map(|_| way));
        sizes
    }

    pub fn create() -> Self {
        let make = |bytes| Memfd::create("lowlat-torture", bytes).unwrap();
        Self { control: make(CONTROL_BYTES), regions: Self::sizes().into_iter().map(make).collect() }
    }

    /// The same memory, in any process.
    pub fn open(pid: u32, descriptors: &str) -> Self {
        let mut all = descriptors.split(',').map(|number| {
            let path = format!("/proc/{pid}/fd/{number}");
            let file = File::options().read(true).write(true).open(&path);
            let file = file.unwrap_or_else(|error| panic!("{path}: {error}"));
            Memfd::open(OwnedFd::from(file), Access::Write).unwrap()
        });
        Self { control: all.next().unwrap(), regions: all.collect() }
    }

    pub fn descriptors(&self) -> String {
        let all = std::iter::once(&self.control).chain(&self.regions);
        all.map(|memory| memory.writer_fd().as_raw_fd().to_string()).collect::<Vec<_>>().join(",")
    }

    fn region(&self, number: u64) -> &Memfd {
        &self.regions[usize::try_from(number).unwrap()]
    }

    pub fn segment(&self, publisher: u64) -> &Memfd {
        self.region(publisher * 2)
    }

    pub fn interest(&self, publisher: u64) -> &Memfd {
        self.region(publisher * 2 + 1)
    }

    pub fn inbox(&self, subscriber: u64) -> &Memfd {
        self.region(PUBLISHERS * 2 + subscriber)
    }

    /// A ring or a table, depending on the policy.
    pub fn way(&self, publisher: u64, subscriber: u64) -> &Memfd {
        self.region(PUBLISHERS * 2 + SUBSCRIBERS + publisher * SUBSCRIBERS + subscriber)
    }

    pub fn entries() -> u64 {
        ENTRIES
    }

    pub fn stop(&self) -> &AtomicU64 {
        &self.control.words()[word::STOP]
    }

    pub fn of_publisher(&self, publisher: u64, what: usize) -> &AtomicU64 {
        &self.control.words()[8 + usize::try_from(publisher).unwrap() * 8 + what]
    }

    pub fn of_subscriber(&self, publisher: u64, subscriber: u64, what: usize) -> &AtomicU64 {
        let line = PUBLISHERS + 1 + publisher * SUBSCRIBERS + subscriber;
        &self.control.words()[usize::try_from(line).unwrap() * 8 + what]
    }

    pub fn is_stopping(&self) -> bool {
        self.stop().load(Ordering::Acquire) != 0
    }
}
