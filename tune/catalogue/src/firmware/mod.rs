//! BIOS and UEFI settings: every row of the guide's setup tables, judged as far as the operating system sees it.
//!
//! Rows are concepts: one row for what makers name differently. Names of what only HPE's setup has are HPE's (the
//! guide's server is a ProLiant DL385 Gen10 Plus). What the OS cannot see is unknown here. An audit over Redfish reads it from the management
//! controller.

mod judges;
mod judges_memory;
mod memory;
mod platform;
mod power;
mod processor;

pub use judges_memory::is_epyc_7002;
pub use memory::SETTINGS as MEMORY;
pub use platform::SETTINGS as PLATFORM;
pub use power::SETTINGS as POWER;
pub use processor::SETTINGS as PROCESSOR;

use lowlat_settings::{Impact, Layer, Needs, Setting};

/// The part of the guide that contains the setup tables.
const GUIDE: &str = "guide 57037 section 3.2.2";

/// Makers on servers with Intel's processors.
const HPE: &str = "HPE BIOS attribute registry U58 (Gen11): what workload profile Low Latency sets";
const DELL: &str = "Dell BIOS attribute registry of PowerEdge R750: what System Profile Performance sets";
const DELL_GUIDE: &str =
    "Dell: BIOS Settings for Optimized Performance on Next-Generation Dell PowerEdge Servers (2023), table 1";
const LENOVO: &str = "Lenovo Press LP1477: Tuning UEFI Settings for Performance and Energy Efficiency on Intel \
                      Xeon Scalable Processor-Based ThinkSystem Servers";
const CISCO: &str = "Cisco: UCS M8 BIOS tuning guide for Intel Xeon, table 3, column Low-latency";

/// Sets of the NUMA nodes that can exist, and of those online.
const NODES: &[&str] = &["/sys/devices/system/node/possible", "/sys/devices/system/node/online"];

/// Common values of the rows.
const ROW: Setting = Setting {
    layer: Layer::Firmware,
    needs_reboot: true,
    impact: Impact::Low,
    effective: "read it back in the BIOS setup or over Redfish after a full restart; a change stays pending \
                until then.",
    sources: &[GUIDE],
    judge: judges::not_visible,
    ..Setting::BLANK
};

/// Rows for settings of AMD's EPYC processors only.
const EPYC: Setting = Setting { needs: Needs::AMD, ..ROW };

/// Rows for settings of Intel's processors only.
const INTEL: Setting = Setting { needs: Needs::INTEL, ..ROW };
