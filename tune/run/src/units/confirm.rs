//! `lowlat-confirm.timer` and its service: the dead-man switch.

use super::{CONFIRM, CONFIRM_SERVICE, HEAD, Unit, argument, seconds};

/// The time counts from the start of the timer: when the plan is applied, and at each boot. It is measured
/// on the monotonic clock, so setting the time of day has no effect.
pub(super) fn units(lowlat: &str, within: std::time::Duration) -> [Unit; 2] {
    let (lowlat, within) = (argument(lowlat), seconds(within));
    let timer = format!(
        "{HEAD}\
         [Unit]\n\
         Description=Roll lowlat's plan back unless it is confirmed\n\
         \n\
         [Timer]\n\
         OnActiveSec={within}\n\
         AccuracySec=1s\n\
         Unit={CONFIRM_SERVICE}\n\
         \n\
         [Install]\n\
         WantedBy=timers.target\n"
    );
    let service = format!(
        "{HEAD}\
         [Unit]\n\
         Description=Roll back lowlat's unconfirmed plan\n\
         RequiresMountsFor=/var/lib/lowlat {lowlat}\n\
         \n\
         [Service]\n\
         Type=oneshot\n\
         ExecStart={lowlat} tune rollback --unconfirmed --yes\n\
         TimeoutStartSec=30min\n"
    );
    [
        Unit { name: CONFIRM, text: timer, wanted_by: vec!["timers.target"] },
        Unit { name: CONFIRM_SERVICE, text: service, wanted_by: Vec::new() },
    ]
}
