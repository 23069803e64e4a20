//! Passes segments between processes: file descriptors with a short message, over a unix socket.

use rustix::{
    io::{self, Errno, IoSlice, IoSliceMut},
    net::{
        self, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
        SendAncillaryMessage, SendFlags,
    },
};
use std::{
    mem::MaybeUninit,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

pub const MESSAGE_BYTES_MAX: usize = 4096;
/// Largest number of descriptors per message.
pub const DESCRIPTORS_MAX: usize = 8;

#[derive(Debug, Default)]
pub struct Received {
    pub bytes: Vec<u8>,
    /// Its descriptors, in order. They are closed when dropped, and not inherited by started programs.
    pub descriptors: Vec<OwnedFd>,
}

/// Sends a message over a socket that preserves message boundaries (SOCK_SEQPACKET). Refuses what `receive`
/// would truncate.
pub fn send(socket: impl AsFd, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> Result<(), Errno> {
    if bytes.is_empty() || bytes.len() > MESSAGE_BYTES_MAX || descriptors.len() > DESCRIPTORS_MAX {
        return Err(Errno::MSGSIZE);
    }
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(Errno::MSGSIZE);
    }
    let message = [IoSlice::new(bytes)];
    // NOSIGNAL: a closed peer is an error, and must not end this process.
    io::retry_on_intr(|| net::sendmsg(socket.as_fd(), &message, &mut control, SendFlags::NOSIGNAL))?;
    Ok(())
}

/// Receives one message; `None` if the other side has closed. A truncated message is refused: half of it is
/// meaningless.
pub fn receive(socket: impl AsFd) -> Result<Option<Received>, Errno> {
    let mut bytes = vec![0; MESSAGE_BYTES_MAX];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let message = io::retry_on_intr(|| {
        net::recvmsg(
            socket.as_fd(),
            &mut [IoSliceMut::new(&mut bytes)],
            &mut control,
            RecvFlags::CMSG_CLOEXEC,
        )
    })?;
    let mut descriptors = Vec::new();
    for part in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = part {
            descriptors.extend(rights);
        }
    }
    if message.flags.intersects(net::ReturnFlags::TRUNC | net::ReturnFlags::CTRUNC) {
        return Err(Errno::MSGSIZE);
    }
    bytes.truncate(message.bytes);
    Ok((message.bytes > 0).then_some(Received { bytes, descriptors }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        atomics::Ordering,
        region::{Access, Memfd, Region},
    };
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    fn pair() -> (OwnedFd, OwnedFd) {
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap()
    }

    #[test]
    fn memory_can_be_passed_over_a_socket() {
        let (ours, theirs) = pair();
        let memory = Memfd::create("lowlat-test", 8192).unwrap();
        send(&ours, b"stream 1", &[memory.writer_fd()]).unwrap();
        let mut received = receive(&theirs).unwrap().unwrap();
        assert_eq!(received.bytes, b"stream 1");
        let mapped = Memfd::open(received.descriptors.remove(0), Access::Write).unwrap();
        mapped.words()[9].store(4, Ordering::Release);
        assert_eq!(memory.words()[9].load(Ordering::Acquire), 4);
    }

    #[test]
    fn a_closed_peer_and_wrong_sizes_are_errors() {
        let (ours, theirs) = pair();
        assert_eq!(send(&ours, b"", &[]), Err(Errno::MSGSIZE));
        assert_eq!(send(&ours, &[0; MESSAGE_BYTES_MAX + 1], &[]), Err(Errno::MSGSIZE));
        send(&ours, b"without a descriptor", &[]).unwrap();
        assert!(receive(&theirs).unwrap().unwrap().descriptors.is_empty());
        drop(ours);
        assert!(receive(&theirs).unwrap().is_none());
        assert_eq!(send(&theirs, b"x", &[]), Err(Errno::PIPE));
    }
}
