//! The least that such processes can do: each has one ring in shared memory and one futex word, and a record is a slot
//! of two cache lines. No router, interest, loss policy, restart or check of what others write: what those cost is the
//! difference to the other contestants.
//!
//! ```text
//! words of a ring
//!   0  the futex word: 1 while its reader sleeps
//!  16  number of slots taken by writers
//!  32  slots of 16 words: its number + 1 once it is written; 7 words of data; 8 words as long as a payload
//! ```

use super::trial::{
    Role, Scene, SubjectLayout,
    board::Count,
    clock::{now_ns, wait_until},
    load::Load,
    memory::{Cutter, Part},
    post::Post,
    samples::Times,
};
use anyhow::{Context as _, ensure};
use lowlat_ipc::region::Region as _;
use rustix::thread::futex;
use std::{
    ops::Range,
    sync::atomic::{AtomicU32, AtomicU64, Ordering, fence},
};

const TAKEN: usize = 16;
const SLOTS: usize = 32;
const SLOT_WORDS: usize = 16;
/// Slots of a ring: half a second at 8,000 quotes a second. A writer that laps its reader ends the trial.
const COUNT: u64 = 4096;
const BYTES: u64 = (SLOTS as u64 + COUNT * SLOT_WORDS as u64) * 8;
/// Longest sleep: every record wakes its reader, and the end of a trial is noticed.
const SLEEP: futex::Timespec = futex::Timespec { tv_sec: 1, tv_nsec: 0 };
/// Turns of a spinning loop between two checks of the phase.
const TURNS: u32 = 64;

/// Memory of the whole trial.
#[derive(Debug)]
pub struct Layout {
    td: Range<u64>,
    strategies: Vec<Range<u64>>,
}

impl Layout {
    /// Cuts the memory for a load.
    pub fn cut(cutter: &mut Cutter, load: &Load) -> Self {
        let td = cutter.cut(BYTES);
        Self { td, strategies: (0..load.strategies).map(|_| cutter.cut(BYTES)).collect() }
    }
}

/// Data of a slot: scheduled, quoted, received, ordered, strategy, and two more.
type Data = [u64; 7];

struct Ring {
    memory: Part,
    /// Slots that this process has read.
    read: u64,
}

impl Ring {
    fn of(scene: &Scene, bytes: &Range<u64>) -> Self {
        Self { memory: scene.part(bytes), read: 0 }
    }

    fn slot(&self, number: u64) -> &[AtomicU64] {
        let at = SLOTS + usize::try_from(number % COUNT).unwrap_or(0) * SLOT_WORDS;
        self.memory.words().get(at..at + SLOT_WORDS).unwrap_or_default()
    }

    fn bell(&self) -> Option<&AtomicU32> {
        let word = self.memory.words().first()?;
        // SAFETY: the word is eight aligned bytes of a live mapping, so its first four are an aligned AtomicU32, of which
        // any bytes are valid; it lives as long as the ring. No process accesses this word otherwise.
        Some(unsafe { &*std::ptr::from_ref(word).cast::<AtomicU32>() })
    }

    /// Writes a slot, and wakes the reader if it sleeps.
    fn put(&self, data: &Data) {
        let Some(taken) = self.memory.words().get(TAKEN) else { return };
        // Relaxed: the slot's own number publishes it.
        let number = taken.fetch_add(1, Ordering::Relaxed);
        let slot = self.slot(number);
        let padding = [0; SLOT_WORDS - 8];
        for (word, value) in slot.iter().skip(1).zip(data.iter().chain(&padding)) {
            word.store(*value, Ordering::Relaxed);
        }
        if let Some(word) = slot.first() {
            // Pairs with the load in `take`.
            word.store(number + 1, Ordering::Release);
        }
        // Pairs with the fence in `wait`.
        fence(Ordering::SeqCst);
        if let Some(bell) = self.bell()
            && bell.load(Ordering::Relaxed) == 1
            && bell.swap(0, Ordering::Relaxed) == 1
        {
            let _ = futex::wake(bell, futex::Flags::empty(), 1);
        }
    }

    fn is_ready(&self) -> bool {
        // Pairs with the store in `put`.
        self.slot(self.read).first().is_some_and(|word| word.load(Ordering::Acquire) > self.read)
    }

