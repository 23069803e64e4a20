//! Checks whether a NIC stamps packets itself.

use lowlat_host_run::snapshot::napi_instance;
use std::{ffi::c_char, io, mem, net::UdpSocket, os::fd::AsRawFd};

/// Reads the time stamping of a NIC (linux/sockios.h) and switches nothing on. Its type differs between C libraries.
#[cfg(target_env = "musl")]
const SIOCGHWTSTAMP: libc::c_int = 0x89b1;
#[cfg(not(target_env = "musl"))]
const SIOCGHWTSTAMP: libc::c_ulong = 0x89b1;

/// The kernel's `struct hwtstamp_config`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Config {
    flags: i32,
    tx_type: i32,
    rx_filter: i32,
}

/// Says in a sentence whether the NIC of a queue stamps packets in hardware.
pub fn sentence(napi_id: Option<u32>) -> String {
    let interface = napi_id.filter(|id| *id > 0).and_then(|id| napi_instance(id).into_known());
    let Some(interface) = interface.map(|found| found.interface) else {
        return "Hardware time stamps: not available, since no queue of a NIC is known.".to_owned();
    };
    match config(&interface) {
        Ok(config) if config.tx_type > 0 && config.rx_filter > 0 => {
            format!(
                "Hardware time stamps of {interface} are on; the wire is between the NICs if the other end has them too."
            )
        }
        Ok(_) => format!(
            "Hardware time stamps are off on {interface}, so the NICs count as wire: `hwstamp_ctl -i {interface} -t 1 -r 1` \
             switches them on."
        ),
        Err(_) => format!("Hardware time stamps: not available on {interface}, so the NICs count as wire."),
    }
}

fn config(interface: &str) -> io::Result<Config> {
    let socket = UdpSocket::bind("0.0.0.0:0").or_else(|_| UdpSocket::bind("[::]:0"))?;
    let mut config = Config::default();
    // SAFETY: an ifreq is plain data, for which all zeros are valid.
    let mut request: libc::ifreq = unsafe { mem::zeroed() };
    // The last byte stays zero, so the name ends.
    for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes().take(libc::IF_NAMESIZE - 1)) {
        *to = c_char::from_ne_bytes([from]);
    }
    request.ifr_ifru.ifru_data = (&raw mut config).cast();
    // SAFETY: the request names an interface and points to a configuration laid out as the kernel's; both are alive and
    // writable during the call. The descriptor is open.
    let read = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCGHWTSTAMP, &raw mut request) };
    if read == 0 { Ok(config) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interfaces_without_hardware_stamps_say_so() {
        assert!(config("lo").is_err() && config("no-such-interface-at-all").is_err());
        assert!(sentence(None).starts_with("Hardware time stamps: not available"));
    }
}
