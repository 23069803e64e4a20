//! Evidence of acceleration, from the mappings, files and sockets of a running command.

use lowlat_host_run::Root;
use lowlat_launch::{AccelerationEvidence, Accelerator, KernelSocket};
use std::{
    collections::BTreeSet,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};

/// The kernel's tables of internet sockets, below /proc/PID/net.
const TABLES: [&str; 4] = ["tcp", "tcp6", "udp", "udp6"];
/// Reads the evidence of process `pid`.
pub fn evidence(root: &Root, pid: u32, accelerator: &Accelerator) -> AccelerationEvidence {
    let maps = root.read(&format!("/proc/{pid}/maps")).into_known().unwrap_or_default();
    let files = open_files(root, pid);
    let device = files.iter().find(|file| match accelerator {
        Accelerator::Onload(_) => file.starts_with("/dev/onload") || file.contains("onload:"),
        Accelerator::Vma | Accelerator::Xlio => file.starts_with("/dev/infiniband/uverbs"),
    });
    let inodes: BTreeSet<&str> =
        files.iter().filter_map(|file| file.strip_prefix("socket:[")?.strip_suffix(']')).collect();
    let kernel_sockets = TABLES
        .into_iter()
        .flat_map(|table| {
            let text = root.read(&format!("/proc/{pid}/net/{table}")).into_known().unwrap_or_default();
            text.lines().skip(1).filter_map(|line| socket(table, line, &inodes)).collect::<Vec<_>>()
        })
        .collect();
    AccelerationEvidence {
        has_library: maps.lines().any(|line| is_library(line, accelerator.library())),
        device: device.cloned(),
        kernel_sockets,
    }
}

/// Returns whether a line of /proc/PID/maps names the library, of any version: "libvma.so.9.8.51".
fn is_library(line: &str, library: &str) -> bool {
    line.rsplit('/').next().is_some_and(|name| name.starts_with(library)) && line.contains('/')
}

fn open_files(root: &Root, pid: u32) -> Vec<String> {
    let folder = format!("/proc/{pid}/fd");
    let numbers = root.list(&folder).into_known().unwrap_or_default();
    numbers.iter().filter_map(|number| root.read_link(&format!("{folder}/{number}")).into_known()).collect()
}

/// Parses a line of /proc/net/tcp or udp (Documentation/networking/proc_net_tcp.rst), if it is one of these sockets.
fn socket(protocol: &'static str, line: &str, inodes: &BTreeSet<&str>) -> Option<KernelSocket> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let (local, remote, inode) = (fields.get(1)?, fields.get(2)?, fields.get(9)?);
    inodes.contains(inode).then_some(())?;
    Some(KernelSocket { protocol, local: address(local)?, remote: address(remote)? })
}

/// Parses "0100007F:1F90": 32-bit words in the order of the processor, then the port.
fn address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let word = |at: usize| u32::from_str_radix(ip.get(at * 8..at * 8 + 8)?, 16).ok().map(u32::to_ne_bytes);
    let ip = match ip.len() {
        8 => IpAddr::V4(Ipv4Addr::from(word(0)?)),
        32 => {
            let mut bytes = [0; 16];
            for (at, chunk) in bytes.chunks_exact_mut(4).enumerate() {
                chunk.copy_from_slice(&word(at)?);
            }
            IpAddr::V6(Ipv6Addr::from(bytes))
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip.to_canonical(), u16::from_str_radix(port, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_both_families() {
        let text = |text: &str| address(text).map(|address| address.to_string());
        assert_eq!(text("0100007F:1F90").as_deref(), Some("127.0.0.1:8080"));
        assert_eq!(text("00000000000000000000000001000000:0016").as_deref(), Some("[::1]:22"));
        assert_eq!(text("0000000000000000FFFF00000100000A:0050").as_deref(), Some("10.0.0.1:80"), "mapped");
        for bad in ["", ":", "0100007F", "0100007:1F90", "0100007F:XYZ", "ÿ100007F:1F90"] {
            assert_eq!(text(bad), None, "{bad}");
        }
    }

    #[test]
    fn libraries_of_any_version() {
        let line = "7f10-7f20 r-xp 00000000 08:01 12 /usr/lib64/libvma.so.9.8.51";
        assert!(is_library(line, "libvma.so"));
        assert!(!is_library("7f10-7f20 r-xp 00000000 08:01 12 /opt/libvma.so/other", "libvma.so"));
        assert!(!is_library("libvma.so", "libvma.so"));
    }

    #[test]
    fn a_process_of_a_tree_shows_its_sockets() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
             \x20  0: 0100000A:1F90 0200000A:1388 01 00000000:00000000 00:00000000 00000000     0        0 4242 1\n\
             \x20  1: 0100000A:1F91 0200000A:1388 01 00000000:00000000 00:00000000 00000000     0        0 4343 1\n";
        let root = Root::in_memory(
            "test",
            [
                ("/proc/7/maps".to_owned(), b"1-2 r-xp 0 0:0 1 /usr/lib64/libonload.so\n".to_vec()),
                ("/proc/7/net/tcp".to_owned(), table.into()),
            ],
        );
        let seen = evidence(&root, 7, &Accelerator::Onload("latency".into()));
        assert!(seen.has_library && seen.kernel_sockets.is_empty(), "no open file names a socket: {seen:?}");
        let inodes = BTreeSet::from(["4242"]);
        let sockets: Vec<_> = table.lines().skip(1).filter_map(|line| socket("tcp", line, &inodes)).collect();
        let shown: Vec<String> = sockets.iter().map(KernelSocket::to_string).collect();
        assert_eq!(shown, ["tcp 10.0.0.1:8080 to 10.0.0.2:5000"]);
    }
}
