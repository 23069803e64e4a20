//! Readers: each turns one part of a host into facts. They do not judge, and they never fail: a reading
//! states what could not be read.

mod bypass;
mod cpu;
mod cpuinfo;
mod disks;
mod firmware;
mod formats;
#[cfg(test)]
mod hostile_tests;
mod interrupts;
mod kernel;
mod memory;
mod memory_nodes;
mod nics;
mod pci;
mod scheduler;
mod services;
mod tasks;
mod topology;
mod virtualization;

pub use firmware::secure_boot;
pub use interrupts::read as interrupts_now;
pub use kernel::{BuiltInLine, built_in_line, load_average, machine_id_digest, sysctl_conf};
pub use memory::memory_total;
pub use memory_nodes::memory_nodes;
pub use nics::{NapiInstance, napi_instance, nic_drops};
pub(crate) use nics::{addresses::INTERFACE as ADDRESSES, ethtool};

use crate::{Root, root::manifest::Manifest};
use lowlat_host::{
    HostSnapshot, Reading,
    snapshot::{Origin, OriginKind, SchedulerFacts},
};
use lowlat_settings::Catalogue;
use std::collections::BTreeMap;

/// Directories that every kernel has. If one is missing, the absence of a file below it proves nothing.
const EVERYWHERE: [&str; 4] = ["/proc/sys", "/sys/devices", "/sys/kernel", "/sys/module"];

/// Reads everything that lowlat uses of a host, including the files and kernel options that the catalogue
/// names.
pub fn read(root: &Root, catalogue: Catalogue) -> HostSnapshot {
    let mut options = [catalogue.config_options(), SchedulerFacts::CONFIG_OPTIONS.to_vec()].concat();
    options.sort_unstable();
    // Earlier reads are not part of this snapshot.
    root.take_unread();
    let host = HostSnapshot {
        schema_version: HostSnapshot::SCHEMA_VERSION,
        origin: origin(root),
        topology: topology::read(root),
        cpu: cpu::read(root),
        memory: memory::read(root),
        firmware: firmware::read(root),
        kernel: kernel::read(root, &options),
        interrupts: interrupts::read(root),
        scheduler: scheduler::read(root),
        tasks: tasks::read(root),
        services: services::read(root),
        nics: nics::read(root),
        bypasses: bypass::read(root),
        disks: disks::read(root),
        virtualization: virtualization::read(root),
        files: read_knobs(root, &catalogue.knob_globs()),
        unread: BTreeMap::new(),
    };
    HostSnapshot { unread: root.take_unread(), ..host }
}

/// Reads everything but the files and kernel options that a catalogue names, for commands that judge nothing.
pub fn read_without_knobs(root: &Root) -> HostSnapshot {
    read(root, Catalogue::new(&[]))
}

/// Reads the small files that the settings of the catalogue name by these globs; a path without a glob is kept even if
/// it is absent.
fn read_knobs(root: &Root, globs: &[&str]) -> BTreeMap<String, Reading<String>> {
    let mut files = BTreeMap::new();
    for folder in EVERYWHERE.iter().filter(|_| !globs.is_empty()) {
        root.or_unread(folder, root.list(folder));
    }
    for &glob in globs {
        let paths = if glob.contains('*') { root.glob(glob) } else { vec![glob.to_owned()] };
        for path in paths {
            let reading = root.read(&path);
            files.insert(path, reading);
        }
    }
    files
}

fn origin(root: &Root) -> Origin {
    let kind = match () {
        () if root.is_live() => OriginKind::Live,
        () if root.is_capture() => OriginKind::Capture,
        () => OriginKind::Directory,
    };
    let manifest = if root.is_live() { None } else { Manifest::read(root) };
    Origin {
        kind,
        label: root.label().to_owned(),
        is_redacted: manifest.as_ref().is_some_and(|manifest| manifest.is_redacted),
        is_privileged: match manifest {
            Some(manifest) => manifest.is_privileged,
            None => root.is_live() && rustix::process::geteuid().is_root(),
        },
    }
}
