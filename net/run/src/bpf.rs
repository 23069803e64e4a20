//! XDP programs: a map from queues to sockets, a program, and its link to an interface, by bpf(2).
//!
//! A link detaches the program when its last descriptor is closed, so also when the process is killed.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::{
    io,
    os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd},
};

/// Commands of bpf(2) (linux/bpf.h).
const BPF_MAP_CREATE: libc::c_long = 0;
const BPF_MAP_UPDATE_ELEM: libc::c_long = 2;
const BPF_PROG_LOAD: libc::c_long = 5;
const BPF_LINK_CREATE: libc::c_long = 28;
const BPF_MAP_TYPE_XSKMAP: u32 = 17;
const BPF_PROG_TYPE_XDP: u32 = 6;
const BPF_XDP: u32 = 37;
/// Longest log of the verifier, in bytes.
const LOG_BYTES: usize = 4_096;
/// The program calls no function that the kernel keeps for GPL programs.
const LICENCE: &[u8] = b"Dual MIT/Apache-2.0\0";

/// Place where a program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum XdpPlace {
    /// In the kernel's generic path (XDP_FLAGS_SKB_MODE).
    Generic,
    /// In the driver (XDP_FLAGS_DRV_MODE).
    Driver,
}

/// A map from queues of an interface to AF_XDP sockets.
#[derive(Debug)]
pub struct SocketMap(OwnedFd);

/// Descriptor of a loaded XDP program.
#[derive(Debug)]
pub struct Program(OwnedFd);

