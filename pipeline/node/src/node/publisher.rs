//! A node's outgoing stream.

use super::{Counters, Memory};
use lowlat_ipc::{
    doorbell::Futex,
    fork::ForkMark,
    inbox::Inbox,
    router::{self, DeliveryCounts, HelperMode, Router, WakeHelper},
    stream::{self, Stamp, Writer},
};
use rustix::thread::{CpuSet, sched_setaffinity};
use std::{
    io,
    sync::{Arc, OnceLock},
};
use thiserror::Error;

/// Reason why a record was not published.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum NodePublishError {
    /// The node joined without a stream.
    #[error("cannot publish: this node joined without a stream\nhint: name one in Join::writes")]
    NoStream,
    /// The calling process was forked from the one that joined.
    #[error("cannot publish: {}", forked(*.pid))]
    Forked {
        /// The process that joined.
        pid: u32,
    },
    /// The stream has fewer instruments.
    #[error(
        "cannot publish a record of instrument {instrument}: the stream has the keys 0 to {}\nhint: join with more keys",
        .keys.saturating_sub(1)
    )]
    Instrument {
        instrument: u32,
        /// Number of keys.
        keys: u32,
    },
    /// The stream refused it. If the writer was fenced only now, the record may or may not have reached
    /// readers.
    #[error(transparent)]
    Refused(#[from] stream::PublishError),
}

