//! Reads network interfaces: location from sysfs; queues, rings, coalescing, features and time stamping from
//! ethtool.

pub(crate) mod ethtool;
mod sysfs;
mod vendor;

use crate::Root;
use ethtool::Answers;
use lowlat_host::{Reading, snapshot::Nic};
use vendor::Vendors;

/// Maximum number of interfaces read; a host with containers has hundreds, a broken one tens of thousands.
const INTERFACES_MAX: usize = 4_096;

pub(super) fn read(root: &Root) -> Vec<Nic> {
    let names = root.list("/sys/class/net").into_known().unwrap_or_default();
    // Files such as bonding_masters are listed among the interfaces.
    let is_interface = |name: &String| root.exists(&format!("/sys/class/net/{name}/address"));
    let mut vendors = Vendors::new(root);
    let names = names.into_iter().filter(is_interface).take(INTERFACES_MAX);
    names.map(|name| nic(root, &name, &mut vendors)).collect()
}

fn nic(root: &Root, name: &str, vendors: &mut Vendors<'_>) -> Nic {
    let answers = ethtool::answers(root, name);
    let mut nic = sysfs::read(root, name);
    nic.oui_vendor = nic.mac.as_ref().and_then(|mac| vendors.of(mac));
    with_answers(nic, answers)
}

/// The file system takes precedence over ethtool if both have a value.
fn with_answers(nic: Nic, answers: Reading<Answers>) -> Nic {
    let driver = answers.as_ref().and_then(|answers| answers.driver.clone());
    let text = |of: fn(&ethtool::Driver) -> &String| {
        driver
            .as_ref()
            .and_then(|driver| Reading::from_option(Some(of(driver).clone()).filter(|t| !t.is_empty())))
    };
    Nic {
        driver: nic.driver.or(|| text(|driver| &driver.name)),
        driver_version: nic.driver_version.or(|| text(|driver| &driver.version)),
        firmware: text(|driver| &driver.firmware),
        channels: answers.as_ref().and_then(|answers| answers.channels.clone()),
        rings: answers.as_ref().and_then(|answers| answers.rings.clone()),
        coalescing: answers.as_ref().and_then(|answers| answers.coalescing.clone()),
        offloads: answers.as_ref().and_then(|answers| answers.offloads.clone()),
        timestamping: answers.and_then(|answers| answers.timestamping),
        ..nic
    }
}

#[cfg(test)]
mod tests;
