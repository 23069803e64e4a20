//! Receives frames.

use super::{ANSWER_MAX, Link, refused, text};
use crate::{
    closed,
    receiver::{Receiver, ReceiverEvent},
};
use lowlat_node::Refusal;
use rusteron_media_driver::{AeronFragmentClosureAssembler, AeronHeader, AeronSubscription, Handlers};

/// Maximum number of fragments per poll.
const FRAGMENTS: usize = 64;

pub struct Subscription {
    inner: AeronSubscription,
    /// Assembles frames that are longer than a packet.
    assembler: AeronFragmentClosureAssembler,
    link: Link,
}

/// State that a poll lends to its callback.
struct PollState<'a> {
    receiver: &'a mut Receiver,
    say: &'a mut dyn FnMut(ReceiverEvent),
    failed: Option<Refusal>,
}

impl Subscription {
    /// To this channel and stream.
    pub fn add(link: Link, channel: &str, stream_id: i32) -> Result<Self, Refusal> {
        let failed = |source| {
            let doing = format!("subscribe to {channel}, stream {stream_id}");
            refused(&doing, source, "check the channel's address and the driver")
        };
        let (channel_text, none) = (text(channel), Handlers::NONE);
        let adding = link
            .aeron
            .async_add_subscription(&channel_text, stream_id, none, Handlers::NONE)
            .map_err(failed)?;
        let subscription = adding.poll_blocking(ANSWER_MAX).map_err(failed)?;
        let assembler = AeronFragmentClosureAssembler::new().map_err(failed)?;
        Ok(Self { inner: subscription, assembler, link })
    }

    /// Passes available frames to the receiver, and never blocks. Returns the number of fragments.
    pub fn poll(
        &mut self,
        receiver: &mut Receiver,
        say: &mut dyn FnMut(ReceiverEvent),
    ) -> Result<usize, Refusal> {
        let mut taking = PollState { receiver, say, failed: None };
        let taken = self.assembler.poll(&self.inner, &mut taking, take, FRAGMENTS);
        if let Some(failed) = taking.failed {
            return Err(failed);
        }
        let taken = taken.map_err(|source| refused("poll the subscription", source, "check the driver"))?;
        if taken == 0
            && let Some(words) = self.link.failed()
        {
            return Err(closed(&words));
        }
        Ok(usize::try_from(taken).unwrap_or(0))
    }

    /// Returns true if a sender is connected.
    pub fn is_connected(&self) -> bool {
        self.inner.is_connected()
    }
}

fn take(taking: &mut PollState<'_>, message: &[u8], _: AeronHeader) {
    if taking.failed.is_none()
        && let Err(error) = taking.receiver.take(message, &mut taking.say)
    {
        taking.failed = Some(error);
    }
}
