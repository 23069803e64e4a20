//! Network interfaces and disks: what hangs on which node, queue and interrupt.

use crate::{CpuSet, Reading};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One network interface.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Nic {
    /// "eth0".
    pub name: String,
    /// Whether a device stands behind it (not lo, veth, bridge).
    pub is_physical: bool,
    /// "up", "down", "unknown".
    pub operstate: Reading<String>,
    /// Link speed.
    pub speed_mbps: Reading<u32>,
    /// Largest packet.
    pub mtu_bytes: Reading<u32>,
    /// Hardware address, or its first three bytes when redacted.
    pub mac: Reading<String>,
    /// Who owns the address range: "Solarflare".
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
    /// NUMA node, -1 when the host does not tell.
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
    /// Interrupts of the device (msi_irqs), rising.
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
    /// Lanes the device has.
    pub width_max: Reading<u32>,
    /// "8.0 GT/s PCIe".
    pub speed: Reading<String>,
    /// What the device can do.
    pub speed_max: Reading<String>,
    /// Whether power states of the link (L0s, L1) may be entered, any of link/l0s_aspm and link/l1_aspm.
    pub aspm: Reading<bool>,
}

/// Queues of an interface (`ethtool -l`).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Channels {
    /// Receive only, now.
    pub rx: u32,
    /// Transmit only, now.
    pub tx: u32,
    /// Both, now.
    pub combined: u32,
    /// Receive only, at most.
    pub rx_max: u32,
    /// Transmit only, at most.
    pub tx_max: u32,
    /// Both, at most.
    pub combined_max: u32,
}

/// Descriptor rings (`ethtool -g`).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Rings {
    /// Receive descriptors.
    pub rx: u32,
    /// Transmit descriptors.
    pub tx: u32,
    /// Receive descriptors at most.
    pub rx_max: u32,
    /// Transmit descriptors at most.
    pub tx_max: u32,
}

/// Interrupt coalescing (`ethtool -c`); a field the driver does not have is none.
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
    /// The driver changes rx_usecs by itself.
    pub adaptive_rx: Option<bool>,
    /// The driver changes tx_usecs by itself.
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
    /// Model as the device says.
    pub model: Reading<String>,
    /// Size.
    pub size_bytes: Reading<u64>,
    /// Whether it turns.
    pub is_rotational: Reading<bool>,
    /// The chosen I/O scheduler: "none".
    pub scheduler: Reading<String>,
    /// PCI address of its controller.
    pub bus: Reading<String>,
    /// NUMA node, -1 when the host does not tell.
    pub node: Reading<i32>,
}
