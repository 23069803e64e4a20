//! `lowlat.service`.

use super::{APPLY, HEAD, Unit, argument};

/// Starts after everything that sets the same values: drivers, sysctls, TuneD, irqbalance, and the network,
/// because drivers request interrupts of queues when the interface goes up. No unit waits for it.
/// It has no default dependencies, so it is not stopped at shutdown, where a rollback of values in the
/// kernel would be useless.
pub(super) fn service(lowlat: &str) -> Unit {
    let lowlat = argument(lowlat);
    let text = format!(
        "{HEAD}\
         [Unit]\n\
         Description=Apply the run-time part of lowlat's plan\n\
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
