//! Network interfaces and disks, with their nodes, queues and interrupts.

use crate::{CpuSet, Reading};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, net::IpAddr};

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Nic {
    /// Name of the interface: "eth0".
    pub name: String,
    /// True if it belongs to a device (unlike lo, veth, bridge).
    pub is_physical: bool,
    /// Operational state: "up", "down", "unknown".
    pub operstate: Reading<String>,
    /// True if the other end of the cable answers; absent while the interface is administratively down.
    #[serde(skip_serializing_if = "Reading::is_absent")]
    pub carrier: Reading<bool>,
    /// IP addresses with their prefix: "10.0.0.1/24". Left out of documents, because people share these.
    #[serde(skip_serializing)]
    pub addresses: Reading<Vec<String>>,
    pub speed_mbps: Reading<u32>,
    pub mtu_bytes: Reading<u32>,
    /// Hardware address, or its first three bytes when redacted.
    pub mac: Reading<String>,
    /// Owner of the address range: "Solarflare".
    pub oui_vendor: Reading<String>,
    /// Kernel driver: "sfc", "mlx5_core", "virtio_net".
    pub driver: Reading<String>,
    pub driver_version: Reading<String>,
    /// Version of the adapter's firmware.
    pub firmware: Reading<String>,
    /// PCI address of the device: "0000:01:00.0".
    pub bus: Reading<String>,
    /// PCI vendor and device: "1924:0a03".
    pub pci_id: Reading<String>,
    /// NUMA node, -1 if the host does not report it.
    pub node: Reading<i32>,
    pub link: Reading<PcieLink>,
    #[serde(skip_serializing_if = "Reading::is_absent")]
    pub transfers: Reading<PcieTransfers>,
    /// IOMMU group and the type of its domain: "14 (DMA-FQ)"; absent without an IOMMU.
    #[serde(skip_serializing_if = "Reading::is_absent")]
    pub iommu_group: Reading<String>,
    pub channels: Reading<Channels>,
    pub rings: Reading<Rings>,
    pub coalescing: Reading<Coalescing>,
    /// Interrupt coalescing of each queue, from queue 0 (`ethtool -Q IF -c`).
    #[serde(skip_serializing_if = "Reading::is_absent")]
    pub queue_coalescing: Reading<Vec<Coalescing>>,
    /// The driver's own switches, by its names (`ethtool --show-priv-flags`).
    #[serde(skip_serializing_if = "Reading::is_absent")]
    pub private_flags: Reading<BTreeMap<String, bool>>,
    /// Features by the kernel's name: "rx-gro" to on/off.
    pub offloads: Reading<BTreeMap<String, bool>>,
    pub timestamping: Reading<Timestamping>,
    #[serde(skip_serializing_if = "Reading::is_absent")]
    pub pause: Reading<Pause>,
    #[serde(skip_serializing_if = "Reading::is_absent")]
    pub fec: Reading<Fec>,
    #[serde(skip_serializing_if = "Reading::is_absent")]
    pub eee: Reading<Eee>,
    /// Receive side scaling: the queue of each entry of the indirection table.
    #[serde(skip_serializing_if = "Reading::is_absent")]
    pub rss_indirection: Reading<Vec<u32>>,
    /// Further RSS contexts: the queues of each, by its number (`ethtool -x IF context N`).
    #[serde(skip_serializing_if = "Reading::is_absent")]
    pub rss_contexts: Reading<BTreeMap<u32, Vec<u32>>>,
    /// Flow steering: where the packets of each rule go, by the rule's location: "queue 4", "dropped" (`ethtool -n`).
    #[serde(skip_serializing_if = "Reading::is_absent")]
    pub flow_rules: Reading<BTreeMap<u32, String>>,
    /// Priorities with priority flow control (`dcb pfc show`; IEEE 802.1Qbb).
    #[serde(skip_serializing_if = "Reading::is_absent")]
    pub pfc_priorities: Reading<Vec<u32>>,
    /// The plug-in module: form, vendor and part (`ethtool -m`; SFF-8472, SFF-8636, CMIS).
    #[serde(skip_serializing_if = "Reading::is_absent")]
    pub transceiver: Reading<String>,
    /// NAPI instances with their queues.
    #[serde(skip_serializing_if = "Reading::is_absent")]
    pub napis: Reading<Vec<Napi>>,
    /// XDP abilities by the kernel's name: "basic", "xsk-zerocopy".
    #[serde(skip_serializing_if = "Reading::is_absent")]
    pub xdp_features: Reading<Vec<String>>,
    /// Queues that Onload drives over AF_XDP; 0 if the interface is not registered with it. Absent without Onload's module,
    /// for cards of its own, and from releases that do not tell.
    #[serde(skip_serializing_if = "Reading::is_absent")]
    pub onload_queues: Reading<u32>,
    /// Packets dropped or received with errors since the driver was loaded, by the kernel's name of the counter
    /// (/sys/class/net/IF/statistics).
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub drops: BTreeMap<String, u64>,
    /// The driver's own counters of packets lost or damaged, by its names (`ethtool -S`).
    #[serde(skip_serializing_if = "Reading::is_absent")]
    pub driver_drops: Reading<BTreeMap<String, u64>>,
    /// Interfaces directly below it: members of a bond or bridge, the base of a VLAN or macvlan.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lower: Vec<String>,
    /// Interrupts of the device (msi_irqs), in ascending order.
    pub irqs: Vec<u32>,
    /// Receive packet steering, a mask per receive queue.
    pub rps: Vec<QueueMask>,
    /// Transmit packet steering, a mask per transmit queue.
    pub xps: Vec<QueueMask>,
}

