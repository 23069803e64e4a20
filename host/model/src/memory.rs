//! The memory of NUMA nodes: its size, kind and tier.

use crate::Reading;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Kind of a node's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MemoryKind {
    /// Memory of a node that has CPUs.
    #[default]
    Main,
    /// Memory behind CXL, added by the driver of a device-dax that belongs to a CXL region.
    Cxl,
    /// Memory added by the driver of another device-dax, such as high-bandwidth or persistent memory.
    Dax,
    /// Memory of a GPU that the processor reads directly, according to NVIDIA's driver.
    Gpu,
    /// Memory of a node without CPUs whose origin the kernel does not report.
    Far,
}

impl fmt::Display for MemoryKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Main => "main",
            Self::Cxl => "CXL",
            Self::Dax => "device-dax",
            Self::Gpu => "GPU",
            Self::Far => "far",
        })
    }
}

/// Memory of a NUMA node.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct NodeMemory {
    /// The kernel's number of the node.
    pub node: u32,
    pub kind: MemoryKind,
    /// MemTotal of the node, in bytes.
    pub total_bytes: Reading<u64>,
    /// Memory that the kernel can give without taking it from programs: MemFree and Inactive(file) of the node, or
    /// MemAvailable of a kernel without nodes.
    pub available_bytes: Reading<u64>,
    /// The kernel's memory tier: lower is faster.
    pub tier: Reading<u32>,
}

/// A CXL memory device (/sys/bus/cxl/devices/memN). It is memory of a node once its region was made and added.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CxlDevice {
    /// Name of the device: "mem0".
    pub name: String,
    /// Size of its volatile part, in bytes.
    pub volatile_bytes: Reading<u64>,
}

/// All memory of a host.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct MemoryNodes {
    /// Nodes with memory, in order.
    pub nodes: Vec<NodeMemory>,
    pub cxl_devices: Vec<CxlDevice>,
    /// True if the kernel moves pages to slower tiers instead of discarding them
    /// (/sys/kernel/mm/numa/demotion_enabled).
    pub is_demotion_enabled: Reading<bool>,
}
