//! Interfaces that Onload drives over AF_XDP.

use super::{NIC, each_nic, judged_nics};
use lowlat_host::{Reading, snapshot::Nic};
use lowlat_settings::{
    Context, Judgement, Setting, Want,
    change::{Proposal, nic::ONLOAD},
    judge::each::One,
};

pub(crate) const SETTINGS: &[Setting] = &[Setting {
    id: "nic.onload_queues",
    name: "queues",
    reason: "Onload serves sockets over an interface without its own driver only if the interface is registered with it. \
             Without a registration, the kernel serves them, and Onload does not say so.",
    cost: "Onload's AF_XDP sockets take the queues from other programs with such sockets.",
    effective: "lowlat onload status shows the interface with its queues.",
    trading: Want::State("registered, if the role uses Onload"),
    judge: registered,
    change: register,
    sources: &[
        "Xilinx-CNS/onload README: AF_XDP",
        "Xilinx-CNS/onload issue 337: silent fallback to the kernel",
    ],
    ..NIC
}];

/// A queue for each pair of the interface's own.
fn wanted(nic: &Nic) -> u32 {
    nic.channels.known().map_or(1, |channels| channels.combined.max(1))
}

fn registered(context: &Context<'_>, _: &Setting) -> Judgement {
    each_nic(context, |nic| match &nic.onload_queues {
        Reading::Known(0) if context.role.is_using_onload => {
            One::Wrong("not registered".into(), "the role says that Onload drives it".into())
        }
        Reading::Known(0) | Reading::Absent if !context.role.is_using_onload => {
            One::Skip("the role does not use Onload".into())
        }
        Reading::Known(queues) => One::Good(format!("{queues} registered")),
        Reading::Absent => One::Unknown(
            "Onload's module is not loaded, or does not list interfaces, or drives it itself".into(),
        ),
        other => One::missing(other),
    })
    .at("/sys/kernel/debug/sfc_resource/nics")
}

fn register(context: &Context<'_>, setting: &Setting) -> Proposal {
    let mut proposal = Proposal::default();
    for nic in judged_nics(context) {
        if context.role.is_using_onload && nic.onload_queues == Reading::Known(0) {
            let before = Reading::Known("0".to_owned());
            proposal = proposal.step(ONLOAD.of(&nic.name, setting.name), before, wanted(nic).to_string());
        }
    }
    proposal
}