impl Nic {
    /// Returns its IP addresses without their prefixes; none if they are not known.
    pub fn ips(&self) -> impl Iterator<Item = IpAddr> {
        let addresses = self.addresses.known().map(Vec::as_slice).unwrap_or_default();
        addresses.iter().filter_map(|address| address.split('/').next()?.parse().ok())
    }
}

/// CPUs that serve one queue.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct QueueMask {
    /// Name of the queue: "rx-0", "tx-3".
    pub queue: String,
    /// CPUs in its rps_cpus or xps_cpus.
    pub cpus: Reading<CpuSet>,
}

/// Width and speed of a PCI Express link.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PcieLink {
    /// Number of lanes in use.
    pub width: Reading<u32>,
    /// Number of lanes that the device has.
    pub width_max: Reading<u32>,
    /// Speed in use: "8.0 GT/s PCIe".
    pub speed: Reading<String>,
    /// Maximum speed of the device.
    pub speed_max: Reading<String>,
    /// True if power states of the link (L0s, L1) may be entered, according to link/l0s_aspm and link/l1_aspm.
    pub aspm: Reading<bool>,
}

/// Device Control of a PCI Express function (`lspci -vv`; PCI Express Base Specification 7.5.3.4).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PcieTransfers {
    /// Largest packet that it sends (MPS).
    pub payload_bytes_max: u32,
    /// Largest read that it requests (MRRS).
    pub read_request_bytes_max: u32,
    /// True if it may use relaxed ordering for its writes.
    pub is_relaxed: bool,
}

/// Queues of an interface, current and maximum (`ethtool -l`).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Channels {
    pub rx: u32,
    pub tx: u32,
    pub combined: u32,
    pub rx_max: u32,
    pub tx_max: u32,
    pub combined_max: u32,
}

/// Sizes of the descriptor rings, current and maximum (`ethtool -g`).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Rings {
    pub rx: u32,
    pub tx: u32,
    pub rx_max: u32,
    pub tx_max: u32,
}

/// Interrupt coalescing (`ethtool -c`); a field that the driver lacks is `None`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Coalescing {
    /// Wait before a receive interrupt.
    pub rx_usecs: Option<u32>,
    /// Packets before a receive interrupt.
    pub rx_frames: Option<u32>,
    /// Wait before a receive interrupt while the CPU is in an interrupt. Drivers such as sfc use it alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rx_usecs_irq: Option<u32>,
    /// Wait before a transmit interrupt.
    pub tx_usecs: Option<u32>,
    /// Packets before a transmit interrupt.
    pub tx_frames: Option<u32>,
    /// True if the driver changes rx_usecs automatically.
    pub adaptive_rx: Option<bool>,
    /// True if the driver changes tx_usecs automatically.
    pub adaptive_tx: Option<bool>,
}

/// Use of pause frames (`ethtool -a`).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Pause {
    /// True if both ends agree on pause frames automatically.
    pub autoneg: bool,
    /// True if the interface stops sending when it receives one.
    pub rx: bool,
    /// True if the interface sends them when its ring is full.
    pub tx: bool,
}

/// Forward error correction (`ethtool --show-fec`), in ethtool's words: "auto", "off", "rs", "baser", "llrs".
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Fec {
    pub configured: Vec<String>,
    /// Encoding in use on the link; `None` without a link.
    pub active: Option<String>,
}