/// Returns the reason why a forked process cannot use a node, with a hint.
pub(super) fn forked(pid: u32) -> String {
    format!(
        "this node belongs to process {pid}, and this process was forked from it\nhint: join in this process"
    )
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Published {
    /// Its position in the segment.
    pub position: u64,
    /// Its sequence in the stream.
    pub sequence: u64,
    pub delivered: DeliveryCounts,
}

#[derive(Debug)]
pub(super) struct Own {
    pub(super) writer: Writer<Memory>,
    pub(super) router: Router<Memory>,
    /// Abandoned markers of the stream, including this process's.
    pub(super) markers: u64,
}

/// The outgoing stream of a node with its subscribers.
#[derive(Debug)]
pub struct Publisher {
    own: Option<Box<Own>>,
    counters: Counters,
    mark: Arc<ForkMark>,
    timer_ns: u64,
}

impl Publisher {
    pub(super) fn new(own: Option<Box<Own>>, counters: Counters, mark: Arc<ForkMark>) -> Self {
        Self { own, counters, mark, timer_ns: u64::MAX }
    }

    /// Within a poll: the node's first poll from this time of the pipeline's clock on, ns, returns [`super::Event::Timer`],
    /// and no wait lasts longer. Replaces the time set before; `u64::MAX` sets none.
    pub fn set_timer(&mut self, at_ns: u64) {
        self.timer_ns = at_ns;
    }

    /// The time set for the node's timer, ns; `u64::MAX` without one.
    #[inline]
    pub fn timer_ns(&self) -> u64 {
        self.timer_ns
    }

    /// The mark of the process that joined. Only that process may publish.
    pub fn mark(&self) -> &Arc<ForkMark> {
        &self.mark
    }

    /// Sequence of the next record; `None` if the node writes none. Continues after restarts of the writer.
    pub fn next_sequence(&self) -> Option<u64> {
        self.own.as_ref().map(|own| own.writer.next_sequence())
    }

    /// Number of records published in the stream by this process and its predecessors; 0 if the node writes none.
    /// Markers at the start of processes are not counted, although each takes a sequence.
    pub fn published(&self) -> u64 {
        self.own.as_ref().map_or(0, |own| own.writer.next_sequence().saturating_sub(1 + own.markers))
    }

    /// Appends a record and delivers it to every subscriber that wants `stamp.instrument`. Wakes sleeping ones,
    /// each with one system call. If a subscriber that must not lose records has no room, nothing is appended,
    /// and [`stream::PublishError::NoCredit`] names it: it is too slow, or dead. Never waits.
    ///
    /// An instrument that the stream does not have is refused: readers could not ask for it.
    #[inline]
    pub fn publish(&mut self, stamp: &Stamp, payload: &[u8]) -> Result<Published, NodePublishError> {
        let keys = self.own.as_ref().map_or(u32::MAX, |own| own.router.instruments());
        if stamp.instrument >= keys {
            return Err(NodePublishError::Instrument { instrument: stamp.instrument, keys });
        }
        self.publish_waking(stamp, payload, true)
    }

    /// The same with any instrument: one beyond the stream's keys reaches readers of all. Unless `wakes`, it leaves the
    /// wakes to the next record, which should follow at once.
    ///
    /// A single function for real and rehearsed records, so that a rehearsal warms the real path.
    #[inline(never)]
    // SAFETY: an executable section, as that of any other code.
    #[unsafe(link_section = ".text.hot.wake")]
    pub fn publish_waking(
        &mut self,
        stamp: &Stamp,
        payload: &[u8],
        wakes: bool,
    ) -> Result<Published, NodePublishError> {
        if !self.mark.is_this_process() {
            return Err(NodePublishError::Forked { pid: self.mark.pid() });
        }
        let own = self.own.as_mut().ok_or(NodePublishError::NoStream)?;
        let result = own.router.publish_waking(&mut own.writer, stamp, payload, wakes.then_some(&Futex));
        if let Err(stream::PublishError::NoCredit { .. }) = result {
            self.counters.add_uncredited();
        }
        let (stream::Published { position, sequence, .. }, delivered) = result?;
        #[cfg(feature = "testing")]
        crate::testing::step();
        self.counters.add_published(&delivered);
        // A process that was stopped between the check before the record and here may have been dropped
        // meanwhile.
        if let Some(successor) = own.writer.segment().successor() {
            return Err(stream::PublishError::Fenced { successor }.into());
        }
        Ok(Published { position, sequence, delivered })
    }

    /// Prefetches what the next record needs.
    #[inline]
    pub(super) fn warm(&mut self) {
        if let Some(own) = &mut self.own {
            own.router.warm();
            own.writer.warm();
        }
    }

    /// Connects a subscriber, and returns the position and sequence of its first record.
    pub(super) fn connect(
        &mut self,
        subscriber: u32,
        overrun: router::Delivery<Memory>,
        inbox: Inbox<Memory>,
        place: u32,
    ) -> Option<(u64, u64)> {
        let own = self.own.as_mut()?;
        let next = (own.writer.segment().tail(), own.writer.next_sequence());
        own.router.connect(subscriber, overrun, inbox, place).then_some(next)
    }

    /// Hands wakes to a thread that spins on a dedicated CPU, if one record wakes several subscribers. It pays
    /// if a wake takes this process longer than handing it over, and it occupies that CPU.
    pub fn wake_from(&mut self, cpu: u32) -> io::Result<()> {
        let Some(own) = &mut self.own else { return Ok(()) };
        let cpus = cpu_set(&[cpu])?.ok_or(io::ErrorKind::InvalidInput)?;
        // A helper that is not pinned would take CPU time from other threads, so the thread reports first.
        let told = Arc::new(OnceLock::new());
        let tell = Arc::clone(&told);
        let helper = WakeHelper::start(0, HelperMode::Spin, move || {
            drop_descriptors();
            tell.set(sched_setaffinity(None, &cpus)).ok();
        })?;
        // Neither call in the thread panics, so it always tells.
        (*told.wait())?;
        own.router.set_wake_helper(Some(helper));
        Ok(())
    }

    /// Drops the wake helper without stopping its thread, which a forked process does not have.
    pub(super) fn forget_wake_helper(&mut self) {
        if let Some(own) = &mut self.own {
            own.router.forget_wake_helper();
        }
    }

    pub(super) fn disconnect(&mut self, subscriber: u32) {
        if let Some(own) = &mut self.own {
            own.router.disconnect(subscriber);
        }
    }
}

/// Gives the calling thread an empty table of descriptors, because it needs none: while a table has one user, no system
/// call of that user takes a reference to a file. On kernels before 5.11 the table stays shared.
fn drop_descriptors() {
    const FIRST: libc::c_uint = 3;
    // SAFETY: close_range(2) with CLOSE_RANGE_UNSHARE closes descriptors in a new table of the calling thread only. The
    // thread uses none, so no owner of a descriptor loses it.
    let _ =
        unsafe { libc::syscall(libc::SYS_close_range, FIRST, libc::c_uint::MAX, libc::CLOSE_RANGE_UNSHARE) };
}

/// The mask of these CPUs; `None` for no CPUs.
pub fn cpu_set(cpus: &[u32]) -> io::Result<Option<CpuSet>> {
    let mut set = CpuSet::new();
    for cpu in cpus {
        let number = usize::try_from(*cpu).ok().filter(|number| *number < CpuSet::MAX_CPU);
        set.set(number.ok_or_else(|| {
            io::Error::other(format!("CPU {cpu}: expected a number below {}", CpuSet::MAX_CPU))
        })?);
    }
    Ok((!cpus.is_empty()).then_some(set))
}
