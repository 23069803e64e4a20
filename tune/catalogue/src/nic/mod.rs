//! Network interfaces: the link, automatic functions of the adapter, queues and their CPUs.

pub(super) mod hardware;
pub(super) mod link;
pub(super) mod losses;
pub(super) mod moderation;
pub(super) mod napi;
pub(super) mod onload;
mod parameter;
pub(super) mod queues;
pub(super) mod rings;
pub(super) mod rss;
pub(super) mod timestamps;

use lowlat_host::{
    HostSnapshot,
    snapshot::{Irq, Nic},
};
use lowlat_settings::{
    Context, Judgement, Layer, Setting,
    judge::{
        each::{One, judge_each},
        missing,
    },
};

/// A row of interfaces.
const NIC: Setting = Setting { layer: Layer::Nic, ..Setting::BLANK };

const NICS: &str = "/sys/class/net";
/// Text for a host without an interface to judge.
const NO_NIC: &str = "this host has no physical network interface in use";

/// The interfaces that the NIC rows judge.
fn judged_nics<'a>(context: &Context<'a>) -> Vec<&'a Nic> {
    context.role.trading_nics(context.host).collect()
}

/// Judges each interface that matters.
pub(super) fn each_nic(context: &Context<'_>, judge: impl Fn(&Nic) -> One) -> Judgement {
    each_of(context, judged_nics(context), judge)
}

/// Judges each of these interfaces.
fn each_of(context: &Context<'_>, nics: Vec<&Nic>, judge: impl Fn(&Nic) -> One) -> Judgement {
    let listed = context.host.listed(NICS, ());
    if nics.is_empty() && !listed.is_known() {
        return missing(&listed, NICS);
    }
    judge_each(nics.into_iter().map(|nic| (nic.name.clone(), judge(nic))), NO_NIC)
}

/// The numbered interrupts of an interface.
pub(super) fn nic_irqs<'a>(host: &'a HostSnapshot, nic: &Nic) -> Vec<&'a Irq> {
    host.interrupts.irqs.iter().filter(|irq| nic.irqs.contains(&irq.number)).collect()
}
