//! Interrupt moderation, queues, packet steering and offloads of NICs.

use crate::nic::choice::each_nic;
use lowlat_host::{
    CpuSet, Reading,
    snapshot::{Coalescing, Nic, QueueMask},
};
use lowlat_settings::{
    Context, Impact, Judgement, Layer, Needs, Setting, Want, change,
    judge::each::{One, isolated, list},
};

const SCALING: &str = "kernel Documentation/networking/scaling.rst";
const NAPI: &str = "kernel Documentation/networking/napi.rst";
const COALESCING: &str = "kernel Documentation/networking/ethtool-netlink.rst: COALESCE_GET";
const ONLOAD: &str = "OpenOnload on Solarflare NICs: prepare the host (2019)";

const ROW: Setting =
    Setting { layer: Layer::Nic, impact: Impact::Medium, guide: Want::Nothing, ..Setting::BLANK };

pub(crate) const SETTINGS: &[Setting] = &[
    Setting {
        id: "nic.rx_usecs",
        change: change::nic::rx_usecs,
        name: "rx-usecs",
        reason: "The NIC delays a receive interrupt this long to gather more packets. A packet that arrives \
                 alone waits for nothing.",
        cost: "More interrupts on the housekeeping CPUs under load.",
        impact: Impact::High,
        effective: "ethtool -c IF; round trips over the kernel's stack get shorter.",
        trading: Want::Value("0"),
        judge: rx_usecs,
        sources: &[COALESCING, ONLOAD],
        ..ROW
    },
    Setting {
        id: "nic.adaptive_rx",
        change: change::nic::adaptive_rx,
        name: "adaptive-rx",
        reason: "The driver changes rx-usecs automatically with the load. The delay of a packet then depends \
                 on the traffic before it, and a manual value does not last.",
        cost: "More interrupts on the housekeeping CPUs under load.",
        effective: "ethtool -c IF shows Adaptive RX: off.",
        trading: Want::Value("off"),
        judge: adaptive_rx,
        sources: &[COALESCING, ONLOAD],
        ..ROW
    },
    Setting {
        id: "nic.queue_count",
        change: change::nic::queue_count,
        name: "channels",
        reason: "Each receive queue has an interrupt, and each interrupt needs a CPU. More queues than \
                 housekeeping CPUs bring no gain, only more interrupts to keep off the isolated ones.",
        cost: "Fewer CPUs share the kernel's network stack.",
        effective: "ethtool -l IF; one interrupt per queue in /proc/interrupts.",
        trading: Want::Derived(queues_max),
        judge: queue_count,
        sources: &[SCALING, "Xilinx-CNS/onload issue 50: RSS ignores isolated cores"],
        ..ROW
    },
    Setting {
        id: "nic.rps",
        change: change::nic::rps,
        name: "rps_cpus",
        reason: "Receive packet steering sends packets to other CPUs through inter-processor interrupts and \
                 runs the network stack there. Isolated CPUs in the mask get both.",
        impact: Impact::High,
        effective: "the NET_RX row of /proc/softirqs does not increase on isolated CPUs.",
        trading: Want::State("no isolated CPU in any mask"),
        judge: rps,
        sources: &[SCALING],
        ..ROW
    },
    Setting {
        id: "nic.xps",
        change: change::nic::xps,
        name: "xps_cpus",
        reason: "Transmit packet steering sets which CPUs send on which queue. An isolated CPU that shares a \
                 queue with housekeeping CPUs waits for its lock while they send.",
        cost: "One queue is reserved for the senders.",
        impact: Impact::Low,
        effective: "cat /sys/class/net/IF/queues/tx-*/xps_cpus.",
        trading: Want::State("no queue serves isolated and housekeeping CPUs"),
        judge: xps,
        sources: &[SCALING],
        ..ROW
    },
    Setting {
        id: "nic.lro",
        change: change::nic::lro,
        name: "rx-lro, rx-gro-hw",
        reason: "The NIC or its driver merges packets of one flow before they reach the stack. The first \
                 packet waits for the next, and their arrival times are lost.",
        cost: "The stack handles more packets under bulk traffic.",
        effective: "ethtool -k IF: large-receive-offload and rx-gro-hw are off.",
        trading: Want::Value("off"),
        judge: lro,
        sources: &[
            "kernel Documentation/networking/segmentation-offloads.rst",
            "kernel Documentation/networking/netdev-features.rst",
        ],
        ..ROW
    },
    Setting {
        id: "nic.gro_flush_timeout",
        change: change::nic::file_zero,
        name: "gro_flush_timeout",
        reason: "Holds merged packets back for this many nanoseconds, so that more can join. 0 passes them \
                 up at the end of each poll. Only sockets that prefer busy polling (SO_PREFER_BUSY_POLL) \
                 need more.",
        effective: "cat /sys/class/net/IF/gro_flush_timeout.",
        reads: &["/sys/class/net/*/gro_flush_timeout", "/sys/class/net/*/napi_defer_hard_irqs"],
        trading: Want::Value("0"),
        judge: gro_flush_timeout,
        sources: &[NAPI],
        ..ROW
    },
    Setting {
        id: "nic.napi_defer_hard_irqs",
        change: change::nic::file_zero,
        name: "napi_defer_hard_irqs",
        reason: "After an empty poll the NIC's interrupt stays off, and a timer of gro_flush_timeout polls \
                 instead. A packet that arrives in between waits for the timer, unless a socket busy-polls.",
        effective: "cat /sys/class/net/IF/napi_defer_hard_irqs.",
        needs: Needs::since(5, 8),
        reads: &["/sys/class/net/*/gro_flush_timeout", "/sys/class/net/*/napi_defer_hard_irqs"],
        trading: Want::Value("0"),
        judge: napi_defer_hard_irqs,
        sources: &[NAPI, "kernel commit 6f8b12d661d0 (5.8): hard irqs deferral"],
        ..ROW
    },
];

