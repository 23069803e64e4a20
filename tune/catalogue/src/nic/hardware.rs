//! Location, link, PCI Express connection, time stamping and firmware of NICs.

use super::{NIC, each_nic, judged_nics};
use lowlat_host::{
    Reading,
    snapshot::{Nic, PcieLink},
};
use lowlat_settings::{
    Context, Impact, Judgement, Risk, Setting, Want,
    change::WhyLeftOut,
    judge::each::{One, isolated, none_isolated},
};

const PCI: &str = "kernel Documentation/ABI/testing/sysfs-bus-pci";
const ONLOAD: &str = "OpenOnload on Solarflare NICs: firmware variant (2019)";
const ONLOAD_VERSION: &str = "/sys/module/onload/version";

pub(crate) const SETTINGS: &[Setting] = &[
    Setting {
        id: "nic.link_up",
        not_planned: "check the cable, the switch and the interface's configuration",
        why_not: WhyLeftOut::StateOfTheMoment,
        name: "operstate, speed, duplex",
        reason: "An interface without a link carries nothing, and one that negotiated a low speed takes \
                 longer to send each packet.",
        impact: Impact::High,
        effective: "ethtool IF shows Link detected: yes and the speed of the switch port.",
        trading: Want::State("up, with a known speed"),
        judge: link_up,
        sources: &["kernel Documentation/ABI/testing/sysfs-class-net: operstate, speed"],
        ..NIC
    },
    Setting {
        id: "nic.numa_node",
        name: "numa_node",
        reason: "If the NIC's node is unknown, its interrupts and threads cannot be placed near it, and the \
                 driver allocates its rings anywhere.",
        needs_reboot: true,
        effective: "/sys/class/net/IF/device/numa_node is not -1.",
        trading: Want::State("known"),
        judge: numa_node,
        sources: &[PCI, "guide 57037 section 3.2.2: Memory Proximity Reporting for I/O"],
        ..NIC
    },
    Setting {
        id: "nic.isolated_cpus_near",
        not_planned: "the role chooses the isolated CPUs: include some of the interface's node",
        name: "local_cpulist",
        reason: "A trading thread on another node than the NIC crosses the link between the processors for \
                 each packet it reads and each doorbell it rings.",
        cost: "The CPUs near the NIC are the first to run out.",
        impact: Impact::High,
        effective: "isolated CPUs in /sys/class/net/IF/device/local_cpulist.",
        trading: Want::State("isolated CPUs on the NIC's node"),
        judge: isolated_cpus_near,
        sources: &[PCI, "guide 57037 section 3.1: Linux Network Tuning Guide for AMD EPYC 7002 (56739)"],
        ..NIC
    },
    Setting {
        id: "nic.pcie_link_width",
        name: "current_link_width",
        reason: "A card that uses fewer lanes than it supports moves each packet over a narrower link. \
                 Causes are a slot wired for fewer lanes, bifurcation, or a bad contact.",
        needs_reboot: true,
        effective: "lspci -vv: Width in LnkSta equals LnkCap.",
        trading: Want::State("as wide as the card"),
        judge: link_width,
        sources: &[PCI],
        ..NIC
    },
    Setting {
        id: "nic.pcie_link_speed",
        name: "current_link_speed",
        reason: "A link that runs below the card's speed takes longer to move each packet. Causes are an \
                 older slot, a limit in the BIOS, or errors that forced a lower speed.",
        needs_reboot: true,
        effective: "lspci -vv: Speed in LnkSta equals LnkCap.",
        trading: Want::State("as fast as the card"),
        judge: link_speed,
        sources: &[PCI],
        ..NIC
    },
    Setting {
        id: "nic.pcie_aspm",
        not_planned: "the kernel's performance policy switches it off (sysfs.pcie_aspm.policy) if the firmware allows \
                      it",
        why_not: WhyLeftOut::ByAnother,
        name: "link/l0s_aspm, link/l1_aspm",
        reason: "With Active State Power Management the NIC's link sleeps between packets, and the next one \
                 waits until it is awake.",
        cost: "More idle power in the link.",
        risk: Risk::Power,
        impact: Impact::High,
        effective: "lspci -vv shows ASPM Disabled in LnkCtl of the NIC.",
        trading: Want::Value("off"),
        judge: link_aspm,
        sources: &["kernel Documentation/ABI/testing/sysfs-bus-pci: link/l0s_aspm, link/l1_aspm"],
        ..NIC
    },
    Setting {
        id: "nic.hardware_timestamping",
        name: "hardware-receive, hardware-transmit",
        reason: "The NIC's time stamps do not vary with the load of the host. They give wire-to-wire times \
                 and a hardware clock for PTP.",
        impact: Impact::Low,
        effective: "ethtool -T IF lists hardware-receive, hardware-transmit and a PTP hardware clock.",
        trading: Want::State("received and sent packets, with a hardware clock"),
        judge: timestamping,
        sources: &["kernel Documentation/networking/timestamping.rst"],
        ..NIC
    },
    Setting {
        id: "nic.solarflare_firmware_variant",
        not_planned: "sfboot changes the card's firmware variant, which affects every user of the card",
        name: "firmware-variant",
        reason: "Solarflare cards have several firmware variants. ultra-low-latency forwards packets with \
                 the least delay. full-feature supports more of the card's functions.",
        cost: "The variant lacks functions of full-feature. Read the card's user guide first.",
        needs_reboot: true,
        effective: "sfboot --adapter=IF shows Firmware variant: Ultra low latency. The firmware version of ethtool -i \
                    does not tell the variants apart.",
        trading: Want::Value("ultra-low-latency"),
        judge: solarflare_variant,
        sources: &[ONLOAD],
        ..NIC
    },
    Setting {
        id: "nic.onload",
        not_planned: "Onload is installed separately from the kernel; whether programs use it is your choice",
        name: "onload",
        reason: "On a Solarflare card, Onload runs the network stack inside the process. Packets then need \
                 no system call and no interrupt.",
        cost: "Needs out-of-tree kernel modules, and the kernel's firewall does not see its sockets.",
        risk: Risk::Security,
        effective: "onload_stackdump lists the stacks of the running process.",
        reads: &[ONLOAD_VERSION],
        trading: Want::State("loaded where a Solarflare card carries the traffic"),
        judge: onload,
        sources: &["OpenOnload on Solarflare NICs: install, run (2019)"],
        ..NIC
    },
];

