//! md and td in one process and one loop: for hosts with too few CPUs for both.
//!
//! While the thread waits for the due time of the next quote, it polls for orders, so neither role wakes the
//! other or takes its CPU time. An order waits at most for the publication of one quote, a quote for the
//! pending orders.

use super::{
    md::{Md, MdOptions, Next},
    td::{Td, TdDone, TdOptions},
};
use crate::md::Lateness;
use lowlat_node::{Node, Refusal, Wait, clock::now_ns};

/// Longest wait for td's inbox, ns, so that md handles messages of its master.
const SLICE_NS: u64 = 20_000_000;

/// Runs both until td is stopped; md leaves its master when its schedule has ended, and td continues. The nodes
/// joined with [`super::md::join`] and [`super::td::join`].
pub fn run(
    md: Node,
    td: Node,
    md_options: &MdOptions,
    td_options: &TdOptions,
) -> Result<(Lateness, TdDone), Refusal> {
    let mut td = Td::new(td, td_options)?;
    let mut md = Some(Md::new(md, md_options));
    let mut md_done = Lateness::default();
    while td.is_open() {
        let next = md.as_mut().map_or(Ok(Next::Never), Md::step)?;
        if next == Next::Never
            && let Some(md) = md.take()
        {
            md_done = md.end()?;
        }
        let events = td.poll()?;
        if events > 0 || next == Next::Now {
            continue;
        }
        match (md_options.wait, next) {
            // Until either has work, only the clock and the inbox are polled.
            (Wait::Fast, Next::At(then_ns)) => {
                let now_ns = now_ns();
                for node in md.iter_mut().map(|md| &mut md.node).chain([&mut td.node]) {
                    node.rehearse(now_ns, then_ns, &mut |_, _| ());
                }
                lowlat_ipc::relax();
            }
            (_, Next::At(then_ns)) => td.wait(Some(then_ns.min(now_ns() + SLICE_NS))),
            (_, Next::Word) => td.wait(Some(now_ns() + SLICE_NS)),
            _ => td.wait(None),
        }
    }
    Ok((md_done, td.end()?))
}
