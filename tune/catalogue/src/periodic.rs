//! Services with a schedule: scans, updates, boosts of starving threads.

use super::service::NEEDLESS;
use lowlat_settings::{Impact, Risk, Setting, Want};

/// A service that the guide does not name.
const PERIODIC: Setting = Setting { guide: Want::Nothing, hazard: "", ..NEEDLESS };

pub(super) const SETTINGS: &[Setting] = &[
    Setting {
        id: "service.stalld",
        name: "stalld.service",
        reason: "Looks every second for threads that wait too long, and runs them as deadline threads on their CPU. On a \
                 CPU with a spinning real-time thread that interrupts the spinning thread.",
        cost: "A thread that waits behind a spinning real-time thread waits until that one sleeps, also one of the \
               kernel.",
        risk: Risk::Availability,
        impact: Impact::Medium,
        sources: &["stalld(8)", "TuneD 2.28 profile realtime"],
        ..PERIODIC
    },
    Setting {
        id: "service.fstrim",
        name: "fstrim.timer, fstrim.service",
        reason: "Tells the disks once a week which blocks are free. While it does so, every write waits, including those \
                 of the journal and of recorders. Run fstrim after trading hours instead.",
        cost: "Solid-state disks become slower if they never learn which blocks are free.",
        sources: &["fstrim(8)", "Seastar perftune.py"],
        ..PERIODIC
    },
    Setting {
        id: "service.updates",
        name: "apt-daily.timer, apt-daily-upgrade.timer, unattended-upgrades.service, dnf-automatic.timer, \
               dnf-automatic-install.timer, dnf-makecache.timer, packagekit.service, update-notifier-download.timer, \
               zypp-refresh.timer, snapd.service, snapd.socket",
        reason: "Downloads and installs packages at a time that it chooses, which takes CPUs, memory and disks, and \
                 restarts services. Update after trading hours instead.",
        cost: "Security updates wait until someone installs them.",
        risk: Risk::Security,
        impact: Impact::Medium,
        sources: &["Debian UnattendedUpgrades", "dnf-automatic(8)"],
        ..PERIODIC
    },
];
