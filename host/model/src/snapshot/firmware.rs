//! System and firmware identity (SMBIOS types 0, 1, 2).

use crate::Reading;
use serde::{Deserialize, Serialize};

/// The firmware's description of itself and of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FirmwareFacts {
    /// BIOS vendor (type 0): "HPE".
    pub bios_vendor: Reading<String>,
    /// BIOS version (type 0): "A42".
    pub bios_version: Reading<String>,
    /// BIOS release date as written (type 0): "04/29/2020".
    pub bios_date: Reading<String>,
    /// BIOS revision (type 0): "1.24".
    #[serde(default, skip_serializing_if = "Reading::is_absent")]
    pub bios_revision: Reading<String>,
    /// Firmware revision of the embedded or management controller (type 0, else its IPMI driver): iLO's "2.30".
    #[serde(default, skip_serializing_if = "Reading::is_absent")]
    pub controller_revision: Reading<String>,
    /// System manufacturer (SMBIOS type 1).
    pub system_vendor: Reading<String>,
    /// System product name (type 1): "ProLiant DL385 Gen10 Plus".
    pub system_product: Reading<String>,
    /// Base board (type 2): manufacturer and product.
    pub board: Reading<String>,
    /// Version of the SMBIOS tables: "3.2".
    pub smbios_version: Reading<String>,
    /// True if the host was booted through UEFI (/sys/firmware/efi exists).
    pub is_uefi: Reading<bool>,
    /// True if UEFI Secure Boot is on.
    pub secure_boot: Reading<bool>,
    /// Number of IOMMUs that the kernel uses (/sys/class/iommu); `Known(0)` if the class is empty.
    pub iommu_count: Reading<u32>,
}
