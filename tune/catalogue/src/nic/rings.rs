//! Ring sizes of NICs.

use super::{NIC, each_nic, judged_nics};
use lowlat_host::{
    HostSnapshot, Reading,
    snapshot::{Nic, Rings},
};
use lowlat_settings::{
    Context, Judgement, Setting, Want,
    change::{Proposal, nic::RINGS},
    judge::each::One,
};

/// Packets that the NIC dropped because no descriptor was free. Drivers count them in one of the two, or in both.
const LOST: [&str; 2] = ["rx_missed_errors", "rx_fifo_errors"];

pub(crate) const SETTINGS: &[Setting] = &[Setting {
    id: "nic.rings",
    name: "rx",
    reason: "The receive ring holds packets until a CPU processes them. When a burst fills the ring, the NIC drops \
             packets, and a gap in a feed takes far longer to recover than any wait in the ring.",
    cost: "More memory. A ring that outgrows the cache's share for I/O is read from memory. Most drivers take the \
           link down for a moment to change it.",
    effective: "ethtool -g IF; rx_missed_errors and rx_fifo_errors in /sys/class/net/IF/statistics no longer increase.",
    reads: &["/sys/class/net/*/statistics/rx_missed_errors", "/sys/class/net/*/statistics/rx_fifo_errors"],
    trading: Want::State("no packets lost, or the largest receive ring"),
    judge: receive_ring,
    change: largest_ring,
    sources: &[
        "kernel Documentation/networking/ethtool-netlink.rst: RINGS_GET",
        "kernel Documentation/networking/statistics.rst: rx_missed_errors, rx_fifo_errors",
    ],
    ..NIC
}];

/// Packets lost since the driver was loaded.
fn lost(host: &HostSnapshot, nic: &Nic) -> Reading<u64> {
    let counts: [Reading<u64>; 2] = LOST.map(|counter| {
        let path = format!("/sys/class/net/{}/statistics/{counter}", nic.name);
        host.file(&path).parse(&path, "a number", |text| text.parse().ok())
    });
    match counts {
        [Reading::Known(missed), Reading::Known(fifo)] => Reading::Known(missed.max(fifo)),
        [Reading::Absent, other] | [other, _] => other,
    }
}

/// The rings of an interface that lost packets with a receive ring below the largest.
fn too_small<'a>(host: &HostSnapshot, nic: &'a Nic) -> Option<&'a Rings> {
    let has_lost = lost(host, nic).known().is_some_and(|count| *count > 0);
    nic.rings.known().filter(|rings| has_lost && rings.rx < rings.rx_max)
}

fn receive_ring(context: &Context<'_>, _: &Setting) -> Judgement {
    each_nic(context, |nic| {
        let rings = match &nic.rings {
            Reading::Known(rings) if rings.rx_max > 0 => rings,
            Reading::Known(_) | Reading::Absent => {
                return One::Skip("the driver has no receive ring to size".into());
            }
            other => return One::missing(other),
        };
        let size = format!("{} of {}", rings.rx, rings.rx_max);
        match lost(context.host, nic) {
            _ if rings.rx >= rings.rx_max => One::Good(size),
            Reading::Known(0) => One::Good(format!("{size}, no packets lost")),
            Reading::Known(count) => {
                One::Wrong(size, format!("{count} packets were lost because no descriptor was free"))
            }
            Reading::Absent => One::Unknown(format!("{size}; no count of lost packets is available")),
            other => One::missing(&other),
        }
    })
    .at("ethtool -g")
}

fn largest_ring(context: &Context<'_>, setting: &Setting) -> Proposal {
    let mut proposal = Proposal::default();
    for nic in judged_nics(context) {
        if let Some(rings) = too_small(context.host, nic) {
            let before = Reading::Known(rings.rx.to_string());
            proposal = proposal.step(RINGS.of(&nic.name, setting.name), before, rings.rx_max.to_string());
        }
    }
    proposal
}
