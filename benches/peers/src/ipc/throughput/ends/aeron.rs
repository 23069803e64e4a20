//! Aeron over IPC: a publication with several subscriptions, which waits for the slowest.

use super::{Counted, Got, Shared, bytes_of, opened, read as read_all, write as write_all};
use crate::ipc::one_way::ends::aeron::{CHANNEL, apart, client, driver, told, wait_for};
use anyhow::bail;
use rusteron_media_driver::{AeronOfferError, Handlers};
use std::{path::Path, time::Duration};

const STREAM: i32 = 1;

/// The writer's process has the driver.
pub fn write<const WORDS: usize>(shared: &Shared, folder: &Path, time: Duration) -> anyhow::Result<Counted> {
    let folder = folder.join("aeron");
    let _driver = apart::run(|| driver::start(&folder))?;
    let client = apart::run(|| client(&folder))?;
    let publication = told("publication", client.async_add_exclusive_publication(CHANNEL, STREAM))?;
    let publication = wait_for("publication", || told("publication", publication.poll()))?;
    let counted = write_all::<WORDS>(shared, time, |message| {
        loop {
            match publication.offer(bytes_of(message)) {
                Ok(_) => return Ok(()),
                Err(
                    AeronOfferError::BackPressured
                    | AeronOfferError::AdminAction
                    | AeronOfferError::NotConnected,
                ) => {
                    lowlat_ipc::relax();
                }
                Err(error) => bail!("Aeron, offer: {error:?}"),
            }
        }
    });
    // Readers need the driver until they have read everything.
    std::thread::sleep(Duration::from_secs(1));
    counted
}

pub fn read(shared: &Shared, folder: &Path) -> anyhow::Result<Counted> {
    let folder = folder.join("aeron");
    opened(|| folder.join("cnc.dat").is_file().then_some(()))?;
    let client = apart::run(|| client(&folder))?;
    let (none, nobody) = (Handlers::NONE, Handlers::NONE);
    let subscription = told("subscription", client.async_add_subscription(CHANNEL, STREAM, none, nobody))?;
    let subscription = wait_for("subscription", || told("subscription", subscription.poll()))?;
    let image = wait_for("image", || Ok(subscription.image_at_index(0)))?;
    let mut payload = Vec::new();
    read_all(shared, || {
        let mut got = Got::Nothing;
        let take = |bytes: &[u8], _| {
            payload.clear();
            payload.extend_from_slice(bytes);
            got = Got::Message;
        };
        told("poll", image.poll_fn(take, 1))?;
        Ok(got)
    })
}
