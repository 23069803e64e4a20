//! Reads services and their states, TuneD, irqbalance and control groups.

mod bus;
mod cgroups;
mod managers;
mod process_cpus;
mod unit_files;

use crate::Root;
use lowlat_host::snapshot::{ServiceFacts, ServiceSource};

pub(super) fn read(root: &Root) -> ServiceFacts {
    let (source, units) = match bus::units(root).into_known() {
        Some(units) => (ServiceSource::SystemdBus, units),
        None => match unit_files::read(root) {
            Some(found) => (ServiceSource::UnitFiles, found.units),
            None => (ServiceSource::None, std::collections::BTreeMap::new()),
        },
    };
    ServiceFacts {
        source,
        units,
        default_target: unit_files::default_target(root),
        tuned: managers::tuned(root),
        irqbalance: managers::irqbalance(root),
        cgroup_version: cgroups::version(root),
        cpuset_partitions: cgroups::cpuset_partitions(root),
        process_cpus: process_cpus::read(root),
    }
}

/// Kinds of units that run something or start what does. Devices, mounts, slices and scopes, which are most
/// of a host's units, are left out.
fn is_of_interest(unit: &str) -> bool {
    let kind = unit.rsplit_once('.').map(|(_, kind)| kind);
    let is_template = unit.contains("@.");
    matches!(kind, Some("service" | "timer" | "socket" | "path" | "target")) && !is_template
}

/// The template of an instance: "getty@.service" of "getty@tty1.service".
fn template_of(unit: &str) -> Option<String> {
    let (name, kind) = unit.rsplit_once('.')?;
    let (prefix, _) = name.split_once('@')?;
    Some(format!("{prefix}@.{kind}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestTree;

    #[test]
    fn units_and_their_templates_are_distinguished() {
        assert!(is_of_interest("chronyd.service") && is_of_interest("getty@tty1.service"));
        assert!(
            !is_of_interest("getty@.service") && !is_of_interest("dev-vda.device") && !is_of_interest("x")
        );
        assert_eq!(template_of("getty@tty1.service").as_deref(), Some("getty@.service"));
        assert_eq!(template_of("chronyd.service"), None);
    }

    #[test]
    fn a_host_without_a_service_manager_has_none() {
        assert_eq!(read(&TestTree::new().root()), ServiceFacts::default());
    }

    #[test]
    fn the_live_host_is_read_whatever_manages_it() {
        let facts = read(&Root::live());
        assert!(facts.units.keys().all(|unit| is_of_interest(unit)));
        assert_eq!(facts.units.is_empty(), facts.source == ServiceSource::None);
    }
}
