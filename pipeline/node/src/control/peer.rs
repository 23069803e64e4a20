//! The process at the other end of a control socket.

use std::{
    io,
    os::fd::{AsFd, AsRawFd},
    ptr::NonNull,
};

/// Groups that are read at once; more are asked for if the kernel says so.
const GROUPS: usize = 64;

/// A process as the kernel knew it when it connected, or listened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// Its id in the PID namespace of this process; `None` if it is in one that this process cannot see.
    pub pid: Option<u32>,
    pub user: u32,
    /// Its groups, those of the kernel's credentials. Kernels before 4.13 report only the first.
    pub groups: Vec<u32>,
}

impl Peer {
    /// Asks the kernel (`SO_PEERCRED`, `SO_PEERGROUPS`).
    pub fn of(socket: impl AsFd) -> io::Result<Self> {
        let mut words = [0_u32; 3];
        option(&socket, libc::SO_PEERCRED, &mut words).map_err(|(error, _)| error)?;
        let [pid, user, group] = words;
        let mut groups = vec![0; GROUPS];
        let found = match option(&socket, libc::SO_PEERGROUPS, &mut groups) {
            Err((error, count)) if error.raw_os_error() == Some(libc::ERANGE) => {
                groups.resize(count, 0);
                option(&socket, libc::SO_PEERGROUPS, &mut groups)
            }
            found => found,
        };
        groups.truncate(found.unwrap_or(0));
        groups.push(group);
        Ok(Self { pid: Some(pid).filter(|pid| *pid > 0), user, groups })
    }
}

/// Reads an option of words. Returns how many there are, with an error too.
fn option(socket: &impl AsFd, name: i32, words: &mut [u32]) -> Result<usize, (io::Error, usize)> {
    let mut bytes = libc::socklen_t::try_from(size_of_val(words)).unwrap_or(0);
    let place = NonNull::from(&mut *words).cast();
    // SAFETY: the descriptor is open, as it is borrowed. `place` points to `bytes` bytes that this function may write; the
    // kernel writes that many at most, and any bytes are valid numbers. It writes the length that it has to `bytes`.
    let failed = unsafe {
        libc::getsockopt(socket.as_fd().as_raw_fd(), libc::SOL_SOCKET, name, place.as_ptr(), &raw mut bytes)
    };
    let count = usize::try_from(bytes).unwrap_or(0) / size_of::<u32>();
    if failed == 0 { Ok(count.min(words.len())) } else { Err((io::Error::last_os_error(), count)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{getegid, geteuid};
    use std::os::unix::net::UnixStream;

    #[test]
    fn this_process_is_its_own_peer() {
        let (one, _other) = UnixStream::pair().unwrap();
        let peer = Peer::of(&one).unwrap();
        assert_eq!((peer.pid, peer.user), (Some(std::process::id()), geteuid().as_raw()));
        let groups = rustix::process::getgroups().unwrap();
        assert!(groups.iter().chain([&getegid()]).all(|group| peer.groups.contains(&group.as_raw())));
        assert!(Peer::of(std::fs::File::open("/dev/null").unwrap()).is_err());
    }
}
