//! The same processes over lowlat-ipc alone: no master, no registry, no ledger. What lowlat's runtime costs is the
//! difference to `lowlat pipeline run`.

mod desk;
mod layout;
mod md;
mod td;

pub use layout::{Layout, prepare, wake_all, wakes};

use super::trial::{Role, Scene, SubjectLayout, post::Post};
use lowlat_ipc::{doorbell::Futex, inbox::Inbox, region::Region};
use std::time::Duration;

/// Longest sleep. Every record rings the bell; this is a safety net for a lost one.
const SLEEP_MAX: Duration = Duration::from_secs(10);
/// Stream that wakes all processes at the end; no strategy uses it.
const END_STREAM: u32 = lowlat_ipc::inbox::STREAMS_MAX - 1;
/// Turns of a spinning loop between two checks of the phase.
const TURNS: u32 = 64;

/// Runs one process of the star.
pub fn play(scene: &Scene, post: &mut Post) -> anyhow::Result<()> {
    let SubjectLayout::IpcStar(layout) = &scene.layout.subject else {
        anyhow::bail!("the trial is of another subject");
    };
    match post.role {
        Role::Md => md::run(scene, layout, post),
        Role::Td => td::run(scene, layout, post),
        Role::Strategy(number) => desk::run(scene, layout, post, number..number + 1),
        Role::Host => desk::run(scene, layout, post, 0..scene.load.strategies),
        Role::Master | Role::Cached => anyhow::bail!("{} has no part in the star", post.role.name()),
    }
}

/// Takes what an inbox has, stream by stream, until the trial is over. Sleeps in between unless the process spins.
fn follow<R: Region>(
    post: &Post,
    inbox: &Inbox<R>,
    mut take: impl FnMut(u32) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    // All that a subscriber can have, so that nothing is allocated during the trial.
    let mut streams = Vec::with_capacity(lowlat_ipc::inbox::STREAMS_MAX as usize);
    while !post.is_over() {
        if post.is_spinning {
            for _ in 0..TURNS {
                if inbox.is_ready() {
                    break;
                }
                lowlat_ipc::relax();
            }
        } else {
            inbox.wait(&Futex, SLEEP_MAX);
        }
        streams.clear();
        inbox.take_ready(|stream| streams.push(stream));
        for stream in streams.iter().filter(|stream| **stream != END_STREAM) {
            take(*stream)?;
        }
    }
    Ok(())
}
