//! The socket that keeps the kernel's time stamping on.

use super::{super::calls::Wait, calls};
use std::{
    io,
    net::UdpSocket,
    os::fd::{AsFd, OwnedFd},
    sync::{Mutex, PoisonError},
    thread,
    time::Duration,
};

/// Packets sent until one is stamped, and the time between them.
const TRIES: u32 = 50;
const PAUSE: Duration = Duration::from_millis(2);

/// The socket of this process, from its first run with time stamps on.
static HELD: Mutex<Option<OwnedFd>> = Mutex::new(None);

/// Keeps the kernel's time stamping on until this process ends. The first socket that stamps, and the last one that
/// closes, make the kernel rewrite its code and interrupt every CPU; with one that is held, the measured sockets can
/// start and stop stamping without that.
///
/// # Errors
/// If the kernel refuses the socket or its option.
pub fn hold() -> io::Result<()> {
    let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    if held.is_none() {
        let socket = UdpSocket::bind("127.0.0.1:0").or_else(|_| UdpSocket::bind("[::1]:0"))?;
        calls::set_stamps(socket.as_fd(), true)?;
        wait_for_stamps(&socket);
        *held = Some(socket.into());
    }
    Ok(())
}

/// Waits until packets are stamped: the kernel rewrites its code on another thread.
fn wait_for_stamps(socket: &UdpSocket) {
    for _ in 0..TRIES {
        let is_stamped = || -> io::Result<bool> {
            socket.send_to(&[0], socket.local_addr()?)?;
            let (_, arrived) = calls::receive(socket.as_fd(), &mut [0], Wait::Not)?;
            Ok(arrived.ns.is_some())
        };
        // A namespace whose `lo` is down has no packets to look at.
        if is_stamped().unwrap_or(false) {
            return;
        }
        thread::sleep(PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn one_socket_is_held_however_many_runs_ask() {
        let held = || {
            hold().unwrap();
            HELD.lock().unwrap().as_ref().map(AsRawFd::as_raw_fd)
        };
        let first = held();
        assert!(first.is_some());
        assert_eq!(held(), first);
    }
}
