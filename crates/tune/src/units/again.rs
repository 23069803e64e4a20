//! `lowlat-again.service`.

use super::{AGAIN, APPLY, HEAD, Unit, argument};

/// TuneD sets the values of its profile whenever it starts, a restart included. This unit is wanted by it, so each start
/// of TuneD brings lowlat's values back after it. `PartOf=tuned.service` on the other one would do so as well, but a
/// TuneD that is only stopped would take lowlat's values along.
pub(super) fn service(lowlat: &str) -> Unit {
    let lowlat = argument(lowlat);
    let text = format!(
        "{HEAD}\
         [Unit]\n\
         Description=Run-time part of lowlat's plan in force, again after TuneD\n\
         DefaultDependencies=no\n\
         Requisite={APPLY}\n\
         After={APPLY} tuned.service\n\
         RequiresMountsFor=/var/lib/lowlat {lowlat}\n\
         \n\
         [Service]\n\
         Type=oneshot\n\
         ExecStart={lowlat} tune apply --at-boot\n\
         TimeoutStartSec=5min\n\
         \n\
         [Install]\n\
         WantedBy=tuned.service\n"
    );
    Unit { name: AGAIN, text, wanted_by: vec!["tuned.service"] }
}
