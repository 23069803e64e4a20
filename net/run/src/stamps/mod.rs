//! Time stamps of the measured messages by the kernel (SO_TIMESTAMPING; Documentation/networking/timestamping.rst).

mod calls;

use super::calls::Wait;
use calls::{At, ErrorQueue, Sent};
use lowlat_host_run::snapshot::napi_instance;
use lowlat_net::pingpong::parts::Stamps;
use std::{
    ffi::c_char,
    io, mem,
    net::UdpSocket,
    os::fd::{AsFd, AsRawFd, OwnedFd},
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::Duration,
};

/// Time stamps of one batch. The socket stamps from the start of the batch to its end.
#[derive(Debug)]
pub struct Stamper {
    socket: Arc<OwnedFd>,
    rows: Vec<Stamps>,
    /// Difference between the kernel's numbers of successive messages: bytes of a stream, or 1.
    step: u32,
    /// The kernel's number of the first message, once known.
    first: Option<u32>,
    /// When the last packet arrived.
    arrived: At,
    queue: ErrorQueue,
}

impl Stamper {
    /// Starts to stamp so many messages of this size. All memory is allocated here.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn start(socket: Arc<OwnedFd>, count: u64, bytes: u32, is_stream: bool) -> io::Result<Self> {
        let rows = Vec::with_capacity(usize::try_from(count).unwrap_or_default());
        let mut queue = ErrorQueue::new();
        // A stamp that an earlier batch left would count as one of this batch.
        queue.drain(socket.as_fd(), |_| {});
        calls::set_stamps(socket.as_fd(), true)?;
        let step = if is_stream { bytes.max(1) } else { 1 };
        Ok(Self { socket, rows, step, first: None, arrived: At::default(), queue })
    }

    /// Receives, and keeps the time when the packet arrived.
    pub fn receive(&mut self, into: &mut [u8], wait: Wait) -> io::Result<usize> {
        let (bytes, arrived) = calls::receive(self.socket.as_fd(), into, wait)?;
        if arrived != At::default() {
            self.arrived = arrived;
        }
        Ok(bytes)
    }

    /// A row with the time when the last packet arrived, once.
    pub fn take_arrival(&mut self) -> Stamps {
        let At { ns: arrived_ns, nic_ns: arrived_at_nic_ns } = mem::take(&mut self.arrived);
        Stamps { arrived_ns, arrived_at_nic_ns, ..Stamps::default() }
    }

    /// Adds the row of a message that is being sent, before its stamps of departure arrive.
    pub fn push(&mut self, row: Stamps) {
        if self.rows.len() < self.rows.capacity() {
            self.rows.push(row);
        }
    }

    /// The row of the last message.
    pub fn last_row(&mut self) -> Option<&mut Stamps> {
        self.rows.last_mut()
    }

    /// Reads the departures that the kernel has stamped so far. To be called when no measured time passes.
    pub fn read_departures(&mut self) {
        let Self { socket, rows, step, first, queue, .. } = self;
        queue.drain(socket.as_fd(), |sent| note(rows, *step, first, sent));
    }

    /// Stops stamping. Returns a row for each message of the batch.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn end(mut self) -> io::Result<Vec<Stamps>> {
        self.read_departures();
        calls::set_stamps(self.socket.as_fd(), false)?;
        Ok(self.rows)
    }
}

/// Puts a departure into the row of its message. The first number belongs to the first message, because both ends are
/// silent when stamping starts.
fn note(rows: &mut [Stamps], step: u32, first: &mut Option<u32>, sent: Sent) {
    let number = sent.number.wrapping_sub(*first.get_or_insert(sent.number));
    // A number between two messages belongs to a part of one.
    let place = number.is_multiple_of(step).then_some(number / step);
    let row = place.and_then(|place| rows.get_mut(usize::try_from(place).ok()?));
    let Some(row) = row else { return };
    if sent.is_queued {
        row.queued_ns = row.queued_ns.or(sent.at.ns);
    } else {
        row.sent_ns = row.sent_ns.or(sent.at.ns);
        row.sent_by_nic_ns = row.sent_by_nic_ns.or(sent.at.nic_ns);
    }
}

