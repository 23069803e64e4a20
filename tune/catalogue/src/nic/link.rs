//! Automatic behavior at both ends of a link: pause frames, error correction, energy saving, cache injection.

use super::{NIC, each_nic, judged_nics, parameter};
use lowlat_host::{Reading, snapshot::Nic};
use lowlat_settings::{
    Context, Impact, Judgement, Needs, Risk, Setting, Want,
    change::{
        Proposal,
        nic::{EEE, FEC, PAUSE},
    },
    judge::{self, each::One},
};

const ETHTOOL: &str = "kernel Documentation/networking/ethtool-netlink.rst";

pub(crate) const SETTINGS: &[Setting] = &[
    Setting {
        id: "nic.pause",
        change: pause_frames,
        name: "rx, tx",
        reason: "With pause frames the switch stops this host's sending, and this host stops the switch, for as long as \
                 the other end is slow. One slow receiver then delays everyone who shares its switch port.",
        cost: "A ring that overflows loses packets instead of stopping the sender. Some drivers take the link down for a \
               moment to change it.",
        effective: "ethtool -a IF shows RX: off and TX: off.",
        trading: Want::Value("off"),
        judge: |context, setting| {
            parameter::judge(context, setting, &PAUSE, |_| "the driver has no pause frames").at("ethtool -a")
        },
        sources: &[ETHTOOL],
        ..NIC
    },
    Setting {
        id: "nic.fec",
        change: |context, setting| parameter::change(context, setting, &FEC),
        name: "encoding",
        reason: "Forward error correction collects a block before it passes packets on. BASE-R costs about 80 ns and RS \
                 about 250 ns at each hop.",
        cost: "Without it bit errors lose packets. Cables and optics of 25 Gb/s and more may need it, and both ends must \
               have the same encoding, or the link stays down.",
        risk: Risk::Ras,
        impact: Impact::Low,
        effective: "ethtool --show-fec IF shows Active FEC encoding: Off.",
        trading: Want::Value("off"),
        judge: error_correction,
        sources: &[ETHTOOL, "a measurement of 2018: about 80 ns for BASE-R and 250 ns for RS a hop"],
        ..NIC
    },
    Setting {
        id: "nic.eee",
        change: |context, setting| parameter::change(context, setting, &EEE),
        name: "eee",
        reason: "Energy-Efficient Ethernet puts an idle link to sleep. The next packet waits several microseconds until \
                 it is awake.",
        cost: "More idle power in the link. The link goes down for a moment while both ends agree.",
        risk: Risk::Power,
        effective: "ethtool --show-eee IF shows EEE status: disabled.",
        trading: Want::Value("off"),
        judge: |context, setting| {
            parameter::judge(context, setting, &EEE, |_| "the driver has no Energy-Efficient Ethernet")
                .at("ethtool --show-eee")
        },
        sources: &[ETHTOOL, "IEEE 802.3az-2010"],
        ..NIC
    },
    Setting {
        id: "nic.tph",
        not_planned: "remove notph from pci= on the kernel command line",
        name: "pci=",
        reason: "With TLP Processing Hints a card places received packets in the cache of the CPU that will read them. \
                 pci=notph turns that off for every card.",
        impact: Impact::Low,
        needs_reboot: true,
        effective: "lspci -vv shows Transaction Processing Hints for the card.",
        needs: Needs::since(6, 13).with_config(&["PCIE_TPH"]),
        trading: Want::State("not turned off"),
        judge: processing_hints,
        sources: &["kernel Documentation/PCI/tph.rst"],
        ..NIC
    },
];

/// Turns negotiation off first: with it, drivers such as igb take rx and tx from the other end and ignore the set
/// values.
fn pause_frames(context: &Context<'_>, setting: &Setting) -> Proposal {
    let is_used = |nic: &&Nic| nic.pause.known().is_some_and(|now| now.autoneg && (now.rx || now.tx));
    let negotiating = judged_nics(context).into_iter().filter(is_used);
    let proposal = negotiating.fold(Proposal::default(), |proposal, nic| {
        proposal.step(PAUSE.of(&nic.name, "autoneg"), Reading::Known("on".to_owned()), "off")
    });
    parameter::change_after(proposal, context, setting, &PAUSE)
}

fn error_correction(context: &Context<'_>, _: &Setting) -> Judgement {
    each_nic(context, |nic| {
        One::of(&nic.fec, "the driver has no error correction", |fec| match fec.active.as_deref() {
            Some("off") => One::Good("off".into()),
            Some(active) => One::Wrong(active.to_owned(), String::new()),
            None if fec.configured == ["off"] => One::Good("off".into()),
            None => One::Unknown(format!("{} configured, and no link", fec.configured.join(" "))),
        })
    })
    .at("ethtool --show-fec")
}

fn processing_hints(context: &Context<'_>, _: &Setting) -> Judgement {
    judge::on_line(context, |line| {
        let is_off = line.all("pci").flatten().any(|value| value.split(',').any(|word| word == "notph"));
        if is_off { Judgement::wrong("pci=notph", "") } else { Judgement::good("not turned off") }
    })
}
