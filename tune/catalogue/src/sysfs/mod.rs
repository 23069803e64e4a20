//! Settings below /sys: frequency and idle, topology, the platform.

pub(super) mod extra;
pub(super) mod guide;
pub(super) mod platform;
pub(super) mod power;
pub(super) mod topology;

use lowlat_settings::{Layer, Setting};

/// A row of files below /sys.
const SYSFS: Setting = Setting { layer: Layer::Sysfs, ..Setting::BLANK };
