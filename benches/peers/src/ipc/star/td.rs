//! Orders in, answers out.

use super::{Layout, follow};
use crate::ipc::trial::{
    Scene,
    board::Count,
    clock::now_ns,
    message::{PAYLOAD_BYTES, decode},
    post::Post,
    samples::Times,
};
use anyhow::Context;
use lowlat_ipc::{doorbell::Futex, stream::Stamp};

/// Answers every order, and takes the times.
pub fn run(scene: &Scene, layout: &Layout, post: &mut Post) -> anyhow::Result<()> {
    let (mut writer, mut router) = layout.td(scene)?;
    let (inbox, mut streams) = layout.orders(scene)?;
    let mut samples = scene.samples();
    let mut payload = Vec::with_capacity(PAYLOAD_BYTES);
    let (mut count, mut lost) = (0, 0);
    post.begin()?;
    let post = &*post;
    follow(post, &inbox, |stream| {
        let orders = usize::try_from(stream).ok().and_then(|at| streams.get_mut(at));
        let orders = orders.with_context(|| format!("stream {stream} of no strategy"))?;
        while let Some(position) = orders.ring.take() {
            let Some(order) = orders.reader.read_at(position, &mut payload) else {
                lost += 1;
                continue;
            };
            let taken = now_ns();
            let [scheduled, received, ..] = decode(&payload);
            samples.push(&Times {
                scheduled,
                quoted: order.stamp.trigger,
                received,
                ordered: order.stamp.generated,
                taken,
            });
            let stamp = Stamp {
                kind: 3,
                instrument: order.stamp.source,
                generated: now_ns(),
                trigger: order.stamp.generated,
                cause: order.sequence,
                ..Stamp::default()
            };
            let (_, delivered) = router.publish(&mut writer, &stamp, &payload, &Futex)?;
            lost += u64::from(delivered.refused);
            count += 1;
            post.count(Count::Orders, count);
            post.count(Count::Answers, count);
        }
        Ok(())
    })?;
    post.count_lost(lost);
    post.report()
}
