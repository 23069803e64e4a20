//! Facts about this end of a run.

use lowlat_host::{CpuId, digest};
use lowlat_host_run::affinity;
use lowlat_host_run::{
    Root,
    idle_hold::{self, IdleHold},
    snapshot::napi_instance,
};
use lowlat_net::pingpong::{EndFacts, IrqSuspend, Preload};
use std::{
    env,
    os::fd::{AsRawFd, BorrowedFd},
};

/// Libraries that replace the kernel's sockets, with the prefix of their variables and the start of the link of their
/// descriptors in /proc/PID/fd, if they have one.
const LIBRARIES: [(&str, &str, Option<&str>); 5] = [
    ("libonload", "EF_", Some("onload:")),
    ("libcitransport", "EF_", Some("onload:")),
    ("libvma", "VMA_", None),
    ("libxlio", "XLIO_", None),
    ("libexasock", "EXASOCK_", None),
];

/// Reads the facts of this process before its sockets exist.
pub fn of_this_end(root: &Root, cpu: Option<CpuId>) -> EndFacts {
    let read = |path: &str| root.read(path).into_known().unwrap_or_default().trim().to_owned();
    EndFacts {
        // The id itself would identify the host to the peer.
        boot_id: digest(&read("/proc/sys/kernel/random/boot_id")),
        kernel: format!("{} {}", read("/proc/sys/kernel/osrelease"), env::consts::ARCH),
        lowlat_version: env!("CARGO_PKG_VERSION").to_owned(),
        cpu,
        cpus_allowed: affinity::current().map_or(0, |cpus| u32::try_from(cpus.len()).unwrap_or(u32::MAX)),
        preload: preload(root),
        ..EndFacts::default()
    }
}

/// Holds the CPUs of this host out of idle states while the result exists. The facts say whether, or why not.
pub fn hold_idle(facts: &mut EndFacts) -> Option<IdleHold> {
    let sentence =
        |error| format!("Idle states could not be held off: cannot write {}: {error}.", idle_hold::FILE);
    let hold = IdleHold::new().map_err(|error| facts.warnings.push(sentence(error))).ok();
    facts.holds_idle = hold.is_some();
    hold
}

/// Reads how long the interrupts of the queue with this id are suspended; `None` if the kernel does not report it.
pub fn irq_suspend(napi_id: Option<u32>) -> Option<IrqSuspend> {
    let found = napi_instance(napi_id.filter(|id| *id > 0)?).into_known()?;
    Some(IrqSuspend { interface: found.interface, timeout_ns: found.irq_suspend_timeout_ns? })
}

/// Reads which library was to replace the kernel's sockets.
fn preload(root: &Root) -> Option<Preload> {
    let named = env::var("LD_PRELOAD").ok()?;
    let (name, prefix, _) = LIBRARIES.into_iter().find(|(name, ..)| named.contains(name))?;
    let maps = root.read("/proc/self/maps").into_known().unwrap_or_default();
    let mut variables: Vec<String> = env::vars()
        .filter(|(variable, _)| variable.starts_with(prefix))
        .map(|(variable, value)| format!("{variable}={value}"))
        .collect();
    variables.sort_unstable();
    Some(Preload { library: named, is_loaded: maps.contains(name), is_accelerated: None, variables })
}

/// Completes the facts once the data socket exists: whether the loaded library has taken it over.
pub fn add_acceleration(root: &Root, facts: &mut EndFacts, socket: BorrowedFd<'_>) {
    let Some(preload) = facts.preload.as_mut().filter(|preload| preload.is_loaded) else { return };
    let marks = LIBRARIES.into_iter().find(|(name, ..)| preload.library.contains(name));
    let Some((_, _, Some(mark))) = marks else { return };
    let link = root.read_link(&format!("/proc/self/fd/{}", socket.as_raw_fd())).into_known();
    preload.is_accelerated = link.map(|link| link.contains(mark));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn this_end_knows_its_kernel_and_cpus() {
        let facts = of_this_end(&Root::live(), Some(0));
        assert!(facts.cpus_allowed > 0 && facts.kernel.ends_with(env::consts::ARCH), "{facts:?}");
        assert_eq!(facts.boot_id.len(), 16);
        assert_ne!(facts.boot_id, digest(""), "the boot id was read");
        assert_eq!(facts.boot_id, of_this_end(&Root::live(), None).boot_id);
    }

    #[test]
    fn a_socket_of_the_kernel_is_not_accelerated() {
        let mut facts = EndFacts {
            preload: Some(Preload {
                library: "/usr/lib/libonload.so".into(),
                is_loaded: true,
                ..Preload::default()
            }),
            ..EndFacts::default()
        };
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        add_acceleration(&Root::live(), &mut facts, socket.as_fd());
        assert_eq!(facts.preload.unwrap().is_accelerated, Some(false));
    }
}
