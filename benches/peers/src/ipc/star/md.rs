//! Quotes by the schedule.

use super::Layout;
use crate::ipc::trial::{
    Scene,
    board::Count,
    clock::{now_ns, wait_until},
    message::{Words, encode},
    post::Post,
};
use lowlat_ipc::{doorbell::Futex, stream::Stamp};

/// Publishes quotes, each to the strategy of its instrument.
pub fn run(scene: &Scene, layout: &Layout, post: &mut Post) -> anyhow::Result<()> {
    let (mut writer, mut router) = layout.md(scene)?;
    let start_ns = post.begin()?;
    let mut refused = 0;
    for tick in 0..scene.load.ticks {
        let scheduled = start_ns + scene.load.due_ns(tick);
        if !wait_until(scheduled, post.is_spinning, || post.is_over()) {
            break;
        }
        let mut payload = Words::default();
        payload[0] = scheduled;
        let instrument = scene.load.instrument(tick);
        let now = now_ns();
        let stamp = Stamp { kind: 1, instrument, generated: now, trigger: now, ..Stamp::default() };
        let (_, delivered) = router.publish(&mut writer, &stamp, &encode(&payload), &Futex)?;
        refused += u64::from(delivered.refused);
        post.count(Count::Published, tick + 1);
    }
    post.count_lost(refused);
    wait_until(u64::MAX, false, || post.is_over());
    post.report()
}
