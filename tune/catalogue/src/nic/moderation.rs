//! Interrupt moderation of NICs.

use super::{NIC, parameter};
use lowlat_settings::{
    Context, Impact, Judgement, Setting, Want,
    change::{Proposal, nic},
};

const COALESCING: &str = "kernel Documentation/networking/ethtool-netlink.rst: COALESCE_GET";
const ONLOAD: &str = "OpenOnload on Solarflare NICs: prepare the host (2019)";

const ROW: Setting = Setting { change: set_coalescing, judge: is_coalescing, ..NIC };

pub(crate) const SETTINGS: &[Setting] = &[
    Setting {
        id: "nic.rx_usecs",
        name: "rx-usecs",
        reason: "The NIC delays a receive interrupt this long to gather more packets. A packet that arrives \
                 alone waits for nothing.",
        cost: "More interrupts on the housekeeping CPUs under load.",
        impact: Impact::High,
        effective: "ethtool -c IF; round trips over the kernel's stack get shorter.",
        trading: Want::Value("0"),
        sources: &[COALESCING, ONLOAD],
        ..ROW
    },
    Setting {
        id: "nic.adaptive_rx",
        name: "adaptive-rx",
        reason: "The driver changes rx-usecs automatically with the load. The delay of a packet then depends \
                 on the traffic before it, and a manual value does not last.",
        cost: "More interrupts on the housekeeping CPUs under load.",
        effective: "ethtool -c IF shows Adaptive RX: off.",
        trading: Want::Value("off"),
        sources: &[COALESCING, ONLOAD],
        ..ROW
    },
    Setting {
        id: "nic.rx_usecs_irq",
        name: "rx-usecs-irq",
        reason: "How long the NIC delays a receive interrupt while its CPU is in an interrupt. It is a setting of its own: \
                 drivers such as sfc use it where others use rx-usecs.",
        cost: "More interrupts on the housekeeping CPUs under load.",
        effective: "ethtool -c IF shows rx-usecs-irq: 0.",
        trading: Want::Value("0"),
        sources: &[COALESCING, ONLOAD],
        ..ROW
    },
    Setting {
        id: "nic.tx_usecs",
        // Not planned: some drivers (igb) show a separate value for sent packets only with fewer queues, so a plan that
        // sets both would not be complete after one run.
        not_planned: "it delays no packet, and 0 costs an interrupt for each packet sent; set it with ethtool -C IF \
                      tx-usecs 0 if you need transmit time stamps early",
        name: "tx-usecs",
        reason: "The NIC delays the interrupt for sent packets this long. Until then their buffers count as in use, and \
                 transmit time stamps arrive late.",
        cost: "More interrupts on the housekeeping CPUs under load.",
        impact: Impact::Low,
        effective: "ethtool -c IF shows tx-usecs: 0.",
        trading: Want::Value("0"),
        sources: &[COALESCING],
        ..ROW
    },
    Setting {
        id: "nic.adaptive_tx",
        name: "adaptive-tx",
        reason: "The driver changes tx-usecs automatically with the load, and a manual value does not last.",
        cost: "More interrupts on the housekeeping CPUs under load.",
        impact: Impact::Low,
        effective: "ethtool -c IF shows Adaptive TX: off.",
        trading: Want::Value("off"),
        sources: &[COALESCING],
        ..ROW
    },
];

fn is_coalescing(context: &Context<'_>, setting: &Setting) -> Judgement {
    parameter::judge(context, setting, &nic::COALESCING, |nic| {
        if nic.coalescing.is_absent() {
            "the driver does not moderate interrupts"
        } else {
            "the driver has no such setting"
        }
    })
    .at("ethtool -c")
}

fn set_coalescing(context: &Context<'_>, setting: &Setting) -> Proposal {
    parameter::change(context, setting, &nic::COALESCING)
}
