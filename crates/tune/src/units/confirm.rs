//! `lowlat-confirm.timer` and its service: the dead-man switch.

use super::{CONFIRM, CONFIRM_SERVICE, HEAD, Unit, argument, seconds};

/// The time counts from when the timer starts, which is when the plan is applied and again at each boot. That clock is
/// the kernel's monotonic one: setting the time of day moves nothing.
pub(super) fn units(lowlat: &str, within: std::time::Duration) -> [Unit; 2] {
    let (lowlat, within) = (argument(lowlat), seconds(within));
    let timer = format!(
        "{HEAD}\
         [Unit]\n\
         Description=Take lowlat's plan back unless it is confirmed\n\
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
         Description=Take back lowlat's plan, which nobody confirmed\n\
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
