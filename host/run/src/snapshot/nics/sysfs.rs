//! Facts about an interface from /sys.

use crate::{
    Root,
    snapshot::{
        formats,
        pci::{self, Function},
    },
};
use lowlat_host::{
    CpuSet, Reading,
    snapshot::{Nic, PcieLink, QueueMask},
};
use std::collections::BTreeMap;

/// Queues whose masks are kept; the largest adapters have a few hundred.
const QUEUES_MAX: usize = 4_096;
/// Place of interrupts in [`lowlat_host::HostSnapshot::unread`].
const MSI_IRQS: &str = "/sys/class/net/*/device/msi_irqs";

/// Everything about an interface that is in files; what ethtool answers is left absent.
pub(super) fn read(root: &Root, name: &str) -> Nic {
    let directory = format!("/sys/class/net/{name}");
    let file = |name: &str| format!("{directory}/{name}");
    let function = pci::function_behind(root, &file("device"));
    let driver = base_name(root.real_path(&file("device/driver")));
    Nic {
        name: name.to_owned(),
        is_physical: root.exists(&file("device")),
        operstate: root.read(&file("operstate")),
        carrier: formats::flag(root.read(&file("carrier")), "carrier"),
        speed_mbps: speed_mbps(root, &file("speed")),
        mtu_bytes: root.read_as(&file("mtu"), "a number of bytes"),
        mac: root.read(&file("address")),
        driver_version: driver
            .as_ref()
            .and_then(|driver| root.read(&format!("/sys/module/{driver}/version"))),
        driver,
        bus: function.as_ref().map(|function| function.address.clone()),
        pci_id: function.as_ref().and_then(|function| pci_id(root, function)),
        node: function.as_ref().and_then(|function| function.node(root)),
        link: function.as_ref().and_then(|function| link(root, &function.directory)),
        transfers: function.as_ref().and_then(|function| function.transfers(root)),
        iommu_group: function.as_ref().and_then(|function| iommu_group(root, &function.directory)),
        irqs: function.known().map(|function| irqs(root, &function.directory)).unwrap_or_default(),
        rps: queue_masks(root, &file("queues"), "rx-", "rps_cpus"),
        xps: queue_masks(root, &file("queues"), "tx-", "xps_cpus"),
        drops: drops(root, &file("statistics")),
        lower: lower(root, &directory),
        ..Nic::default()
    }
}

/// Counters of packets that were lost or damaged (kernel Documentation/networking/statistics.rst).
const LOSSES: [&str; 8] = [
    "rx_dropped",
    "rx_missed_errors",
    "rx_fifo_errors",
    "rx_errors",
    "rx_crc_errors",
    "tx_dropped",
    "tx_errors",
    "tx_fifo_errors",
];

pub(super) fn drops(root: &Root, directory: &str) -> BTreeMap<String, u64> {
    let count = |name: &str| root.read_as(&format!("{directory}/{name}"), "a number of packets").into_known();
    LOSSES.iter().filter_map(|&name| Some((name.to_owned(), count(name)?))).collect()
}

/// The interfaces that links named lower_IF lead to (kernel net/core/dev.c, since 3.14).
fn lower(root: &Root, directory: &str) -> Vec<String> {
    let names = root.or_unread("/sys/class/net/*", root.list(directory));
    names.iter().filter_map(|name| name.strip_prefix("lower_")).map(str::to_owned).collect()
}

/// The number of the group, and the type of its domain (since 4.11).
fn iommu_group(root: &Root, directory: &str) -> Reading<String> {
    let group = base_name(root.real_path(&format!("{directory}/iommu_group")));
    group.map(|group| match root.read(&format!("/sys/kernel/iommu_groups/{group}/type")) {
        Reading::Known(kind) => format!("{group} ({kind})"),
        _ => group,
    })
}

fn base_name(path: Reading<String>) -> Reading<String> {
    path.map(|path| path.rsplit('/').next().unwrap_or_default().to_owned())
}