/// Judges one of the coalescing settings.
fn coalescing(nic: &Nic, judge: impl Fn(&Coalescing) -> Option<One>) -> One {
    match &nic.coalescing {
        Reading::Known(coalescing) => {
            judge(coalescing).unwrap_or_else(|| One::Skip("the driver has no such setting".into()))
        }
        Reading::Absent => One::Skip("the driver does not moderate interrupts".into()),
        other => One::Unknown(other.missing_in_words().unwrap_or_default()),
    }
}

fn rx_usecs(context: &Context<'_>, _: &Setting) -> Judgement {
    each_nic(context, |nic| {
        coalescing(nic, |coalescing| {
            Some(match coalescing.rx_usecs? {
                0 => One::Good("0".into()),
                usecs => One::Wrong(format!("{usecs} us"), String::new()),
            })
        })
    })
    .at("ethtool -c")
}

fn adaptive_rx(context: &Context<'_>, _: &Setting) -> Judgement {
    each_nic(context, |nic| {
        coalescing(nic, |coalescing| {
            let is_on = coalescing.adaptive_rx?;
            Some(if is_on { One::Wrong("on".into(), String::new()) } else { One::Good("off".into()) })
        })
    })
    .at("ethtool -c")
}

fn queues_max(context: &Context<'_>) -> Option<String> {
    match context.allocation.housekeeping.len() {
        0 => None,
        1 => Some("1 receive queue".into()),
        count => Some(format!("at most {count} receive queues")),
    }
}

fn queue_count(context: &Context<'_>, _: &Setting) -> Judgement {
    if let Err(judgement) = isolated(context) {
        return judgement;
    }
    let house = &context.allocation.housekeeping;
    each_nic(context, |nic| match &nic.channels {
        Reading::Known(channels) => {
            let queues = channels.rx.saturating_add(channels.combined);
            if usize::try_from(queues).is_ok_and(|queues| queues <= house.len()) {
                One::Good(queues.to_string())
            } else {
                One::Wrong(
                    format!("{queues} receive queues"),
                    format!("there are {} housekeeping CPUs: {:#}", house.len(), house),
                )
            }
        }
        Reading::Absent => One::Skip("the driver does not report its queues".into()),
        other => One::Unknown(other.missing_in_words().unwrap_or_default()),
    })
    .at("ethtool -l")
}

