//! Interfaces without a driver of Onload's own, which it drives over AF_XDP once they are registered. Its module
//! `sfc_resource` takes their names in sysfs, and lists them in debugfs.

use crate::Root;
use lowlat_host::Reading;
use rustix::io::Errno;
use std::{fs::OpenOptions, io::Write};

const FOLDER: &str = "/sys/module/sfc_resource/afxdp";
const LIST: &str = "/sys/kernel/debug/sfc_resource/nics";

/// Returns [`lowlat_host::snapshot::Nic::onload_queues`].
pub(super) fn queues(root: &Root, interface: &str) -> Reading<u32> {
    if !root.exists(FOLDER) {
        return Reading::Absent;
    }
    root.list(LIST).and_then(|entries| {
        // "000_eth0"
        let own = |entry: &&String| entry.split_once('_').is_some_and(|(_, name)| name == interface);
        let Some(entry) = entries.iter().find(own) else { return Reading::Known(0) };
        let path = format!("{LIST}/{entry}/vi_lim");
        match root.read(&format!("{LIST}/{entry}/devtype")) {
            Reading::Known(kind) if !kind.contains("AF_XDP") => Reading::Absent,
            other => other.and_then(|_| root.read(&path).parse(&path, "a number", |text| text.parse().ok())),
        }
    })
}

/// Registers this many queues of an interface of the running host, or none.
pub(super) fn register(interface: &str, queues: u32) -> Result<(), Errno> {
    let write = |file: &str, line: String| {
        let file = OpenOptions::new().write(true).open(format!("{FOLDER}/{file}"));
        let written = file.and_then(|mut file| file.write_all(line.as_bytes()));
        written.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
    };
    if self::queues(&Root::live(), interface).known().is_some_and(|now| *now > 0) {
        write("unregister", format!("{interface}\n"))?;
    }
    if queues > 0 { write("register", format!("{interface} {queues}\n")) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interfaces_are_listed_with_their_queues() {
        let file = |path: &str, text: &str| (path.to_owned(), text.as_bytes().to_vec());
        let root = Root::in_memory(
            "test",
            [
                file("/sys/module/sfc_resource/afxdp/register", "\n"),
                file("/sys/kernel/debug/sfc_resource/nics/000_eth0/devtype", "4:58:0 => AF_XDP\n"),
                file("/sys/kernel/debug/sfc_resource/nics/000_eth0/vi_lim", "4\n"),
                file("/sys/kernel/debug/sfc_resource/nics/001_enp1s0/devtype", "1:41:1 => EF10\n"),
                file("/sys/kernel/debug/sfc_resource/nics/002_e_h/devtype", "4:58:0 => AF_XDP\n"),
                file("/sys/kernel/debug/sfc_resource/nics/002_e_h/vi_lim", "many\n"),
            ],
        );
        assert_eq!(queues(&root, "eth0"), Reading::Known(4));
        assert_eq!(queues(&root, "eth1"), Reading::Known(0));
        assert_eq!(queues(&root, "enp1s0"), Reading::Absent);
        assert!(matches!(queues(&root, "e_h"), Reading::Unparsable(_)));
        assert_eq!(queues(&Root::in_memory("test", []), "eth0"), Reading::Absent);
        let silent = Root::in_memory("test", [file("/sys/module/sfc_resource/afxdp/register", "\n")]);
        assert_eq!(queues(&silent, "eth0"), Reading::Absent, "debugfs is not mounted");
    }
}
