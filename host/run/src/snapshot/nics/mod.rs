//! Reads network interfaces: location from sysfs; queues, rings, coalescing, features and time stamping from
//! ethtool; NAPI instances and XDP from netdev.

pub(crate) mod addresses;
pub(crate) mod ethtool;
mod napi;
mod onload;
mod sysfs;
mod vendor;

pub use napi::{NapiInstance, napi_instance};

use crate::{Root, snapshot::formats};
use ethtool::Answers;
use lowlat_host::{Reading, snapshot::Nic};
use serde::{Serialize, de::DeserializeOwned};
use std::collections::BTreeMap;
use vendor::Vendors;

/// Maximum number of interfaces read; a host with containers has hundreds, a broken one tens of thousands.
const INTERFACES_MAX: usize = 4_096;

const PLACE: &str = "/sys/class/net";

pub(super) fn read(root: &Root) -> Vec<Nic> {
    let mut vendors = Vendors::new(root);
    let addresses = addresses::read(root);
    names(root)
        .map(|name| {
            let own = addresses.as_ref().map(|all| all.get(&name).cloned().unwrap_or_default());
            Nic { addresses: own, ..nic(root, &name, &mut vendors) }
        })
        .collect()
}

fn names(root: &Root) -> impl Iterator<Item = String> + '_ {
    let names = root.or_unread(PLACE, root.list(PLACE));
    let is_interface = |name: &String| {
        let path = format!("{PLACE}/{name}");
        if ["address", "operstate", "device"].iter().any(|file| root.exists(&format!("{path}/{file}"))) {
            return true;
        }
        // Files such as bonding_masters are listed among the interfaces. What is neither such a file nor an interface
        // is a link that the tree has not kept: its target is missing, or it was extracted as a file with its target.
        match root.read(&path) {
            Reading::Known(text) if !text.contains("devices/") => {}
            // It was removed after the directory was listed.
            Reading::Absent if root.is_live() => {}
            other => {
                let found = other.known().map_or("a link without its target", String::as_str);
                root.or_unread::<()>(PLACE, Reading::unparsable(&path, found, "a link to an interface"));
            }
        }
        false
    };
    names.into_iter().filter(is_interface).take(INTERFACES_MAX)
}

/// Packets that each interface lost, like [`Nic::drops`]. Reads nothing else, so that it may be called often.
pub fn nic_drops(root: &Root) -> BTreeMap<String, BTreeMap<String, u64>> {
    let drops = |name: String| (sysfs::drops(root, &format!("/sys/class/net/{name}/statistics")), name);
    names(root).map(drops).map(|(drops, name)| (name, drops)).collect()
}

fn nic(root: &Root, name: &str, vendors: &mut Vendors<'_>) -> Nic {
    let answers = ethtool::answers(root, name);
    let netdev = kept(root, "netdev", name, || napi::ask(name));
    let nic = sysfs::read(root, name);
    let answers = match answers {
        // Missing answers of the loopback interface and other virtual ones do not matter.
        Reading::Unparsable(_) if !nic.is_physical => Reading::Absent,
        answers => answers,
    };
    let mut nic = with_answers(nic, answers);
    nic.oui_vendor = nic.mac.as_ref().and_then(|mac| vendors.of(mac));
    nic.napis = netdev.as_ref().and_then(|answers| answers.napis.clone());
    nic.onload_queues = onload::queues(root, name);
    nic.xdp_features = netdev.and_then(|answers| answers.xdp_features);
    nic
}

/// The answers of the live host about an interface or device, or as a capture kept them under `directory`.
pub(super) fn kept<T: Serialize + DeserializeOwned>(
    root: &Root,
    directory: &str,
    interface: &str,
    ask: impl FnOnce() -> T,
) -> Reading<T> {
    let name = format!("{directory}/{}", plain(interface));
    let bytes = root.interface(&name, || Reading::Known(serde_json::to_vec(&ask()).unwrap_or_default()));
    bytes.and_then(|bytes| formats::from_json(&bytes, &name, "the kernel's answers as JSON"))
}

/// An interface's name may contain almost any byte; in the capture's file name other bytes become `_`.
fn plain(interface: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '@');
    let name: String = interface.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
    name.replace("..", "__")
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
        pause: answers.as_ref().and_then(|answers| answers.pause.clone()),
        fec: answers.as_ref().and_then(|answers| answers.fec.clone()),
        eee: answers.as_ref().and_then(|answers| answers.eee.clone()),
        rss_indirection: answers.as_ref().and_then(|answers| answers.rss_indirection.clone()),
        queue_coalescing: answers.as_ref().and_then(|answers| answers.queue_coalescing.clone()),
        private_flags: answers.as_ref().and_then(|answers| answers.private_flags.clone()),
        driver_drops: answers.as_ref().and_then(|answers| answers.driver_drops.clone()),
        rss_contexts: answers.as_ref().and_then(|answers| answers.rss_contexts.clone()),
        flow_rules: answers.as_ref().and_then(|answers| answers.flow_rules.clone()),
        pfc_priorities: answers.as_ref().and_then(|answers| answers.pfc_priorities.clone()),
        transceiver: answers.as_ref().and_then(|answers| answers.transceiver.clone()),
        timestamping: answers.and_then(|answers| answers.timestamping),
        ..nic
    }
}

#[cfg(test)]
mod tests;
