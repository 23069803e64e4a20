//! Culprits: what a thread can do to interrupt another CPU.

use lowlat_host::{CpuId, CpuSet};
use lowlat_host_run::affinity::pin_to;
use lowlat_jitter::Sender;
use lowlat_jitter_run::tracefs::{TraceOptions, Tracefs, Tracing};
use lowlat_trace::TraceClock;
use std::{
    fs::{self, File},
    io,
    net::UdpSocket,
    os::{fd::AsRawFd as _, unix::fs::FileExt as _},
    ptr,
    sync::{Arc, Barrier, mpsc},
    thread,
};

pub struct Culprit {
    /// The reason that is expected.
    pub what: &'static str,
    /// Senders' names; empty: the injecting thread.
    by: &'static [&'static str],
    /// Time after its return for which it still interrupts: some leave it to a kernel thread.
    pub late_ns: u64,
    /// Maximum number of its injections.
    pub count_max: usize,
    pub act: fn(&mut Tools) -> io::Result<()>,
}

const fn own(what: &'static str, act: fn(&mut Tools) -> io::Result<()>) -> Culprit {
    Culprit { what, by: &[], late_ns: 0, count_max: 200, act }
}

/// A culprit that leaves the interrupts to kernel threads.
const fn left_to(
    what: &'static str,
    by: &'static [&'static str],
    act: fn(&mut Tools) -> io::Result<()>,
) -> Culprit {
    Culprit { what, by, late_ns: 20_000_000, count_max: 200, act }
}

pub const CULPRITS: &[Culprit] = &[
    own("TLB shootdown: munmap", unmap),
    own("TLB shootdown: mprotect", protect),
    own("membarrier", membarrier),
    left_to("static key: deferred work", &["kworker"], timestamp),
    own("static key: tracepoint", trace),
    own("static call: tracepoint", trace),
    own("wake-up: futex", wake),
    left_to("RCU", &["kworker", "rcu_", "culprit"], unmount),
    own("perf event", perf),
    left_to("thread moved", &["migration/", "culprit"], move_there),
    own("register access", registers),
    Culprit { count_max: 5, ..own("drop_caches", drop_caches) },
];

impl Culprit {
    /// Returns whether a sender is this culprit.
    pub fn is_by(&self, sender: &Sender) -> bool {
        let is_thread = |name: &&str| sender.name.starts_with(name);
        let by = if self.by.is_empty() { &["culprit"] } else { self.by };
        sender.reason().what.starts_with(self.what) && by.iter().any(is_thread)
    }
}

/// Resources that culprits use repeatedly.
pub struct Tools {
    cpu: CpuId,
    page: *mut libc::c_void,
    sleeper: Option<mpsc::SyncSender<()>>,
    tracing: Option<Tracing>,
    has_own_mounts: bool,
    is_registered: bool,
}

const PAGE: usize = 4_096;

impl Tools {
    pub fn new(cpu: CpuId) -> Self {
        Self {
            cpu,
            page: ptr::null_mut(),
            sleeper: None,
            tracing: None,
            has_own_mounts: false,
            is_registered: false,
        }
    }
}

impl Tools {
    /// Leaves the sleeper asleep: the end of its channel would wake it.
    pub fn end(&mut self) {
        std::mem::forget(self.sleeper.take());
    }
}

fn checked(result: impl Into<i64>) -> io::Result<i64> {
    let result = result.into();
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// A page that was written.
fn map() -> *mut libc::c_void {
    let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping at an address of the kernel's choice touches no memory of ours.
    let page = unsafe { libc::mmap(ptr::null_mut(), PAGE, access, flags, -1, 0) };
    assert_ne!(page, libc::MAP_FAILED);
    // SAFETY: the page was mapped for writing just now, and is at least a byte long.
    unsafe { page.cast::<u8>().write_volatile(1) };
    page
}

fn unmap(_: &mut Tools) -> io::Result<()> {
    let page = map();
    // SAFETY: the page was mapped above, and nothing refers to it.
    checked(unsafe { libc::munmap(page, PAGE) })?;
    Ok(())
}

fn protect(tools: &mut Tools) -> io::Result<()> {
    if tools.page.is_null() {
        tools.page = map();
    }
    for access in [libc::PROT_READ, libc::PROT_READ | libc::PROT_WRITE] {
        // SAFETY: the page is this struct's own and stays mapped; it is written only after the second call.
        checked(unsafe { libc::mprotect(tools.page, PAGE, access) })?;
    }
    // SAFETY: the page is mapped for writing again.
    unsafe { tools.page.cast::<u8>().write_volatile(2) };
    Ok(())
}

fn membarrier(tools: &mut Tools) -> io::Result<()> {
    let call = |command: libc::c_int| {
        // SAFETY: membarrier takes numbers and touches no memory of ours.
        checked(unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) })
    };
    if !std::mem::replace(&mut tools.is_registered, true) {
        call(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED)?;
    }
    call(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED).map(drop)
}

