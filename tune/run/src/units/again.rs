//! `lowlat-again.service`.

use super::{AGAIN, APPLY, HEAD, Unit, argument};

/// TuneD sets its profile's values whenever it starts or restarts. TuneD's unit wants this one, so each
/// start of TuneD applies lowlat's values after it. With `PartOf=tuned.service` in `lowlat.service`,
/// stopping TuneD would also roll lowlat's values back.
pub(super) fn service(lowlat: &str) -> Unit {
    let lowlat = argument(lowlat);
    let text = format!(
        "{HEAD}\
         [Unit]\n\
         Description=Apply the run-time part of lowlat's plan again after TuneD\n\
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