/// A link that is down has no speed: -1, or 4294967295 on older kernels.
fn speed_mbps(root: &Root, path: &str) -> Reading<u32> {
    let speed: Reading<i64> = root.read_as(path, "a speed in Mb/s, or -1");
    speed.and_then(|speed| match u32::try_from(speed) {
        Ok(u32::MAX) | Err(_) => Reading::Absent,
        Ok(speed) => Reading::Known(speed),
    })
}

/// "1924:0a03" from the files `vendor` and `device`, which contain "0x1924" and "0x0a03".
fn pci_id(root: &Root, function: &Function) -> Reading<String> {
    let number = |name: &str| {
        let path = format!("{}/{name}", function.directory);
        root.read(&path).parse(&path, "a number such as 0x1924", |text| {
            u16::from_str_radix(text.strip_prefix("0x")?, 16).ok()
        })
    };
    number("vendor").and_then(|vendor| number("device").map(|device| format!("{vendor:04x}:{device:04x}")))
}

/// The PCI Express link of a function; functions inside a processor or a virtual machine have none.
fn link(root: &Root, directory: &str) -> Reading<PcieLink> {
    let width = |name: &str| root.read_as(&format!("{directory}/{name}"), "a number of lanes");
    let speed = |name: &str| root.read(&format!("{directory}/{name}"));
    let link = PcieLink {
        width: width("current_link_width"),
        width_max: width("max_link_width"),
        speed: speed("current_link_speed"),
        speed_max: speed("max_link_speed"),
        aspm: aspm(root, directory),
    };
    if link == PcieLink::default() { Reading::Absent } else { Reading::Known(link) }
}

/// True if any power state of the link may be entered; absent if the kernel exposes none of the switches.
fn aspm(root: &Root, directory: &str) -> Reading<bool> {
    let states = ["l0s_aspm", "l1_aspm", "l1_1_aspm", "l1_2_aspm"]
        .map(|name| formats::read_flag(root, &format!("{directory}/link/{name}")));
    let is_any = states.iter().any(|state| state.known() == Some(&true));
    if is_any {
        return Reading::Known(true);
    }
    states.into_iter().fold(Reading::Absent, |all, state| all.or(|| state))
}

/// Message-signalled interrupts, otherwise the one legacy interrupt line.
fn irqs(root: &Root, directory: &str) -> Vec<u32> {
    let names = match root.list(&format!("{directory}/msi_irqs")) {
        Reading::Absent => Vec::new(),
        names => root.or_unread(MSI_IRQS, names),
    };
    let mut irqs: Vec<u32> = names.iter().filter_map(|name| name.parse().ok()).collect();
    if irqs.is_empty() {
        let line =
            root.read_as::<u32>(&format!("{directory}/irq"), "the number of an interrupt").into_known();
        irqs.extend(line.filter(|line| *line > 0));
    }
    irqs.sort_unstable();
    irqs
}

/// Masks of the queues in the order of their numbers.
fn queue_masks(root: &Root, directory: &str, prefix: &str, file: &str) -> Vec<QueueMask> {
    let names = match root.list(directory) {
        Reading::Absent => Vec::new(),
        names => root.or_unread("/sys/class/net/*/queues", names),
    };
    let number = |name: &String| name.strip_prefix(prefix).and_then(|number| number.parse::<u32>().ok());
    let mut queues: Vec<(u32, String)> =
        names.into_iter().filter_map(|name| number(&name).map(|number| (number, name))).collect();
    queues.sort_unstable();
    queues.truncate(QUEUES_MAX);
    let mask =
        |queue: &str| -> Reading<CpuSet> { root.read_cpu_mask(&format!("{directory}/{queue}/{file}")) };
    queues.into_iter().map(|(_, queue)| QueueMask { cpus: mask(&queue), queue }).collect()
}
