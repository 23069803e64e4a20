//! Starts md and td for the tests.

use crate::master_thread::MasterThread;
use lowlat_node::{Node, Wait};
use lowlat_trade::{
    md::Lateness,
    roles,
    roles::{
        md::{MdOptions, Source},
        td::{TdDone, TdOptions},
    },
    scenario::Scenario,
    td::{Limits, Matching, Rules},
};
use std::{
    path::Path,
    thread::{self, JoinHandle},
};

/// Number of strategies, with one instrument each.
pub const STRATEGIES: u32 = 8;
pub const QUOTES: u64 = 2000;
/// Low enough for a busy machine.
const RATE_PER_S: f64 = 1000.0;
/// Rings large enough not to be lapped.
pub const RING_BYTES: u64 = 1 << 20;

pub type Md = Lateness;

fn md_options(wait: Wait) -> MdOptions {
    let scenario = Scenario::at_rate(STRATEGIES, RATE_PER_S, QUOTES as f64 / RATE_PER_S).unwrap();
    assert_eq!(scenario.records(), QUOTES);
    MdOptions { source: Source::Simulated { scenario, seed: 1 }, wait, is_endless: false, start_ns: None }
}

/// Starts md and td in one loop.
pub fn start_platform(master: &MasterThread, wait: Wait) -> JoinHandle<(Lateness, TdDone)> {
    let td = master.join(&roles::td::join(RING_BYTES, &td_options().rules, wait));
    let md = master.join(&roles::md::join(STRATEGIES, RING_BYTES, wait));
    thread::spawn(move || roles::platform::run(md, td, &md_options(wait), &td_options()).unwrap())
}

pub fn start_md(master: &MasterThread) -> JoinHandle<Lateness> {
    let node = master.join(&roles::md::join(STRATEGIES, RING_BYTES, Wait::Parked));
    let options = md_options(Wait::Parked);
    thread::spawn(move || {
        let done = roles::md::run(node, &options).unwrap();
        let Lateness { quotes, behind, max_ns, .. } = done;
        println!("md: {quotes} quotes, {behind} behind, at most {max_ns} ns late");
        done
    })
}

fn td_options() -> TdOptions {
    let matching = Matching::AtOnce(1);
    TdOptions { rules: Rules { instruments: STRATEGIES, matching, limits: Limits::default() }, gateway: None }
}

pub fn start_td(master: &MasterThread) -> JoinHandle<TdDone> {
    let node = master.join(&roles::td::join(RING_BYTES, &td_options().rules, Wait::Parked));
    thread::spawn(move || roles::td::run(node, &td_options()).unwrap())
}

/// A td that rejects prices this far from the last quote.
pub fn start_strict_td(master: &MasterThread, per_mille: u32) -> JoinHandle<TdDone> {
    let limits = Limits { price_deviation_max_per_mille: Some(per_mille), ..Limits::default() };
    let rules = Rules { limits, ..td_options().rules };
    let node = master.join(&roles::td::join(RING_BYTES, &rules, Wait::Parked));
    thread::spawn(move || roles::td::run(node, &TdOptions { rules, gateway: None }).unwrap())
}

/// Runs td; called in a separate process.
pub fn run_td(socket: &Path) {
    let node = Node::join(socket, &roles::td::join(RING_BYTES, &td_options().rules, Wait::Parked)).unwrap();
    roles::td::run(node, &td_options()).unwrap();
}