/// Queues with a wrong mask, or why the masks are not known.
fn faulty_masks(queues: &[QueueMask], is_fault: impl Fn(&CpuSet) -> bool) -> Result<Vec<String>, One> {
    if queues.is_empty() {
        return Err(One::Skip("the interface has no queues to steer".into()));
    }
    let mut faulty = Vec::new();
    for queue in queues {
        match &queue.cpus {
            Reading::Known(cpus) if is_fault(cpus) => faulty.push(format!("{} on {cpus}", queue.queue)),
            Reading::Known(_) | Reading::Absent => {}
            other => return Err(One::Unknown(other.missing_in_words().unwrap_or_default())),
        }
    }
    Ok(faulty)
}

fn steering(
    context: &Context<'_>,
    queues: impl Fn(&Nic) -> &[QueueMask],
    is_fault: impl Fn(&CpuSet) -> bool,
) -> Judgement {
    if let Err(judgement) = isolated(context) {
        return judgement;
    }
    each_nic(context, |nic| match faulty_masks(queues(nic), &is_fault) {
        Ok(faulty) if faulty.is_empty() => One::Good("none".into()),
        Ok(faulty) => One::Wrong(list(&faulty), String::new()),
        Err(one) => one,
    })
}

fn rps(context: &Context<'_>, _: &Setting) -> Judgement {
    let isolated = &context.allocation.isolated;
    steering(context, |nic| &nic.rps, |cpus| !cpus.is_disjoint(isolated))
        .at("/sys/class/net/*/queues/rx-*/rps_cpus")
}

fn xps(context: &Context<'_>, _: &Setting) -> Judgement {
    let (house, isolated) = (&context.allocation.housekeeping, &context.allocation.isolated);
    steering(context, |nic| &nic.xps, |cpus| !cpus.is_disjoint(isolated) && !cpus.is_disjoint(house))
        .at("/sys/class/net/*/queues/tx-*/xps_cpus")
}

fn lro(context: &Context<'_>, _: &Setting) -> Judgement {
    each_nic(context, |nic| match &nic.offloads {
        Reading::Known(offloads) => {
            let on: Vec<String> = ["rx-lro", "rx-gro-hw"]
                .into_iter()
                .filter(|name| offloads.get(*name) == Some(&true))
                .map(str::to_owned)
                .collect();
            if on.is_empty() {
                One::Good("off".into())
            } else {
                One::Wrong(format!("{} on", on.join(", ")), String::new())
            }
        }
        Reading::Absent => One::Skip("the driver has no offloads".into()),
        other => One::Unknown(other.missing_in_words().unwrap_or_default()),
    })
    .at("ethtool -k")
}

fn nic_file(context: &Context<'_>, nic: &Nic, name: &str) -> Reading<u64> {
    let path = format!("/sys/class/net/{}/{name}", nic.name);
    context.host.file(&path).parse(&path, "a number", |text| text.parse().ok())
}

fn gro_flush_timeout(context: &Context<'_>, _: &Setting) -> Judgement {
    each_nic(context, |nic| match nic_file(context, nic, "gro_flush_timeout") {
        Reading::Known(0) => One::Good("0".into()),
        Reading::Known(ns) => {
            One::Wrong(format!("{ns} ns"), "packets wait for it unless a socket busy-polls".into())
        }
        Reading::Absent => One::Skip("this kernel has no gro_flush_timeout".into()),
        other => One::Unknown(other.missing_in_words().unwrap_or_default()),
    })
    .at("/sys/class/net/*/gro_flush_timeout")
}

fn napi_defer_hard_irqs(context: &Context<'_>, _: &Setting) -> Judgement {
    each_nic(context, |nic| {
        let defers = nic_file(context, nic, "napi_defer_hard_irqs");
        match (defers, nic_file(context, nic, "gro_flush_timeout")) {
            (Reading::Known(0), _) => One::Good("0".into()),
            (Reading::Known(polls), Reading::Known(0)) => {
                One::Wrong(format!("{polls}"), "no effect while gro_flush_timeout is 0".into())
            }
            (Reading::Known(polls), _) => {
                One::Wrong(format!("{polls}"), "packets wait for the timer unless a socket busy-polls".into())
            }
            (Reading::Absent, _) => One::Skip("this kernel has no napi_defer_hard_irqs".into()),
            (other, _) => One::Unknown(other.missing_in_words().unwrap_or_default()),
        }
    })
    .at("/sys/class/net/*/napi_defer_hard_irqs")
}
