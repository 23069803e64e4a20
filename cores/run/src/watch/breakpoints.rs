//! Reads and writes of words: the processor's breakpoints, through perf_event_open(2).

use std::{
    io,
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
    ptr,
    sync::atomic::{AtomicU64, Ordering},
};

/// Breakpoints of a thread at the same time (x86: DR0 to DR3).
pub const BREAKPOINTS_MAX: usize = 4;

const TYPE_BREAKPOINT: u32 = 5;
const SAMPLE_IP: u64 = 1;
const SAMPLE_CPU: u64 = 1 << 7;
const BREAKPOINT_WRITE: u32 = 2;
const BREAKPOINT_ANY: u32 = 3;
/// Bits of the attributes: disabled, exclude_kernel, exclude_hv.
const DISABLED: u64 = 1;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HV: u64 = 1 << 6;
const FLAG_FD_CLOEXEC: libc::c_ulong = 8;
const IOC_DISABLE: libc::c_ulong = 0x2401;
const IOC_REFRESH: libc::c_ulong = 0x2402;
const RECORD_SAMPLE: u32 = 9;
/// Bytes of the ring: a page of control, a page of records.
const RING_BYTES: usize = 8_192;
/// Offset in the control page of the next record's position (struct perf_event_mmap_page).
const HEAD: usize = 1_024;
const RECORDS: usize = 4_096;
/// Bytes of a record: its header, the address of the code, the CPU.
const RECORD_BYTES: usize = 24;

/// struct perf_event_attr up to its version 1, the first with the length of a breakpoint.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    bytes: u32,
    config: u64,
    period: u64,
    sample: u64,
    read: u64,
    flags: u64,
    wakeup: u32,
    breakpoint: u32,
    address: u64,
    length: u64,
}

/// Range of bytes to watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Spot {
    /// First address, a multiple of the length.
    pub address: u64,
    /// 1, 2, 4 or 8 bytes.
    pub bytes: u8,
}

/// Accesses that a breakpoint counts. x86 processors have no breakpoints for reads alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchedAccess {
    Write,
    /// Reads and writes.
    Any,
}

/// Breakpoint to set in one thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probe {
    pub tid: u32,
    pub spot: Spot,
    pub access: WatchedAccess,
}

/// Accesses that a breakpoint counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counted {
    /// The number of its probe.
    pub probe: usize,
    pub count: u64,
    /// Address after the instruction, and the CPU, of each access.
    pub hits: Vec<(u64, u32)>,
}

/// Breakpoints of some threads, until dropped.
#[derive(Debug)]
pub struct Breakpoints(Vec<Event>);

#[derive(Debug)]
struct Event {
    probe: usize,
    fd: OwnedFd,
    ring: Ring,
}

impl Breakpoints {
    /// Counts accesses, and stops after so many of each probe: every one costs the thread microseconds. Threads that
    /// have ended are left out.
    ///
    /// # Errors
    /// The kernel's, if counting is not permitted (`ACCES`, `PERM`) or another program uses the breakpoints (`NOSPC`).
    pub fn start(probes: &[Probe], count_max: i32) -> io::Result<Self> {
        let mut events = Vec::new();
        for (number, probe) in probes.iter().enumerate() {
            match Event::open(number, *probe) {
                Ok(event) => events.push(event),
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                Err(error) => return Err(error),
            }
        }
        for event in &events {
            event.control(IOC_REFRESH, count_max)?;
        }
        Ok(Self(events))
    }

    /// Stops counting, and returns what was counted.
    pub fn finish(self) -> Vec<Counted> {
        self.0.into_iter().map(Event::finish).collect()
    }
}

