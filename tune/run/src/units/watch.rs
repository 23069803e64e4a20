//! `lowlat-watch.timer` and its service.

use super::{APPLY, HEAD, Unit, WATCH, WATCH_SERVICE, Watch, argument, seconds};

/// A check at intervals. Drift makes the service fail, which monitoring sees, and the journal shows the
/// details. The plan is applied again only if requested.
pub(super) fn units(lowlat: &str, watch: Watch) -> [Unit; 2] {
    let (lowlat, interval) = (argument(lowlat), seconds(watch.interval));
    let timer = format!(
        "{HEAD}\
         [Unit]\n\
         Description=Check whether lowlat's plan is still in effect\n\
         \n\
         [Timer]\n\
         OnActiveSec={interval}\n\
         OnUnitInactiveSec={interval}\n\
         AccuracySec=1s\n\
         Unit={WATCH_SERVICE}\n\
         \n\
         [Install]\n\
         WantedBy=timers.target\n"
    );
    let (what, command) = if watch.is_repairing {
        ("Apply drifted values of lowlat's plan again", "tune apply --at-boot")
    } else {
        ("Check whether lowlat's plan is still in effect", "tune verify --quiet --no-ticks")
    };
    let service = format!(
        "{HEAD}\
         [Unit]\n\
         Description={what}\n\
         After={APPLY}\n\
         RequiresMountsFor=/var/lib/lowlat {lowlat}\n\
         ConditionPathExists=/var/lib/lowlat/in-force.json\n\
         \n\
         [Service]\n\
         Type=oneshot\n\
         ExecStart={lowlat} {command}\n\
         TimeoutStartSec=5min\n"
    );
    [
        Unit { name: WATCH, text: timer, wanted_by: vec!["timers.target"] },
        Unit { name: WATCH_SERVICE, text: service, wanted_by: Vec::new() },
    ]
}