/// The first socket with time stamps switches the kernel's key on, and the last one off.
fn timestamp(_: &mut Tools) -> io::Result<()> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    let flags: libc::c_int =
        (libc::SOF_TIMESTAMPING_RX_SOFTWARE | libc::SOF_TIMESTAMPING_SOFTWARE).cast_signed();
    let length = libc::socklen_t::try_from(size_of_val(&flags)).unwrap();
    // SAFETY: the option is one int, which is alive through the call, and its length is given.
    checked(unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_TIMESTAMPING,
            (&raw const flags).cast(),
            length,
        )
    })?;
    thread::sleep(std::time::Duration::from_millis(3));
    Ok(())
}

fn tracing(tools: &mut Tools) -> io::Result<&Tracing> {
    if tools.tracing.is_none() {
        let tracefs = Arc::new(Tracefs::find().map_err(io::Error::other)?);
        let cpus = CpuSet::of(0);
        let options =
            TraceOptions { cpus, buffer_kb_per_cpu: 64, memory_kb_max: 1 << 20, clock: TraceClock::MonoRaw };
        tools.tracing = Some(Tracing::start(&tracefs, &options).map_err(io::Error::other)?);
    }
    tools.tracing.as_ref().ok_or_else(|| io::Error::other("no trace"))
}

/// A tracepoint that nothing else uses.
fn trace(tools: &mut Tools) -> io::Result<()> {
    let tracing = tracing(tools)?;
    for is_on in [true, false] {
        tracing.set_event("oom/oom_score_adj_update", is_on).map_err(io::Error::other)?;
    }
    Ok(())
}

/// A thread that sleeps on the measured CPU.
fn wake(tools: &mut Tools) -> io::Result<()> {
    let cpu = tools.cpu;
    let sleeper = tools.sleeper.get_or_insert_with(|| {
        let (sender, woken) = mpsc::sync_channel::<()>(1);
        let ready = Arc::new(Barrier::new(2));
        let there = Arc::clone(&ready);
        let sleep = move || {
            pin_to(&CpuSet::of(cpu)).unwrap();
            there.wait();
            while woken.recv().is_ok() {}
        };
        thread::Builder::new().name("sleeper".into()).spawn(sleep).unwrap();
        ready.wait();
        sender
    });
    sleeper.send(()).map_err(io::Error::other)
}

/// An unmount waits for an expedited grace period of RCU.
fn unmount(tools: &mut Tools) -> io::Result<()> {
    if !std::mem::replace(&mut tools.has_own_mounts, true) {
        // SAFETY: unshare takes a number; it affects this thread's mounts only.
        checked(unsafe { libc::unshare(libc::CLONE_NEWNS) })?;
        let flags = libc::MS_REC | libc::MS_PRIVATE;
        // SAFETY: the strings are constants with their zero bytes, and null pointers stand for absent ones.
        checked(unsafe { libc::mount(ptr::null(), c"/".as_ptr(), ptr::null(), flags, ptr::null()) })?;
    }
    let (kind, place) = (c"tmpfs", c"/mnt");
    // SAFETY: as above.
    checked(unsafe { libc::mount(kind.as_ptr(), place.as_ptr(), kind.as_ptr(), 0, ptr::null()) })?;
    // SAFETY: as above.
    checked(unsafe { libc::umount2(place.as_ptr(), libc::MNT_DETACH) }).map(drop)
}

/// A software event on the measured CPU: type 1 (software), config 0 (CPU clock), disabled.
fn perf(tools: &mut Tools) -> io::Result<()> {
    #[repr(C)]
    #[derive(Default)]
    struct Attributes {
        kind: u32,
        size: u32,
        config: u64,
        period: u64,
        sample: u64,
        read: u64,
        flags: u64,
        rest: [u64; 4],
    }
    let size = u32::try_from(size_of::<Attributes>()).unwrap();
    let attributes = Attributes { kind: 1, size, ..Attributes::default() };
    let (process, group, flags) = (-1, -1, 0_u64);
    let cpu = i32::try_from(tools.cpu).map_err(io::Error::other)?;
    // SAFETY: the attributes are alive through the call and say their size; the kernel only reads them.
    let event = checked(unsafe {
        libc::syscall(libc::SYS_perf_event_open, &raw const attributes, process, cpu, group, flags)
    })?;
    let event = i32::try_from(event).map_err(io::Error::other)?;
    // SAFETY: the descriptor was opened above and is closed once.
    checked(unsafe { libc::close(event) }).map(drop)
}

/// To the measured CPU and back.
fn move_there(tools: &mut Tools) -> io::Result<()> {
    let elsewhere = lowlat_host_run::affinity::current().map_err(io::Error::other)?;
    pin_to(&CpuSet::of(tools.cpu)).and_then(|()| pin_to(&elsewhere)).map_err(io::Error::other)
}

fn registers(tools: &mut Tools) -> io::Result<()> {
    let mut registers = [0; 16];
    File::open(format!("/dev/cpu/{}/cpuid", tools.cpu))?.read_exact_at(&mut registers, 0)
}

fn drop_caches(_: &mut Tools) -> io::Result<()> {
    fs::write("/proc/sys/vm/drop_caches", "1")
}
