//! md and td in one process and one loop: for hosts with too few CPUs for one each.
//!
//! The thread that waits for the next quote's time looks for orders meanwhile, so neither wakes the other nor takes its
//! CPU from it. An order waits at most for one quote to be published, a quote for the orders that are there.

use super::{
    RoleError,
    md::{Md, MdDone, MdOptions, Next},
    td::{Td, TdDone, TdOptions},
};
use crate::{
    clock::now_ns,
    node::{Node, Wait},
};

/// A wait for td's inbox is broken off so often, ns, so that md hears its master.
const SLICE_NS: u64 = 20_000_000;

/// Runs both until td's word to end; md leaves its master when its schedule is over, and td goes on. The nodes joined with
/// [`super::md::join`] and [`super::td::join`].
pub fn run(
    md: Node,
    td: Node,
    md_options: &MdOptions,
    td_options: &TdOptions,
) -> Result<(MdDone, TdDone), RoleError> {
    let mut td = Td::new(td, td_options)?;
    let mut md = Some(Md::new(md, md_options)?);
    let mut md_done = MdDone::default();
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
            // Looking at the clock and at the inbox is all that there is to do until one of them has something.
            (Wait::Fast, Next::At(then_ns)) => {
                let now_ns = now_ns();
                td.rehearse(now_ns, then_ns);
                if let Some(md) = &mut md {
                    md.rehearse(now_ns, then_ns);
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