fn link_up(context: &Context<'_>, _: &Setting) -> Judgement {
    each_nic(context, |nic| match (&nic.operstate, &nic.speed_mbps) {
        (Reading::Known(state), _) if state == "down" => One::Wrong("down".into(), String::new()),
        (Reading::Known(state), Reading::Known(speed)) if state == "up" => One::Good(format!("{speed} Mb/s")),
        (Reading::Known(state), _) if state == "up" && nic.driver.text() == "virtio_net" => {
            One::Good("up".into())
        }
        (Reading::Known(state), speed) => match speed.missing_in_words() {
            Some(missing) => One::Unknown(format!("{state}, speed {missing}")),
            None => One::Unknown(state.clone()),
        },
        (other, _) => One::missing(other),
    })
    .at("/sys/class/net/*/operstate")
}

/// True if the host has more than one node with CPUs, so that a device is closer to some CPUs than to others.
fn has_nodes(context: &Context<'_>) -> bool {
    context.host.topology.nodes.iter().filter(|node| !node.cpus.is_empty()).count() > 1
}

const NO_DEVICE: &str = "the interface has no device on a bus";
const ONE_NODE: &str = "one NUMA node: every CPU is equally close to the NIC";

fn numa_node(context: &Context<'_>, _: &Setting) -> Judgement {
    if !has_nodes(context) {
        return Judgement::not_applicable(ONE_NODE);
    }
    let judge = |node: &i32| match node {
        0.. => One::Good(format!("node {node}")),
        _ => One::Wrong(
            "-1".into(),
            "the firmware does not report it; see firmware.memory_proximity_reporting_for_io".into(),
        ),
    };
    each_nic(context, |nic| One::of(&nic.node, NO_DEVICE, judge)).at("/sys/class/net/*/device/numa_node")
}

fn isolated_cpus_near(context: &Context<'_>, _: &Setting) -> Judgement {
    let Some(isolated) = isolated(context) else { return none_isolated() };
    if !has_nodes(context) {
        return Judgement::not_applicable(ONE_NODE);
    }
    let nodes = &context.host.topology.nodes;
    let judge = |id: &i32| match id {
        0.. => {
            let node = nodes.iter().find(|node| i64::from(node.id) == i64::from(*id));
            let near = node.map(|node| node.cpus.intersection(isolated)).unwrap_or_default();
            if near.is_empty() {
                One::Wrong(format!("none on node {id}"), "isolate CPUs of that node, or move the card".into())
            } else {
                One::Good(format!("{:#} on node {id}", &near))
            }
        }
        _ => One::Unknown("its node is not known".into()),
    };
    each_nic(context, |nic| One::of(&nic.node, NO_DEVICE, judge)).at("/sys/class/net/*/device/local_cpulist")
}

/// Judges the PCI Express link of each interface that has one.
fn each_link(context: &Context<'_>, judge: impl Fn(&PcieLink) -> One) -> Judgement {
    const INSIDE: &str = "the card is part of the processor or chipset: its link registers do not describe the path of its packets";
    each_nic(context, |nic| {
        One::of(&nic.link, "the interface has no PCI Express link", |link| {
            if is_inside_the_chipset(nic, link) { One::Skip(INSIDE.into()) } else { judge(link) }
        })
    })
}

/// Device numbers of Intel's X722 in the C620 chipset. Its functions report one lane at 2.5 GT/s, whatever their real
/// throughput (drivers/net/ethernet/intel/i40e: `I40E_HW_CAP_NO_PCI_LINK_CHECK`).
const X722: std::ops::RangeInclusive<u16> = 0x37cc..=0x37d3;

