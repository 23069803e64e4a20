//! Settings of the kernel's command line: those of the guide, those that TuneD's cpu-partitioning adds, and
//! others that a modern host needs.

pub(super) mod clock;
pub(super) mod idle;
pub(super) mod isolation;
pub(super) mod kernel;
pub(super) mod line;
pub(super) mod memory;
pub(super) mod protection;
pub(super) mod ticks;

use crate::{CPU_PARTITIONING, HAZARDS, NETWORK_LATENCY};
use lowlat_settings::{Impact, Layer, Setting, judge};

/// A command-line parameter, judged by its last value.
const BOOT: Setting = Setting {
    layer: Layer::Boot,
    impact: Impact::Low,
    needs_reboot: true,
    effective: "The parameter is in /proc/cmdline.",
    judge: judge::boot_token,
    ..Setting::BLANK
};

const GUIDE: &str = "guide 57037 section 4.3.2.1.1";
const PARAMETERS: &str = "kernel Documentation/admin-guide/kernel-parameters.txt";
const REALTIME: &str = "TuneD 2.28 profile realtime";
