//! Loops of the roles: each handles events of its node and calls logic that is independent of processes.
//!
//! | role | writes | reads |
//! |---|---|---|
//! | md | `md`, by instrument | nothing |
//! | strategy, host | `orders.NAME` | its instruments of `md`, its own numbers of `td` |
//! | td | `td`, by strategy | `orders.*`, and `md` if orders are filled against quotes or prices are limited |
//! | platform | md and td in one loop | |
//! | cached, follower | nothing | all of them |
//!
//! Strategy numbers are independent of node numbers: a host has many, and a strategy that is moved out keeps
//! its own.

pub mod cached;
#[cfg(test)]
mod deaths;
pub mod follower;
pub mod host;
pub mod live;
pub mod md;
pub mod md_threads;
pub mod platform;
mod remote;
pub mod td;

use crate::{master::Area, run::tally};
use lowlat_ipc::region::Access;
use lowlat_node::{Event, MD_STREAM, Node, TD_STREAM, ledger};

/// Area with the histograms of the stages.
pub const STAGES_AREA: &str = "stages";

/// Areas that the roles use, for [`crate::master::Options::areas`].
pub fn areas() -> Vec<Area> {
    let stages = crate::stages::StageRecorder::<lowlat_ipc::region::Heap>::BYTES;
    [
        (STAGES_AREA, stages, TD_STREAM, ""),
        (tally::MD_AREA, tally::BYTES, MD_STREAM, ""),
        (tally::TD_AREA, tally::BYTES, TD_STREAM, ""),
        // Strategies look up their open orders and positions.
        (ledger::AREA, ledger::BYTES, TD_STREAM, "orders.*"),
    ]
    .map(|(name, bytes, streams, readers)| Area {
        name: name.to_owned(),
        bytes,
        streams: streams.to_owned(),
        access: Access::Write,
        readers: readers.to_owned(),
    })
    .to_vec()
}

/// Handles the master's messages to a node that reads nothing. Returns whether it may publish from now on, and whether
/// it must stop.
fn hear(node: &mut Node) -> (bool, bool) {
    let (mut may_begin, mut must_stop) = (false, false);
    node.poll(&mut |_, event| match event {
        Event::Begin => may_begin = true,
        Event::Stop => must_stop = true,
        _ => {}
    });
    (may_begin, must_stop)
}
