//! Sends frames.

use super::{ANSWER_MAX, Link, refused, text};
use crate::{Carrier, Offered};
use lowlat_node::Refusal;
use rusteron_media_driver::{AeronExclusivePublication, AeronOfferError};

/// A publication written only by this process.
#[derive(Debug)]
pub struct Publication {
    inner: AeronExclusivePublication,
    message_bytes_max: usize,
    link: Link,
}

impl Publication {
    /// On this channel (`aeron:udp?endpoint=HOST:PORT`, a multicast group, or `aeron:ipc`) and stream.
    pub fn add(link: Link, channel: &str, stream_id: i32) -> Result<Self, Refusal> {
        let failed = |source| {
            let doing = format!("publish on {channel}, stream {stream_id}");
            refused(&doing, source, "check the channel's address and the driver")
        };
        let adding = link.aeron.async_add_exclusive_publication(&text(channel), stream_id).map_err(failed)?;
        let publication = adding.poll_blocking(ANSWER_MAX).map_err(failed)?;
        let constants = publication.get_constants().map_err(failed)?;
        Ok(Self { inner: publication, message_bytes_max: constants.max_message_length(), link })
    }
}

impl Carrier for Publication {
    #[inline]
    fn offer(&mut self, frame: &[u8]) -> Offered {
        if frame.len() > self.message_bytes_max {
            return Offered::TooLong;
        }
        match self.inner.offer(frame) {
            Ok(_) => Offered::Taken,
            // An administrative action takes only a moment.
            Err(AeronOfferError::BackPressured | AeronOfferError::AdminAction) => Offered::BackPressure,
            Err(AeronOfferError::NotConnected) => match self.link.failed() {
                None => Offered::NotConnected,
                Some(words) => Offered::Closed(words),
            },
            Err(error) => Offered::Closed(self.link.failed().unwrap_or_else(|| format!("{error:?}"))),
        }
    }

    #[inline]
    fn is_connected(&self) -> bool {
        self.inner.is_connected()
    }
}
