//! Strategies: one in a process, or all in a host.

use super::{Layout, follow};
use crate::ipc::trial::{
    Scene,
    clock::now_ns,
    message::{PAYLOAD_BYTES, Words, decode, encode},
    post::Post,
};
use anyhow::Context;
use lowlat_ipc::{doorbell::Futex, stream::Stamp};
use std::ops::Range;

/// Answers each quote with an order.
pub fn run(scene: &Scene, layout: &Layout, post: &mut Post, numbers: Range<u32>) -> anyhow::Result<()> {
    let (inbox, mut places) = layout.desk(scene, numbers)?;
    let mut payload = Vec::with_capacity(PAYLOAD_BYTES);
    let (mut answers, mut lost) = (0, 0);
    post.begin()?;
    let post = &*post;
    follow(post, &inbox, |stream| {
        let place = usize::try_from(stream / 2).ok().and_then(|at| places.get_mut(at));
        let place = place.with_context(|| format!("stream {stream} of no strategy"))?;
        if stream % 2 == 1 {
            while place.answers.ring.take().is_some() {
                answers += 1;
            }
            post.count_answers(answers);
            return Ok(());
        }
        while let Some(position) = place.quotes.ring.take() {
            let Some(quote) = place.quotes.reader.read_at(position, &mut payload) else {
                lost += 1;
                continue;
            };
            let mut words: Words = decode(&payload);
            words[1] = now_ns();
            let stamp = Stamp {
                kind: 2,
                instrument: quote.stamp.instrument,
                source: place.number,
                generated: now_ns(),
                trigger: quote.stamp.generated,
                cause: quote.sequence,
                ..Stamp::default()
            };
            let (writer, router) = &mut place.orders;
            // The table of orders has one key, whatever instrument they name.
            let published = writer.publish_only(&stamp, &encode(&words))?;
            lost += u64::from(router.deliver(0, published.position, &Futex).refused);
            writer.prepare();
        }
        Ok(())
    })?;
    post.count_lost(lost);
    post.report()
}