/// Use of Energy-Efficient Ethernet (`ethtool --show-eee`).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Eee {
    /// True if it is configured.
    pub eee: bool,
    /// True if the link uses it.
    pub is_active: bool,
}

/// One NAPI instance: the context in which the kernel polls some queues (kernel Documentation/networking/napi.rst).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Napi {
    /// Name that outlives a boot: the first queue that it polls, or its place among the interface's instances if the
    /// driver does not link queues: "rx-0", "napi-0".
    pub name: String,
    /// Number, which changes when the queues do.
    pub napi_id: u32,
    pub irq: Option<u32>,
    /// Queues that it polls: "rx-0", "tx-0".
    pub queues: Vec<String>,
    /// Empty polls before the interrupt is enabled again.
    pub defer_hard_irqs: Option<u32>,
    /// Time until the kernel polls while the interrupt is deferred.
    pub gro_flush_timeout_ns: Option<u64>,
    /// Time for which the interrupt stays off while an application busy-polls successfully (6.13).
    pub irq_suspend_timeout_ns: Option<u64>,
    /// "disabled", "enabled" or "busy-poll": whether a thread polls instead of the softirq.
    pub threaded: Option<String>,
    /// Process id of that thread.
    pub pid: Option<u32>,
}

impl Napi {
    /// A value, as plans write it; `None` if the kernel does not report it.
    pub fn value(&self, field: NapiField) -> Option<String> {
        match field {
            NapiField::DeferHardIrqs => self.defer_hard_irqs.map(|polls| polls.to_string()),
            NapiField::GroFlushTimeout => self.gro_flush_timeout_ns.map(|time| time.to_string()),
            NapiField::IrqSuspendTimeout => self.irq_suspend_timeout_ns.map(|time| time.to_string()),
            NapiField::Threaded => self.threaded.clone(),
        }
    }

    /// Sets a value; keeps the old one if the text is not of its type.
    pub fn set(&mut self, field: NapiField, value: &str) {
        match field {
            NapiField::DeferHardIrqs => self.defer_hard_irqs = value.parse().ok().or(self.defer_hard_irqs),
            NapiField::GroFlushTimeout => {
                self.gro_flush_timeout_ns = value.parse().ok().or(self.gro_flush_timeout_ns);
            }
            NapiField::IrqSuspendTimeout => {
                self.irq_suspend_timeout_ns = value.parse().ok().or(self.irq_suspend_timeout_ns);
            }
            NapiField::Threaded => self.threaded = Some(value.to_owned()),
        }
    }
}

/// A value of a NAPI instance that can be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NapiField {
    /// Empty polls before the interrupt is enabled again.
    DeferHardIrqs,
    /// Nanoseconds until the kernel polls while the interrupt is deferred.
    GroFlushTimeout,
    /// Nanoseconds for which the interrupt stays off while an application busy-polls successfully.
    IrqSuspendTimeout,
    /// Polling by a thread instead of the softirq.
    Threaded,
}

impl NapiField {
    /// Every field, by the kernel's name.
    pub const ALL: [(&'static str, Self); 4] = [
        ("defer-hard-irqs", Self::DeferHardIrqs),
        ("gro-flush-timeout", Self::GroFlushTimeout),
        ("irq-suspend-timeout", Self::IrqSuspendTimeout),
        ("threaded", Self::Threaded),
    ];

    /// Splits "rx-0/gro-flush-timeout" into the instance's name and the field.
    pub fn split(name: &str) -> Option<(&str, Self)> {
        let (napi, field) = name.split_once('/')?;
        let (_, field) = Self::ALL.iter().find(|(known, _)| *known == field)?;
        Some((napi, *field))
    }
}

/// Time stamping that the interface offers (`ethtool -T`).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Timestamping {
    /// Stamps received packets in hardware.
    pub hardware_rx: bool,
    /// Stamps sent packets in hardware.
    pub hardware_tx: bool,
    /// Number of the hardware clock (/dev/ptpN).
    pub phc_index: Option<u32>,
}

/// A block device, such as a disk.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Disk {
    /// Name of the device: "nvme0n1".
    pub name: String,
    /// Model, as reported by the device.
    pub model: Reading<String>,
    pub size_bytes: Reading<u64>,
    pub is_rotational: Reading<bool>,
    /// The chosen I/O scheduler: "none".
    pub scheduler: Reading<String>,
    /// PCI address of its controller.
    pub bus: Reading<String>,
    /// NUMA node, -1 if the host does not report it.
    pub node: Reading<i32>,
}