/// The real-time clock, with which the kernel stamps packets.
pub fn now_ns() -> u64 {
    lowlat_jitter_run::clock::nanoseconds(rustix::time::ClockId::Realtime)
}

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
    use std::{net::UdpSocket, os::fd::AsRawFd};

    #[test]
    fn departures_find_the_rows_of_their_messages() {
        let mut rows = vec![Stamps::default(); 3];
        let mut first = None;
        let sent = |number, is_queued, ns| Sent { number, is_queued, at: At { ns: Some(ns), nic_ns: None } };
        // The numbers of a stream wrap around; those between two messages and beyond the last have no row.
        let start = u32::MAX - 31;
        for (number, is_queued, ns) in [
            (start, true, 1),
            (start, false, 2),
            (start.wrapping_add(32), false, 4),
            (start.wrapping_add(33), true, 9),
            (start.wrapping_add(64), true, 5),
            (start.wrapping_add(64), true, 6),
            (start.wrapping_add(96), true, 9),
            (start.wrapping_sub(32), true, 9),
        ] {
            note(&mut rows, 32, &mut first, sent(number, is_queued, ns));
        }
        let by_nic = Sent { number: start, is_queued: false, at: At { ns: None, nic_ns: Some(8) } };
        note(&mut rows, 32, &mut first, by_nic);
        assert_eq!(rows[0].sent_by_nic_ns, Some(8), "in an entry of its own");
        let found: Vec<_> = rows.iter().map(|row| (row.queued_ns, row.sent_ns)).collect();
        assert_eq!(found, [(Some(1), Some(2)), (None, Some(4)), (Some(5), None)]);
    }

    #[test]
    fn the_kernel_stamps_both_directions_in_order() {
        hold().unwrap();
        let [a, b] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        a.connect(b.local_addr().unwrap()).unwrap();
        b.connect(a.local_addr().unwrap()).unwrap();
        let (a, b) = (Arc::new(OwnedFd::from(a)), Arc::new(OwnedFd::from(b)));
        let mut near = Stamper::start(Arc::clone(&a), 5, 8, false).unwrap();
        let mut far = Stamper::start(b, 5, 8, false).unwrap();
        for _ in 0..5 {
            near.push(Stamps { sending_ns: Some(now_ns()), ..Stamps::default() });
            super::super::calls::send(near.socket.as_fd(), &[1; 8], Wait::Sleep).unwrap();
            let mut buffer = [0; 16];
            assert_eq!(far.receive(&mut buffer, Wait::Sleep).unwrap(), 8);
            let arrival = far.take_arrival();
            assert!(arrival.arrived_ns.is_some() && arrival.arrived_at_nic_ns.is_none(), "lo has no clock");
            let row = near.last_row().unwrap();
            (row.arrived_ns, row.received_ns) = (arrival.arrived_ns, Some(now_ns()));
            near.read_departures();
        }
        let rows = near.end().unwrap();
        assert_eq!(rows.len(), 5);
        for row in rows {
            let all = [row.sending_ns, row.queued_ns, row.sent_ns, row.arrived_ns, row.received_ns];
            let all = all.map(|ns| ns.expect("a stamp"));
            assert!(all.is_sorted(), "{all:?}");
        }
        // Without stamping nothing is left in the error queue.
        super::super::calls::send(a.as_fd(), &[1; 8], Wait::Sleep).unwrap();
        let mut count = 0;
        ErrorQueue::new().drain(a.as_fd(), |_| count += 1);
        assert_eq!(count, 0);
    }

    #[test]
    fn interfaces_without_hardware_stamps_say_so() {
        assert!(config("lo").is_err() && config("no-such-interface-at-all").is_err());
        assert!(sentence(None).starts_with("Hardware time stamps: not available"));
    }

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
