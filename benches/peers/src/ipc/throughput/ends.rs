//! Writers and readers of all transports.

#[cfg(feature = "aeron")]
mod aeron;
#[cfg(feature = "iceoryx2")]
mod iceoryx2;

use super::{Counted, RING_BYTES, Rival, Shared};
use anyhow::{Context, bail};
use lowlat_ipc::stream::{Owner, Read, Reader, Segment, Stamp, Writer};
use ringfire::{RingConsumer, RingProducer};
use std::{
    path::Path,
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

/// Messages between two looks at the clock.
const BATCH: u64 = 256;

/// Runs the writer, or a reader if it has no readers.
pub fn run<const WORDS: usize>(
    rival: Rival,
    shared: &Shared,
    folder: &Path,
    readers: u32,
    time: Duration,
) -> anyhow::Result<Counted> {
    match (rival, readers > 0) {
        (Rival::Lowlat, true) => {
            let made = Segment::create(shared.segment(), RING_BYTES, 1, 1, 0, Owner::current()?)?;
            let mut writer = Writer::new(made);
            write::<WORDS>(shared, time, |message| {
                writer.publish(&Stamp::default(), bytes_of(message))?;
                Ok(())
            })
        }
        (Rival::Lowlat, false) => {
            let segment = opened(|| Segment::open(shared.segment()).ok())?;
            let (mut reader, mut payload) = (Reader::from_start(segment), Vec::with_capacity(WORDS * 8));
            read(shared, || match reader.next(&mut payload) {
                Read::Record(_) => Ok(Got::Message),
                Read::Nothing => Ok(Got::Nothing),
                Read::Gap { .. } | Read::Damaged { .. } => Ok(Got::Lost),
                Read::Ended { .. } => bail!("the stream ended"),
            })
        }
        (Rival::Ringfire, true) => {
            let slots = RING_BYTES / (u64::try_from(WORDS)? * 8);
            let mut producer = RingProducer::<[u64; WORDS]>::create(folder.join("ring"), slots)?;
            write::<WORDS>(shared, time, |message| {
                producer.push(message);
                Ok(())
            })
        }
        (Rival::Ringfire, false) => {
            let path = folder.join("ring");
            let attach = || RingConsumer::<[u64; WORDS]>::builder().start_from_oldest().attach(&path).ok();
            let mut consumer = opened(attach)?;
            read(shared, || {
                Ok(consumer.try_recv().map_or(Got::Nothing, |message| {
                    std::hint::black_box(message);
                    Got::Message
                }))
            })
        }
        #[cfg(feature = "iceoryx2")]
        (Rival::Iceoryx2, true) => iceoryx2::write::<WORDS>(shared, folder, readers, time),
        #[cfg(feature = "iceoryx2")]
        (Rival::Iceoryx2, false) => iceoryx2::read::<WORDS>(shared, folder),
        #[cfg(feature = "aeron")]
        (Rival::Aeron, true) => aeron::write::<WORDS>(shared, folder, time),
        #[cfg(feature = "aeron")]
        (Rival::Aeron, false) => aeron::read(shared, folder),
        #[cfg(not(all(feature = "aeron", feature = "iceoryx2")))]
        (other, _) => bail!("{}: {}", other.name(), other.missing().unwrap_or_default()),
    }
}

/// The bytes of a message.
fn bytes_of<const WORDS: usize>(message: &[u64; WORDS]) -> &[u8] {
    // SAFETY: words have no padding, every byte is initialised, and bytes need no alignment.
    unsafe { std::slice::from_raw_parts(message.as_ptr().cast(), WORDS * 8) }
}

/// Waits until the writer has made it.
fn opened<T>(mut open: impl FnMut() -> Option<T>) -> anyhow::Result<T> {
    let begun = Instant::now();
    loop {
        if let Some(opened) = open() {
            return Ok(opened);
        }
        let left = Duration::from_secs(20).checked_sub(begun.elapsed());
        left.context("the writer has made nothing to open")?;
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Sends for that time.
fn write<const WORDS: usize>(
    shared: &Shared,
    time: Duration,
    mut send: impl FnMut(&[u64; WORDS]) -> anyhow::Result<()>,
) -> anyhow::Result<Counted> {
    shared.ready();
    let (begun, mut messages) = (Instant::now(), 0_u64);
    while begun.elapsed() < time {
        for _ in 0..BATCH {
            let mut message = [0; WORDS];
            message[0] = messages;
            send(&message)?;
            messages += 1;
        }
    }
    let elapsed_s = begun.elapsed().as_secs_f64();
    shared.word(super::SENT).store(messages + 1, Ordering::Release);
    Ok(Counted { messages, elapsed_s })
}

/// Result of one look for a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Got {
    Message,
    Nothing,
    Lost,
}

/// Receives until the writer has ended and nothing more comes.
fn read(shared: &Shared, mut receive: impl FnMut() -> anyhow::Result<Got>) -> anyhow::Result<Counted> {
    shared.ready();
    let (begun, mut messages) = (Instant::now(), 0);
    loop {
        match receive()? {
            Got::Message => messages += 1,
            Got::Lost => {}
            Got::Nothing if shared.sent().is_some() => {
                // What was sent before the end was known.
                while receive()? == Got::Message {
                    messages += 1;
                }
                return Ok(Counted { messages, elapsed_s: begun.elapsed().as_secs_f64() });
            }
            Got::Nothing => lowlat_ipc::relax(),
        }
    }
}