impl Event {
    fn open(number: usize, Probe { tid, spot, access }: Probe) -> io::Result<Self> {
        let attributes = Attributes {
            kind: TYPE_BREAKPOINT,
            bytes: u32::try_from(size_of::<Attributes>()).unwrap_or(0),
            period: 1,
            sample: SAMPLE_IP | SAMPLE_CPU,
            flags: DISABLED | EXCLUDE_KERNEL | EXCLUDE_HV,
            breakpoint: if access == WatchedAccess::Write { BREAKPOINT_WRITE } else { BREAKPOINT_ANY },
            address: spot.address,
            length: spot.bytes.into(),
            ..Attributes::default()
        };
        let task = libc::c_long::from(tid.cast_signed());
        // SAFETY: the attributes are a struct perf_event_attr of the size in them, which the kernel only reads.
        let fd = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                &raw const attributes,
                task,
                -1_i64,
                -1_i64,
                FLAG_FD_CLOEXEC,
            )
        };
        let fd = i32::try_from(fd).map_err(io::Error::other)?;
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just made this descriptor; nothing else owns it.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        let ring = Ring::new(&fd)?;
        Ok(Self { probe: number, fd, ring })
    }

    fn control(&self, request: libc::c_ulong, value: i32) -> io::Result<()> {
        // SAFETY: both requests take a number and touch no memory of this process.
        let done = unsafe { libc::ioctl(self.fd.as_raw_fd(), request as _, value) };
        if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Accesses; 0 if the thread has ended.
    fn read(&self) -> u64 {
        let mut bytes = [0_u8; 8];
        rustix::io::read(&self.fd, &mut bytes).map_or(0, |_| u64::from_ne_bytes(bytes))
    }

    fn finish(self) -> Counted {
        // It fails if the thread has ended, which stopped the counting.
        let _ = self.control(IOC_DISABLE, 0);
        Counted { probe: self.probe, count: self.read(), hits: self.ring.hits() }
    }
}

/// The memory in which the kernel writes a record for each access.
#[derive(Debug)]
struct Ring(*mut libc::c_void);

impl Ring {
    fn new(fd: &OwnedFd) -> io::Result<Self> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address that the kernel chooses; it replaces none.
        let memory =
            unsafe { libc::mmap(ptr::null_mut(), RING_BYTES, access, libc::MAP_SHARED, fd.as_raw_fd(), 0) };
        if memory == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(Self(memory)) }
    }

    /// The code and the CPU of each record, oldest first. The caller has stopped the event.
    fn hits(&self) -> Vec<(u64, u32)> {
        // SAFETY: the control page is mapped, and its word at HEAD is aligned; the kernel writes it as a whole.
        let head = unsafe { AtomicU64::from_ptr(self.0.byte_add(HEAD).cast()) };
        // Acquire: pairs with the kernel's barrier between the records and the head (perf_output_put_handle).
        let written = usize::try_from(head.load(Ordering::Acquire)).unwrap_or(0);
        let count = written.min(RING_BYTES - RECORDS) / RECORD_BYTES;
        let record = |place: usize| {
            // SAFETY: the place is inside the page of records, which is mapped, and the kernel has written there and
            // writes no more. Records are 8-byte aligned.
            let (header, code, cpu) = unsafe {
                let at = self.0.byte_add(RECORDS + place * RECORD_BYTES);
                let (code, cpu) = (at.byte_add(8).cast::<u64>(), at.byte_add(16).cast::<u32>());
                (at.cast::<u32>().read(), code.read(), cpu.read())
            };
            (header == RECORD_SAMPLE).then_some((code, cpu))
        };
        // Records of another kind (lost, throttled) are longer, and what follows them is not read.
        (0..count).map_while(record).collect()
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `new` with this size, and nothing refers to it after this.
        unsafe { libc::munmap(self.0, RING_BYTES) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hint::black_box;

    #[test]
    fn accesses_are_counted_up_to_the_limit_with_their_code_and_kind() {
        let word = AtomicU64::new(0);
        let other = AtomicU64::new(0);
        let tid = rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned();
        let probe = |word: &AtomicU64, access| {
            let spot = Spot { address: ptr::from_ref(word).addr() as u64, bytes: 8 };
            Probe { tid, spot, access }
        };
        let probes = [
            probe(&word, WatchedAccess::Write),
            probe(&other, WatchedAccess::Write),
            probe(&other, WatchedAccess::Any),
        ];
        let count = |times: u64| {
            let started = Breakpoints::start(&probes, 8);
            let Ok(started) = started else {
                eprintln!("skipped: accesses_are_counted: {}", started.unwrap_err());
                return None;
            };
            for _ in 0..times {
                // Relaxed: of one thread.
                let value = black_box(&other).load(Ordering::Relaxed);
                black_box(&word).fetch_add(value + 1, Ordering::Relaxed);
            }
            Some(started.finish())
        };
        let Some(few) = count(3) else { return };
        assert_eq!(few.iter().map(|count| count.count).collect::<Vec<_>>(), [3, 0, 3]);
        assert_eq!(few[0].hits.len(), 3);
        assert!(few[0].hits.iter().all(|hit| hit.0 == few[0].hits[0].0), "one instruction");
        let many = count(1_000).unwrap();
        assert!((8..1_000).contains(&many[0].count), "stopped soon after 8: {}", many[0].count);
        let ended = Probe { tid: 0x7fff_fff0, ..probes[0] };
        assert!(Breakpoints::start(&[ended], 8).unwrap().finish().is_empty(), "ended");
    }
}
