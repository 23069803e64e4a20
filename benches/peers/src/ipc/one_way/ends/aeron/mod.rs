//! Aeron over IPC: a publication and the image of a subscription each way, and the media driver that both sides need.

pub mod apart;
pub mod driver;

use super::{Bytes, Channel, Transport};
use crate::ipc::{one_way::End, trial::message::PAYLOAD_BYTES};
use anyhow::{Context, anyhow, bail, ensure};
use rusteron_media_driver::{
    Aeron, AeronCError, AeronContext, AeronDriver, AeronExclusivePublication, AeronImage, AeronOfferError,
    AeronSubscription, Handlers,
};
use std::{
    ffi::{CStr, CString},
    path::Path,
    thread,
    time::{Duration, Instant},
};

pub const CHANNEL: &CStr = c"aeron:ipc";
/// Longest wait for the driver and the other side.
const PATIENCE: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(1);

/// Aeron keeps its error text only until its next call.
pub fn told<T>(what: &str, result: Result<T, AeronCError>) -> anyhow::Result<T> {
    result.map_err(|error| anyhow!("Aeron, {what}: {}", error.capture_errmsg()))
}

/// One stream in each direction. Fields are dropped in order, because each needs those after it.
#[derive(Debug)]
pub struct Ipc {
    there: AeronExclusivePublication,
    back: AeronImage,
    /// Keeps `back`, its image, alive.
    _subscription: AeronSubscription,
    _client: Aeron,
    /// On the side that echoes.
    _driver: Option<AeronDriver>,
}

impl Ipc {
    pub fn new(channel: &Channel) -> anyhow::Result<Self> {
        let folder = channel.folder.join("aeron");
        let (driver, there, back) = match channel.end {
            End::Ping => (None, 1, 2),
            End::Echo => (Some(apart::run(|| driver::start(&folder))?), 2, 1),
        };
        channel.meet(1);
        let client = apart::run(|| client(&folder))?;
        // lowlat's stream has one writer as well.
        let there = told("publication", client.async_add_exclusive_publication(CHANNEL, there))?;
        let (none, nobody) = (Handlers::NONE, Handlers::NONE);
        let back = told("subscription", client.async_add_subscription(CHANNEL, back, none, nobody))?;
        let there = wait_for("publication", || told("publication", there.poll()))?;
        let subscription = wait_for("subscription", || told("subscription", back.poll()))?;
        wait_for("reader of its own stream", || Ok(there.is_connected().then_some(())))?;
        let back = wait_for("image of the other side's stream", || Ok(subscription.image_at_index(0)))?;
        Ok(Self { there, back, _subscription: subscription, _client: client, _driver: driver })
    }
}

impl Transport for Ipc {
    type Message = Bytes;

    fn send(&mut self, message: &Bytes) -> anyhow::Result<()> {
        // A claim and a commit take a third longer, though they copy once less: the reader has time to take the line of
        // the frame's head away before the payload is in it.
        loop {
            match self.there.offer(message) {
                Ok(_) => return Ok(()),
                // The driver has not moved the limit yet, or the term has just ended.
                Err(AeronOfferError::BackPressured | AeronOfferError::AdminAction) => lowlat_ipc::relax(),
                Err(error) => bail!("Aeron, offer: {error:?}"),
            }
        }
    }

    fn receive(&mut self, message: &mut Bytes) -> anyhow::Result<()> {
        let mut bytes = None;
        loop {
            let take = |payload: &[u8], _| {
                let words = message.as_chunks_mut::<8>().0.iter_mut();
                words.zip(payload.as_chunks().0).for_each(|(word, from)| *word = *from);
                bytes = Some(payload.len());
            };
            told("poll", self.back.poll_fn(take, 1))?;
            if let Some(bytes) = bytes {
                ensure!(bytes == PAYLOAD_BYTES, "a payload of {bytes} bytes");
                return Ok(());
            }
            lowlat_ipc::relax();
        }
    }
}

/// A client of the driver. Without an error handler, Aeron prints an error of its background thread and ends the
/// process, so that the run is reported as failed.
pub fn client(folder: &Path) -> anyhow::Result<Aeron> {
    let context = told("settings of a client", AeronContext::new())?;
    told("folder", context.set_dir(&text(folder)?))?;
    told("memory that is there before the run", context.set_pre_touch_mapped_memory(true))?;
    let client = told("client", Aeron::new(&context))?;
    told("client", client.start())?;
    Ok(client)
}

/// Converts a path for C.
fn text(path: &Path) -> anyhow::Result<CString> {
    let path = path.to_str().context("the folder's name is no text")?;
    CString::new(path).context("the folder's name has a zero byte")
}

/// Polls until it is available.
pub fn wait_for<T>(what: &str, mut look: impl FnMut() -> anyhow::Result<Option<T>>) -> anyhow::Result<T> {
    let start = Instant::now();
    loop {
        if let Some(found) = look()? {
            return Ok(found);
        }
        ensure!(start.elapsed() < PATIENCE, "Aeron: no {what} within {} s", PATIENCE.as_secs());
        thread::sleep(LOOK);
    }
}
