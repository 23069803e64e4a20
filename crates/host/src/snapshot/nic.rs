//! Network interfaces and disks, with their nodes, queues and interrupts.

use crate::{CpuSet, Reading};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One network interface.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Nic {
    /// "eth0".
    pub name: String,
    /// Whether it belongs to a device (unlike lo, veth, bridge).
    pub is_physical: bool,
    /// "up", "down", "unknown".
    pub operstate: Reading<String>,
    /// Link speed.
    pub speed_mbps: Reading<u32>,
    /// Largest packet.
    pub mtu_bytes: Reading<u32>,
    /// Hardware address, or its first three bytes when redacted.
    pub mac: Reading<String>,
    /// Owner of the address range: "Solarflare".
    pub oui_vendor: Reading<String>,
    /// "sfc", "mlx5_core", "virtio_net".
    pub driver: Reading<String>,
    /// The driver's version.
    pub driver_version: Reading<String>,
    /// The adapter's firmware.
    pub firmware: Reading<String>,
    /// PCI address: "0000:01:00.0".
    pub bus: Reading<String>,
    /// PCI vendor and device: "1924:0a03".
    pub pci_id: Reading<String>,
    /// NUMA node, -1 if the host does not report it.
    pub node: Reading<i32>,
    /// PCI Express link.
    pub link: Reading<PcieLink>,
    /// Queue counts.
    pub channels: Reading<Channels>,
    /// Ring sizes.
    pub rings: Reading<Rings>,
    /// Interrupt coalescing.
    pub coalescing: Reading<Coalescing>,
    /// Features by the kernel's name: "rx-gro" to on/off.
    pub offloads: Reading<BTreeMap<String, bool>>,
    /// Time stamping.
    pub timestamping: Reading<Timestamping>,
    /// Interrupts of the device (msi_irqs), in ascending order.
    pub irqs: Vec<u32>,
    /// Receive packet steering, a mask per receive queue.
    pub rps: Vec<QueueMask>,
    /// Transmit packet steering, a mask per transmit queue.
    pub xps: Vec<QueueMask>,
}

/// CPUs that serve one queue.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct QueueMask {
    /// "rx-0", "tx-3".
    pub queue: String,
    /// rps_cpus or xps_cpus.
    pub cpus: Reading<CpuSet>,
}

/// Width and speed of a PCI Express link.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PcieLink {
    /// Lanes in use.
    pub width: Reading<u32>,
    /// Lanes of the device.
    pub width_max: Reading<u32>,
    /// "8.0 GT/s PCIe".
    pub speed: Reading<String>,
    /// Maximum speed of the device.
    pub speed_max: Reading<String>,
    /// Whether power states of the link (L0s, L1) may be entered, according to link/l0s_aspm and
    /// link/l1_aspm.
    pub aspm: Reading<bool>,
}

/// Queues of an interface (`ethtool -l`).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Channels {
    /// Current receive queues.
    pub rx: u32,
    /// Current transmit queues.
    pub tx: u32,
    /// Current combined queues.
    pub combined: u32,
    /// Maximum receive queues.
    pub rx_max: u32,
    /// Maximum transmit queues.
    pub tx_max: u32,
    /// Maximum combined queues.
    pub combined_max: u32,
}

/// Descriptor rings (`ethtool -g`).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Rings {
    /// Receive descriptors.
    pub rx: u32,
    /// Transmit descriptors.
    pub tx: u32,
    /// Maximum receive descriptors.
    pub rx_max: u32,
    /// Maximum transmit descriptors.
    pub tx_max: u32,
}

/// Interrupt coalescing (`ethtool -c`); a field that the driver lacks is `None`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Coalescing {
    /// Wait before a receive interrupt.
    pub rx_usecs: Option<u32>,
    /// Packets before a receive interrupt.
    pub rx_frames: Option<u32>,
    /// Wait before a transmit interrupt.
    pub tx_usecs: Option<u32>,
    /// Packets before a transmit interrupt.
    pub tx_frames: Option<u32>,
    /// Whether the driver changes rx_usecs automatically.
    pub adaptive_rx: Option<bool>,
    /// Whether the driver changes tx_usecs automatically.
    pub adaptive_tx: Option<bool>,
}

/// Time stamping that the interface offers (`ethtool -T`).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Timestamping {
    /// Stamps received packets in hardware.
    pub hardware_rx: bool,
    /// Stamps sent packets in hardware.
    pub hardware_tx: bool,
    /// Number of the hardware clock (/dev/ptpN).
    pub phc_index: Option<u32>,
}

/// One block device.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Disk {
    /// "nvme0n1".
    pub name: String,
    /// Model, as reported by the device.
    pub model: Reading<String>,
    /// Size.
    pub size_bytes: Reading<u64>,
    /// Whether it rotates.
    pub is_rotational: Reading<bool>,
    /// The chosen I/O scheduler: "none".
    pub scheduler: Reading<String>,
    /// PCI address of its controller.
    pub bus: Reading<String>,
    /// NUMA node, -1 if the host does not report it.
    pub node: Reading<i32>,
}
