//! The floors: a line that goes from core to core, two of them, and a line with a futex.

use super::{Bytes, Channel, EMPTY, Transport};
use crate::ipc::trial::memory::Part;
use anyhow::Context;
use lowlat_ipc::region::Region;
use rustix::thread::futex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The whole payload as one line, its first word last.
fn put(part: &Part, message: &Bytes) {
    let mut words = part.words().iter().zip(message.as_chunks::<8>().0);
    let first = words.next();
    words.for_each(|(to, word)| to.store(u64::from_ne_bytes(*word), Ordering::Relaxed));
    if let Some((to, word)) = first {
        // Pairs with the load in `get`: a reader that sees the number sees the rest.
        to.store(u64::from_ne_bytes(*word), Ordering::Release);
    }
}

/// Copies a new message, and returns its number.
fn get(part: &Part, is_new: impl Fn(u64) -> bool, message: &mut Bytes) -> Option<u64> {
    let number = part.words().first()?.load(Ordering::Acquire);
    is_new(number).then(|| {
        copy(part.words(), message);
        number
    })
}

fn copy(words: &[AtomicU64], message: &mut Bytes) {
    let to = message.as_chunks_mut::<8>().0.iter_mut();
    to.zip(words).for_each(|(to, word)| *to = word.load(Ordering::Relaxed).to_ne_bytes());
}

/// Spinning on a line. Messages are numbered, and no two in a row are the same.
#[derive(Debug)]
pub struct Line {
    there: Part,
    back: Part,
    last: u64,
}

impl Line {
    pub fn new(channel: &Channel) -> Self {
        let [there, back] = channel.directions().map(|direction| channel.part(&direction.line));
        Self { there, back, last: 0 }
    }
}

impl Transport for Line {
    type Message = Bytes;

    fn send(&mut self, message: &Bytes) -> anyhow::Result<()> {
        put(&self.there, message);
        Ok(())
    }

    fn receive(&mut self, message: &mut Bytes) -> anyhow::Result<()> {
        loop {
            if let Some(number) = get(&self.back, |number| number != self.last, message) {
                self.last = number;
                return Ok(());
            }
            lowlat_ipc::relax();
        }
    }
}

const LINE_WORDS: usize = 8;

/// Spinning on a head line that announces the payload line after it: two lines for each message.
#[derive(Debug)]
pub struct Pair {
    there: Part,
    back: Part,
    last: u64,
}

impl Pair {
    pub fn new(channel: &Channel) -> Self {
        let [there, back] = channel.directions().map(|direction| channel.part(&direction.line));
        Self { there, back, last: 0 }
    }
}

impl Transport for Pair {
    type Message = Bytes;

    fn send(&mut self, message: &Bytes) -> anyhow::Result<()> {
        let payload = self.there.words().iter().skip(LINE_WORDS);
        let from = message.as_chunks::<8>().0;
        payload.zip(from).for_each(|(to, word)| to.store(u64::from_ne_bytes(*word), Ordering::Relaxed));
        // The head last, with a new number.
        put(&self.there, message);
        Ok(())
    }

    fn receive(&mut self, message: &mut Bytes) -> anyhow::Result<()> {
        loop {
            let mut head = EMPTY;
            if let Some(number) = get(&self.back, |number| number != self.last, &mut head) {
                self.last = number;
                copy(self.back.words().get(LINE_WORDS..).unwrap_or_default(), message);
                anyhow::ensure!(
                    head.as_chunks::<8>().0.iter().eq(message.as_chunks().0),
                    "a head of {head:?}, and a payload of {message:?}"
                );
                return Ok(());
            }
            lowlat_ipc::relax();
        }
    }
}

/// Words from the line to the futex: pairs of lines are fetched together.
const FUTEX_AT: usize = 32;

/// Sleeping on a futex, with the payload in a line.
#[derive(Debug)]
pub struct Futex {
    there: Part,
    back: Part,
    last: u32,
}

impl Futex {
    pub fn new(channel: &Channel) -> anyhow::Result<Self> {
        let [there, back] = channel.directions().map(|direction| channel.part(&direction.line));
        word(&there).and(word(&back)).context("memory for a futex")?;
        Ok(Self { there, back, last: 0 })
    }
}

fn word(part: &Part) -> Option<&AtomicU32> {
    let word = part.words().get(FUTEX_AT)?;
    // SAFETY: the first half of a word of a live region, aligned as that is, borrowed as long as the region; this word
    // is reached here alone, so that no access is of another size.
    Some(unsafe { AtomicU32::from_ptr(word.as_ptr().cast()) })
}

impl Transport for Futex {
    type Message = Bytes;

    fn send(&mut self, message: &Bytes) -> anyhow::Result<()> {
        put(&self.there, message);
        let word = word(&self.there).context("memory for a futex")?;
        // Pairs with the load in `receive`.
        word.fetch_add(1, Ordering::Release);
        futex::wake(word, futex::Flags::empty(), 1)?;
        Ok(())
    }

    fn receive(&mut self, message: &mut Bytes) -> anyhow::Result<()> {
        let word = word(&self.back).context("memory for a futex")?;
        // Pairs with the change in `send`.
        while word.load(Ordering::Acquire) == self.last {
            // Woken, already changed, or interrupted: check again in each case.
            let _ = futex::wait(word, futex::Flags::empty(), self.last, None);
        }
        self.last = self.last.wrapping_add(1);
        get(&self.back, |_| true, message).context("memory for a line")?;
        Ok(())
    }
}