/// A program on an interface, as long as this exists.
#[derive(Debug)]
pub struct Link(#[expect(dead_code, reason = "closing it detaches the program")] OwnedFd);

#[repr(C)]
struct MapCreate {
    map_type: u32,
    key_bytes: u32,
    value_bytes: u32,
    entries_max: u32,
    flags: u32,
}

#[repr(C)]
struct MapUpdate {
    map: u32,
    pad: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
struct ProgramLoad {
    program_type: u32,
    instruction_count: u32,
    instructions: u64,
    licence: u64,
    log_level: u32,
    log_bytes: u32,
    log: u64,
}

#[repr(C)]
struct LinkCreate {
    program: u32,
    interface: u32,
    attach_type: u32,
    flags: u32,
}

impl SocketMap {
    /// Creates a map for so many queues.
    ///
    /// # Errors
    /// The system's error: EPERM without CAP_BPF or CAP_SYS_ADMIN.
    pub fn create(queues: u32) -> io::Result<Self> {
        let attributes = MapCreate {
            map_type: BPF_MAP_TYPE_XSKMAP,
            key_bytes: 4,
            value_bytes: 4,
            entries_max: queues,
            flags: 0,
        };
        let create = || bpf(BPF_MAP_CREATE, &attributes);
        // Kernels before 5.11 count maps and programs against RLIMIT_MEMLOCK.
        let created = create().or_else(|error| match error.raw_os_error() {
            Some(libc::EPERM) if raise_memlock() => create(),
            _ => Err(error),
        });
        created.map(|fd| Self(owned(fd)))
    }

    /// The descriptor, for the instructions of a program.
    pub fn descriptor(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    /// Sets the socket of a queue.
    ///
    /// # Errors
    /// The system's error.
    pub fn set(&self, queue: u32, socket: BorrowedFd<'_>) -> io::Result<()> {
        let value = number(socket.as_raw_fd());
        let attributes = MapUpdate {
            map: number(self.descriptor()),
            pad: 0,
            key: address(&queue),
            value: address(&value),
            flags: 0,
        };
        bpf(BPF_MAP_UPDATE_ELEM, &attributes).map(drop)
    }
}

impl Program {
    /// Loads a program.
    ///
    /// # Errors
    /// The system's error, with the end of the verifier's log if it rejects the program.
    pub fn load(instructions: &[u64]) -> io::Result<Self> {
        let attributes = |log: &mut [u8]| ProgramLoad {
            program_type: BPF_PROG_TYPE_XDP,
            instruction_count: u32::try_from(instructions.len()).unwrap_or(u32::MAX),
            instructions: instructions.as_ptr() as u64,
            licence: LICENCE.as_ptr() as u64,
            log_level: u32::from(!log.is_empty()),
            log_bytes: u32::try_from(log.len()).unwrap_or(0),
            log: if log.is_empty() { 0 } else { log.as_mut_ptr() as u64 },
        };
        // A log that is too short for the verifier's text makes loading fail, so the first try has none.
        bpf(BPF_PROG_LOAD, &attributes(&mut [])).map(|fd| Self(owned(fd))).map_err(|error| {
            let mut log = vec![0_u8; LOG_BYTES];
            let _ = bpf(BPF_PROG_LOAD, &attributes(&mut log)).map(owned);
            let text = lowlat_host_run::netlink::message::text(&log);
            match text.lines().rev().find(|line| !line.starts_with("processed")) {
                Some(line) if !line.is_empty() => io::Error::new(error.kind(), format!("{error}: {line}")),
                _ => error,
            }
        })
    }

    /// Attaches the program to an interface (Linux 5.9).
    ///
    /// # Errors
    /// The system's error: EBUSY if the interface has an XDP program, EOPNOTSUPP if its driver runs none.
    pub fn attach(&self, interface: u32, place: XdpPlace) -> io::Result<Link> {
        let flags = match place {
            XdpPlace::Generic => 1 << 1,
            XdpPlace::Driver => 1 << 2,
        };
        let attributes =
            LinkCreate { program: number(self.0.as_raw_fd()), interface, attach_type: BPF_XDP, flags };
        bpf(BPF_LINK_CREATE, &attributes).map(|fd| Link(owned(fd)))
    }
}

fn bpf<T>(command: libc::c_long, attributes: &T) -> io::Result<RawFd> {
    // SAFETY: the attributes are one of the structures above, alive during the call and laid out as the kernel's
    // `union bpf_attr` for the command, and the size is theirs. The addresses in them are those of values of the callers,
    // which live through the call; the kernel reads them, and writes the log only, within its stated length.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, attributes, size_of::<T>()) };
    RawFd::try_from(result).ok().filter(|fd| *fd >= 0).ok_or_else(io::Error::last_os_error)
}

fn owned(fd: RawFd) -> OwnedFd {
    // SAFETY: the kernel just returned this descriptor (the commands that call this create one), and nothing else owns
    // it.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

fn number(fd: RawFd) -> u32 {
    // Descriptors are not negative.
    fd.cast_unsigned()
}

fn address(value: &u32) -> u64 {
    std::ptr::from_ref(value) as u64
}

/// Raises the limit on locked memory as far as it goes; returns whether that changed anything.
fn raise_memlock() -> bool {
    let limit = getrlimit(Resource::Memlock);
    let all = Rlimit { current: None, maximum: None };
    let most = Rlimit { current: limit.maximum, maximum: limit.maximum };
    limit.current.is_some()
        && (setrlimit(Resource::Memlock, all).is_ok() || setrlimit(Resource::Memlock, most).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `r0 = XDP_PASS; exit`
    const PASS: [u64; 2] = [0x0000_0002_0000_00b7, 0x95];

    #[test]
    fn a_program_is_checked_by_the_kernel_and_leaves_with_its_link() {
        let map = match SocketMap::create(4) {
            Ok(map) => map,
            Err(error) => {
                eprintln!("skipped: a_program_is_checked_by_the_kernel: bpf: {error}");
                return;
            }
        };
        let file = std::fs::File::open("/dev/null").unwrap();
        let refused = map.set(0, std::os::fd::AsFd::as_fd(&file)).unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(libc::ENOTSOCK), "{refused}");
        if cfg!(target_endian = "little") {
            let program = Program::load(&PASS).unwrap();
            let error = program.attach(i32::MAX.cast_unsigned(), XdpPlace::Generic).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::EINVAL), "{error}");
        }
        let error = Program::load(&[0x95]).unwrap_err().to_string();
        assert!(error.contains("R0 !read_ok"), "{error}");
    }
}
