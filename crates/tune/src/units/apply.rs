//! `lowlat.service`.

use super::{APPLY, HEAD, Unit, argument};

/// Behind what sets the same things: drivers, sysctls, TuneD, irqbalance; the network, since drivers ask for a queue's
/// interrupt when the interface goes up. Nobody's unit is held up by it: it stands before none.
///
/// At shutdown it is not stopped, having no default dependencies: what the kernel alone remembers goes with the boot,
/// and a rollback in the middle of a shutdown would only be in its way.
pub(super) fn service(lowlat: &str) -> Unit {
    let lowlat = argument(lowlat);
    let text = format!(
        "{HEAD}\
         [Unit]\n\
         Description=Run-time part of lowlat's plan in force\n\
         DefaultDependencies=no\n\
         Requires=sysinit.target\n\
         After=sysinit.target basic.target systemd-modules-load.service systemd-sysctl.service systemd-udevd.service\n\
         After=network-pre.target network.target tuned.service irqbalance.service\n\
         RequiresMountsFor=/var/lib/lowlat {lowlat}\n\
         ConditionPathExists=/var/lib/lowlat/in-force.json\n\
         ConditionVirtualization=!container\n\
         \n\
         [Service]\n\
         Type=oneshot\n\
         RemainAfterExit=yes\n\
         ExecStart={lowlat} tune apply --at-boot\n\
         ExecStop={lowlat} tune rollback --run-time --yes\n\
         TimeoutStartSec=5min\n\
         TimeoutStopSec=5min\n\
         \n\
         [Install]\n\
         WantedBy=multi-user.target\n"
    );
    Unit { name: APPLY, text, wanted_by: vec!["multi-user.target"] }
}
