//! The control connection: frames with deadlines.

use super::xdp::XdpError;
use lowlat_net::pingpong::protocol::{self, HEAD_BYTES, Message, ProtocolError};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::Socket;
use std::{
    io::{self, Read, Write},
    net::Shutdown,
    time::{Duration, Instant},
};
use thiserror::Error;

/// Longest wait for the peer to take a frame.
const SEND_TIME_MAX: Duration = Duration::from_secs(5);

/// Error of the control connection.
#[derive(Debug, Error)]
pub enum ControlError {
    #[error("the peer closed the connection")]
    Closed,
    /// No message within the time limit.
    #[error("the peer did not answer within {} s", .0.as_secs_f64())]
    TimedOut(Duration),
    /// The peer sent something else than a message.
    #[error(transparent)]
    Protocol(#[from] ProtocolError),
    #[error("{0}")]
    Refused(String),
    /// The peer sent another message than the protocol allows here.
    #[error("the peer sent an unexpected message: {0}")]
    Unexpected(String),
    /// This end cannot use AF_XDP.
    #[error(transparent)]
    Xdp(#[from] XdpError),
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// A control connection. Frames of one direction are sent and received by one thread each.
#[derive(Debug)]
pub struct Control {
    /// The connected socket.
    pub socket: Socket,
}

impl Control {
    /// Ends the connection for both sides, and wakes a thread that waits in [`Control::receive`].
    pub fn close(&self) {
        // The peer may have closed it first.
        let _ = self.socket.shutdown(Shutdown::Both);
    }

    /// Waits that long at most, and returns whether the socket is in one of these states or closed by both sides.
    pub fn is_ready(&self, states: PollFlags, wait: Duration) -> bool {
        let time = Timespec::try_from(wait).ok();
        poll(&mut [PollFd::new(&self.socket, states)], time.as_ref()).is_ok_and(|ready| ready > 0)
    }

    /// Sends a message.
    ///
    /// # Errors
    /// [`ControlError`] if the peer does not take it.
    pub fn send(&self, message: &Message) -> Result<(), ControlError> {
        self.socket.set_write_timeout(Some(SEND_TIME_MAX))?;
        (&self.socket).write_all(&protocol::encode(message)).map_err(|error| timed(error, SEND_TIME_MAX))
    }

    /// Receives a message within the time limit, which counts for all of its bytes.
    ///
    /// # Errors
    /// [`ControlError`] if no message arrives.
    pub fn receive(&self, limit: Duration) -> Result<Message, ControlError> {
        let deadline = Instant::now() + limit;
        let mut head = [0; HEAD_BYTES];
        self.fill(&mut head, deadline, limit)?;
        let mut body = vec![0; protocol::body_bytes(head)?];
        self.fill(&mut body, deadline, limit)?;
        match protocol::decode(&body)? {
            Message::Refused { why } => {
                Err(ControlError::Refused(lowlat_host::printable::line(&why).into_owned()))
            }
            message => Ok(message),
        }
    }

    fn fill(&self, mut into: &mut [u8], deadline: Instant, limit: Duration) -> Result<(), ControlError> {
        while !into.is_empty() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(ControlError::TimedOut(limit));
            }
            self.socket.set_read_timeout(Some(left))?;
            match (&self.socket).read(into) {
                Ok(0) => return Err(ControlError::Closed),
                Ok(bytes) => into = into.get_mut(bytes..).unwrap_or_default(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(timed(error, limit)),
            }
        }
        Ok(())
    }
}

/// Names a message that does not belong here.
pub fn unexpected(message: &Message) -> ControlError {
    let shown = format!("{message:?}");
    let name = shown.split([' ', '(', '{']).next().unwrap_or_default();
    ControlError::Unexpected(name.to_owned())
}

fn timed(error: io::Error, limit: Duration) -> ControlError {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => ControlError::TimedOut(limit),
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted => {
            ControlError::Closed
        }
        _ => ControlError::Io(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use socket2::{Domain, Type};

    fn pair() -> (Control, Control) {
        let (a, b) = Socket::pair(Domain::UNIX, Type::STREAM, None).unwrap();
        (Control { socket: a }, Control { socket: b })
    }

    const SOON: Duration = Duration::from_millis(50);
    const LATE: Duration = Duration::from_secs(20);

    #[test]
    fn messages_arrive_whole_however_they_are_cut() {
        let (near, far) = pair();
        let frame =
            [protocol::encode(&Message::Joined { xdp: None }), protocol::encode(&Message::End)].concat();
        let sender = std::thread::spawn(move || {
            for byte in frame {
                (&near.socket).write_all(&[byte]).unwrap();
            }
            near
        });
        assert_eq!(far.receive(LATE).unwrap(), Message::Joined { xdp: None });
        assert_eq!(far.receive(LATE).unwrap(), Message::End);
        drop(sender.join().unwrap());
        assert!(matches!(far.receive(LATE), Err(ControlError::Closed)));
    }

    #[test]
    fn a_slow_garbled_or_silent_peer_is_an_error() {
        let (near, far) = pair();
        assert!(matches!(far.receive(SOON), Err(ControlError::TimedOut(_))));
        (&near.socket).write_all(b"LW").unwrap();
        assert!(matches!(far.receive(SOON), Err(ControlError::TimedOut(_))), "half a head");
        let (near, far) = pair();
        (&near.socket).write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        assert!(matches!(far.receive(LATE), Err(ControlError::Protocol(ProtocolError::Magic))));
        let (near, far) = pair();
        near.send(&Message::Refused { why: "busy\u{1b}[2J".into() }).unwrap();
        let refused = far.receive(LATE).unwrap_err().to_string();
        assert_eq!(refused, "busy\\u{1b}[2J");
        assert_eq!(
            unexpected(&Message::Peer { udp_port: 1 }).to_string(),
            "the peer sent an unexpected message: Peer"
        );
    }
}
