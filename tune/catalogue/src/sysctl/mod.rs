//! Settings below /proc/sys: the guide's twenty, and others that a modern host needs.

pub(super) mod console;
pub(super) mod file;
pub(super) mod net;
pub(super) mod numa;
pub(super) mod sched;
pub(super) mod vm;
pub(super) mod watchdog;

use lowlat_settings::{Impact, Layer, Needs, Setting, judge};

/// A sysctl, judged by the current value of its key.
const SYSCTL: Setting = Setting {
    layer: Layer::Sysctl,
    impact: Impact::Low,
    needs: Needs::ANY,
    effective: "The file below /proc/sys contains the value.",
    judge: judge::sysctl,
    ..Setting::BLANK
};

const GUIDE: &str = "guide 57037 section 4.2.1";
const KERNEL_DOC: &str = "kernel Documentation/admin-guide/sysctl/kernel.rst";
const VM_DOC: &str = "kernel Documentation/admin-guide/sysctl/vm.rst";
const NETWORK_LATENCY: &str = "TuneD 2.28 profile network-latency";

/// The number in a sysctl file.
fn number(text: &str) -> Option<i64> {
    text.trim().parse().ok()
}
