//! The server's side of a run: answers batches of messages.

use super::{
    control::{Control, ControlError, unexpected},
    facts,
    link::{Ended, Link, Side},
    stream::{RoundPlan, receive_round},
};
use lowlat_host_run::{Root, control_group::Throttled};
use lowlat_jitter_run::clock::TickScale;
use lowlat_net::{
    pingpong::{
        CpuUse, Scenario, Waiting,
        parts::Stamps,
        protocol::{Message, STAMPED_BATCH_MAX, STAMPS_PER_FRAME},
    },
    stream::HEADER_BYTES,
};
use rustix::time::{ClockId, clock_gettime};
use std::{
    io,
    sync::atomic::{AtomicBool, AtomicU32, Ordering},
    time::{Duration, Instant},
};
use thiserror::Error;

/// Longest time between two batches.
const IDLE_MAX: Duration = Duration::from_secs(30);

/// Error that ended a run early.
#[derive(Debug, Error)]
pub enum ServeError {
    #[error(transparent)]
    Control(#[from] ControlError),
    #[error(transparent)]
    Data(#[from] Ended),
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("the client asked for {count} messages of {size_bytes} bytes, which its scenario excludes")]
    Batch { size_bytes: u32, count: u64 },
}

/// State of a thread for its watcher: whether it waits for messages, and of which size.
#[derive(Debug, Default)]
pub struct Batch {
    is_running: AtomicBool,
    size_bytes: AtomicU32,
}

impl Batch {
    /// Runs `part`, during which messages of this size are awaited.
    pub fn during<T>(&self, size_bytes: u32, part: impl FnOnce() -> T) -> T {
        // Relaxed, all three: pair with the loads below; a moment's delay does not matter.
        self.size_bytes.store(size_bytes, Ordering::Relaxed);
        self.is_running.store(true, Ordering::Relaxed);
        let result = part();
        self.is_running.store(false, Ordering::Relaxed);
        result
    }

    /// The size of the messages.
    pub fn bytes(&self) -> usize {
        // Relaxed: pairs with the store in `during`.
        usize::try_from(self.size_bytes.load(Ordering::Relaxed)).unwrap_or(usize::MAX)
    }

    /// True if messages are awaited.
    pub fn is_running(&self) -> bool {
        // Relaxed: pairs with the stores in `during`.
        self.is_running.load(Ordering::Relaxed)
    }
}

/// The start of a batch on the calling thread.
#[derive(Debug)]
pub struct CpuTimer {
    cpu: Duration,
    wall: Instant,
}

impl CpuTimer {
    pub fn start() -> Self {
        Self { cpu: cpu_time(), wall: Instant::now() }
    }

    /// Returns what the thread has used since the start. Call it on the same thread.
    pub fn used(&self) -> CpuUse {
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        CpuUse { cpu_ns: ns(cpu_time().saturating_sub(self.cpu)), elapsed_ns: ns(self.wall.elapsed()) }
    }
}

/// CPU time of the calling thread.
fn cpu_time() -> Duration {
    // The kernel's clock never returns a negative time.
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

/// Answers batches until the client ends the run.
pub fn serve(
    control: &Control,
    link: &mut Link,
    scenario: &Scenario,
    batch: &Batch,
) -> Result<(), ServeError> {
    let (mut is_behind, mut irq_suspend) = (false, None);
    loop {
        match control.receive(IDLE_MAX)? {
            Message::Batch { size_bytes, count, first, is_stamped } => {
                let is_allowed = scenario.sizes.contains(&size_bytes)
                    && count <= scenario.iterations_max.saturating_add(1)
                    && (!is_stamped || (scenario.has_parts && count <= STAMPED_BATCH_MAX));
                if !is_allowed {
                    return Err(ServeError::Batch { size_bytes, count });
                }
                let thread_id = Some(rustix::thread::gettid().as_raw_nonzero().get());
                let ready = Message::Ready { thread_id, incoming_cpu: link.incoming_cpu() };
                if is_behind {
                    // Discards messages that the client had given up. Later ones are recognized by their numbers.
                    link.drain();
                }
                link.begin(Side::Server, first);
                if is_stamped {
                    link.start_stamps(count, size_bytes)?;
                }
                control.send(&ready)?;
                let (clock, throttled) = (CpuTimer::start(), Throttled::read(&Root::live()));
                let echoed = batch.during(size_bytes, || echo(link, size_bytes, count, is_stamped));
                let used = clock.used();
                let rows = link.end_stamps()?;
                is_behind = matches!(echoed, Err(Ended::Lost));
                if is_behind {
                    link.give_up(usize::try_from(size_bytes).unwrap_or(usize::MAX));
                } else {
                    echoed?;
                    send_stamps(control, &rows)?;
                }
                let cpu = (!is_stamped && !is_behind).then_some(used);
                let napi_id = link.napi_id();
                if scenario.waiting == Waiting::SuspendedIrq && irq_suspend.is_none() {
                    irq_suspend = facts::irq_suspend(napi_id);
                }
                let strays = link.take_strays();
                let throttled_ns = throttled.elapsed_ns(&Root::live()).into_known().unwrap_or(0);
                let strays = [strays.late, strays.repeated];
                let irq_suspend = irq_suspend.clone();
                control.send(&Message::Done { napi_id, irq_suspend, cpu, strays, throttled_ns })?;
            }
            Message::Round { round, size_bytes, count, counter_hz } => {
                let limits = (scenario.sizes.contains(&size_bytes), scenario.iterations_max);
                // A message must hold a header, which marks the end of the round.
                let bytes = usize::try_from(size_bytes).unwrap_or(0);
                if bytes < HEADER_BYTES || !limits.0 || count > limits.1 {
                    return Err(ServeError::Batch { size_bytes, count });
                }
                control.send(&Message::Ready { thread_id: None, incoming_cpu: None })?;
                let scale = counter_hz.filter(|hz| *hz > 0).map(TickScale::new);
                let plan = RoundPlan { round, bytes, count, scale };
                let received = batch.during(size_bytes, || receive_round(link, &plan))?;
                let napi_id = link.napi_id();
                control.send(&Message::RoundDone { received: Box::new(received), napi_id })?;
            }
            Message::End => return Ok(()),
            other => return Err(unexpected(&other).into()),
        }
    }
}

fn echo(link: &mut Link, size_bytes: u32, count: u64, is_stamped: bool) -> Result<(), Ended> {
    let bytes = usize::try_from(size_bytes).unwrap_or(usize::MAX);
    if is_stamped {
        return (0..count).try_for_each(|_| link.stamped_answer(bytes));
    }
    for _ in 0..count {
        link.receive(bytes)?;
        link.send(bytes)?;
    }
    Ok(())
}

fn send_stamps(control: &Control, rows: &[Stamps]) -> Result<(), ControlError> {
    for rows in rows.chunks(STAMPS_PER_FRAME) {
        control.send(&Message::Stamps { rows: rows.to_vec() })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleep_is_not_use_and_work_is() {
        let clock = CpuTimer::start();
        std::thread::sleep(Duration::from_millis(20));
        let slept = clock.used();
        assert!(slept.elapsed_ns >= 20_000_000 && slept.cpu_ns < slept.elapsed_ns / 2, "{slept:?}");
        let clock = CpuTimer::start();
        while clock.used().cpu_ns < 2_000_000 {
            std::hint::spin_loop();
        }
        assert!(clock.used().elapsed_ns >= 2_000_000);
    }
}