    fn take(&mut self) -> anyhow::Result<Option<Data>> {
        if !self.is_ready() {
            return Ok(None);
        }
        let slot = self.slot(self.read);
        let number = slot.first().map_or(0, |word| word.load(Ordering::Relaxed));
        ensure!(number == self.read + 1, "a reader was lapped: the machine is too busy for this rate");
        let mut data = Data::default();
        for (to, word) in data.iter_mut().zip(slot.iter().skip(1)) {
            *to = word.load(Ordering::Relaxed);
        }
        self.read += 1;
        Ok(Some(data))
    }

    /// Waits until there may be something.
    fn wait(&self, is_spinning: bool) {
        if is_spinning {
            for _ in 0..TURNS {
                if self.is_ready() {
                    return;
                }
                lowlat_ipc::relax();
            }
            return;
        }
        let Some(bell) = self.bell() else { return };
        bell.store(1, Ordering::Relaxed);
        // Pairs with the fence in `put`.
        fence(Ordering::SeqCst);
        if !self.is_ready() {
            let _ = futex::wait(bell, futex::Flags::empty(), 1, Some(&SLEEP));
        }
        bell.store(0, Ordering::Relaxed);
    }
}

/// Runs one process of the trial.
pub fn play(scene: &Scene, post: &mut Post) -> anyhow::Result<()> {
    let SubjectLayout::Floor(layout) = &scene.layout.subject else {
        anyhow::bail!("the trial is of another subject");
    };
    match post.role {
        Role::Md => md(scene, layout, post),
        Role::Td => td(scene, layout, post),
        Role::Strategy(number) => strategy(scene, layout, post, number),
        Role::Host | Role::Master | Role::Cached => {
            anyhow::bail!("{} has no part in the floor", post.role.name())
        }
    }
}

fn md(scene: &Scene, layout: &Layout, post: &mut Post) -> anyhow::Result<()> {
    let rings: Vec<Ring> = layout.strategies.iter().map(|bytes| Ring::of(scene, bytes)).collect();
    let start_ns = post.begin()?;
    for tick in 0..scene.load.ticks {
        let scheduled = start_ns + scene.load.due_ns(tick);
        if !wait_until(scheduled, post.is_spinning, || post.is_over()) {
            break;
        }
        let instrument = usize::try_from(scene.load.instrument(tick))?;
        let ring = rings.get(instrument).context("an instrument of no strategy")?;
        ring.put(&[scheduled, now_ns(), 0, 0, 0, 0, 0]);
        post.count(Count::Published, tick + 1);
    }
    wait_until(u64::MAX, false, || post.is_over());
    post.report()
}

fn strategy(scene: &Scene, layout: &Layout, post: &mut Post, number: u32) -> anyhow::Result<()> {
    let own = layout.strategies.get(usize::try_from(number)?).context("no such strategy")?;
    let (mut ring, td) = (Ring::of(scene, own), Ring::of(scene, &layout.td));
    let mut answers = 0;
    post.begin()?;
    while !post.is_over() {
        ring.wait(post.is_spinning);
        while let Some([scheduled, quoted, _, _, is_answer, ..]) = ring.take()? {
            if is_answer == 0 {
                let received = now_ns();
                td.put(&[scheduled, quoted, received, now_ns(), u64::from(number), 0, 0]);
            } else {
                answers += 1;
                post.count_answers(answers);
            }
        }
    }
    post.report()
}

fn td(scene: &Scene, layout: &Layout, post: &mut Post) -> anyhow::Result<()> {
    let rings: Vec<Ring> = layout.strategies.iter().map(|bytes| Ring::of(scene, bytes)).collect();
    let mut own = Ring::of(scene, &layout.td);
    let mut samples = scene.samples();
    let mut count = 0;
    post.begin()?;
    while !post.is_over() {
        own.wait(post.is_spinning);
        while let Some([scheduled, quoted, received, ordered, number, ..]) = own.take()? {
            let taken = now_ns();
            let ring = rings.get(usize::try_from(number)?).context("an order of no strategy")?;
            ring.put(&[scheduled, quoted, received, ordered, 1, 0, 0]);
            samples.push(&Times { scheduled, quoted, received, ordered, taken });
            count += 1;
            post.count(Count::Orders, count);
            post.count(Count::Answers, count);
        }
    }
    post.report()
}