/// True if a card has no PCI Express lanes of its own: it is known for that, or its port is faster than the widest and
/// fastest link in its registers.
fn is_inside_the_chipset(nic: &Nic, link: &PcieLink) -> bool {
    let device = nic.pci_id.text().to_ascii_lowercase();
    let device = device.strip_prefix("8086:").and_then(|number| u16::from_str_radix(number, 16).ok());
    let lanes = link.width_max.known().filter(|lanes| **lanes > 0);
    let mbps_max = lanes
        .zip(link.speed_max.known())
        .and_then(|(lanes, speed)| gigatransfers_tenths(speed)?.checked_mul(100)?.checked_mul(*lanes));
    let is_slower = mbps_max.zip(nic.speed_mbps.known()).is_some_and(|(max, port)| max < *port);
    device.is_some_and(|number| X722.contains(&number)) || is_slower
}

fn link_width(context: &Context<'_>, _: &Setting) -> Judgement {
    each_link(context, |link| match (&link.width, &link.width_max) {
        // A virtual function has a width of 0: the link belongs to its physical function.
        (Reading::Known(0), _) | (_, Reading::Known(0)) => {
            One::Skip("the link belongs to another function".into())
        }
        (Reading::Known(now), Reading::Known(max)) if now >= max => One::Good(format!("x{now}")),
        (Reading::Known(now), Reading::Known(max)) => One::Wrong(format!("x{now} of x{max}"), String::new()),
        (Reading::Known(_), other) | (other, _) => One::missing(other),
    })
    .at("/sys/class/net/*/device/current_link_width")
}

/// The leading number of "16.0 GT/s PCIe", in tenths.
fn gigatransfers_tenths(text: &str) -> Option<u32> {
    let number = text.split_whitespace().next()?;
    let (whole, tenths) = number.split_once('.').unwrap_or((number, "0"));
    let tenths = tenths.get(..1)?.parse::<u32>().ok()?;
    whole.parse::<u32>().ok()?.checked_mul(10)?.checked_add(tenths)
}

fn link_speed(context: &Context<'_>, _: &Setting) -> Judgement {
    each_link(context, |link| {
        let (now, max) = match (&link.speed, &link.speed_max) {
            (Reading::Known(now), Reading::Known(max)) => (now, max),
            (Reading::Known(_), other) | (other, _) => return One::missing(other),
        };
        match (gigatransfers_tenths(now), gigatransfers_tenths(max)) {
            (Some(a), Some(b)) if a >= b => One::Good(now.clone()),
            (Some(_), Some(_)) => One::Wrong(format!("{now} of {max}"), String::new()),
            _ => One::Unknown(format!("speed {now} of {max}")),
        }
    })
    .at("/sys/class/net/*/device/current_link_speed")
}

fn link_aspm(context: &Context<'_>, _: &Setting) -> Judgement {
    each_link(context, |link| match &link.aspm {
        Reading::Known(false) => One::Good("off".into()),
        Reading::Known(true) => One::Wrong("on".into(), String::new()),
        Reading::Absent => One::Unknown(
            "the kernel offers no ASPM switch: the link has none, the kernel was built without it, or \
             pcie_aspm=off is set; check with lspci -vv"
                .into(),
        ),
        other => One::missing(other),
    })
    .at("/sys/class/net/*/device/link")
}

fn timestamping(context: &Context<'_>, _: &Setting) -> Judgement {
    each_nic(context, |nic| match &nic.timestamping {
        Reading::Known(stamps) => {
            let parts = [
                (stamps.hardware_rx, "received packets"),
                (stamps.hardware_tx, "sent packets"),
                (stamps.phc_index.is_some(), "a hardware clock"),
            ];
            let lacks: Vec<&str> = parts.iter().filter(|(has, _)| !has).map(|(_, what)| *what).collect();
            if lacks.is_empty() {
                One::Good("hardware".into())
            } else {
                One::Wrong(format!("without {}", lacks.join(", ")), String::new())
            }
        }
        Reading::Absent => One::Wrong("none".into(), String::new()),
        other => One::missing(other),
    })
    .at("ethtool -T")
}

fn is_solarflare(nic: &Nic) -> bool {
    nic.driver.text() == "sfc"
}

fn solarflare_variant(context: &Context<'_>, _: &Setting) -> Judgement {
    each_nic(context, |nic| {
        if !is_solarflare(nic) {
            return One::Skip("not a Solarflare card".into());
        }
        One::Unknown("only `sfboot --adapter=IF` of the vendor's tools shows it".into())
    })
    .at("sfboot")
}

fn onload(context: &Context<'_>, _: &Setting) -> Judgement {
    if !judged_nics(context).into_iter().any(is_solarflare) {
        return Judgement::not_applicable("no Solarflare card carries traffic here");
    }
    match context.host.file(ONLOAD_VERSION) {
        Reading::Known(version) => Judgement::good(format!("Onload {version}")),
        Reading::Absent => Judgement::wrong("not loaded", ""),
        other => lowlat_settings::judge::missing(&other, ONLOAD_VERSION),
    }
    .at(ONLOAD_VERSION)
}
