//! Settings below /proc/sys: the guide's twenty, and others that a modern host needs.

pub(super) mod console;
pub(super) mod file;
pub(super) mod net;
pub(super) mod numa;
pub(super) mod sched;
pub(super) mod vm;
pub(super) mod watchdog;

use crate::{HAZARDS, NETWORK_LATENCY};
use lowlat_settings::{Impact, Layer, Setting, judge};

/// A sysctl, judged by the current value of its key: its id without the layer, unless the row has a name.
const SYSCTL: Setting = Setting {
    layer: Layer::Sysctl,
    impact: Impact::Low,
    effective: "The file below /proc/sys contains the value.",
    judge: judge::sysctl,
    ..Setting::BLANK
};

const GUIDE: &str = "guide 57037 section 4.2.1";
const KERNEL_DOC: &str = "kernel Documentation/admin-guide/sysctl/kernel.rst";
const VM_DOC: &str = "kernel Documentation/admin-guide/sysctl/vm.rst";

/// The rows with their names.
const fn named<const N: usize>(mut rows: [Setting; N]) -> [Setting; N] {
    let mut at = 0;
    while at < N {
        if rows[at].name.is_empty() {
            rows[at].name = rows[at].id.split_at("sysctl.".len()).1;
        }
        at += 1;
    }
    rows
}

/// The number in a sysctl file.
fn number(text: &str) -> Option<i64> {
    text.trim().parse().ok()
}
