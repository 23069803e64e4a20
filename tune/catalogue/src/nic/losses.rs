//! Packets that NICs lost.

use super::{NIC, each_nic};
use lowlat_host::snapshot::Nic;
use lowlat_settings::{Context, Impact, Judgement, Setting, Want, change::WhyLeftOut, judge::each::One};

/// Counters that mean a lost packet. `rx_dropped` is not among them: it counts packets of protocols without a receiver.
const LOST: [&str; 5] =
    ["rx_missed_errors", "rx_fifo_errors", "rx_crc_errors", "tx_errors", "tx_fifo_errors"];

pub(crate) const SETTINGS: &[Setting] = &[Setting {
    id: "nic.drops",
    not_planned: "rx_crc_errors: replace cable or optics; rx_missed_errors and rx_fifo_errors: see nic.rings",
    why_not: WhyLeftOut::StateOfTheMoment,
    name: "statistics",
    reason: "A lost packet of a feed costs a recovery, and a lost segment of an order costs a retransmission: far longer \
             than any wait that other rows remove.",
    impact: Impact::High,
    effective: "ip -s -s link show IF: the counters no longer increase.",
    trading: Want::State("no packet lost since the driver was loaded"),
    judge: drops,
    sources: &["kernel Documentation/networking/statistics.rst"],
    ..NIC
}];

fn losses(nic: &Nic) -> Vec<String> {
    let some = nic.drops.iter().filter(|(name, count)| LOST.contains(&name.as_str()) && **count > 0);
    some.map(|(name, count)| format!("{name} {count}")).collect()
}

fn drops(context: &Context<'_>, _: &Setting) -> Judgement {
    each_nic(context, |nic| match losses(nic).as_slice() {
        [] if nic.drops.is_empty() => One::Unknown("the counters were not read".into()),
        [] => One::Good("none".into()),
        some => One::Wrong(some.join(", "), String::new()),
    })
    .at("/sys/class/net/*/statistics")
}
