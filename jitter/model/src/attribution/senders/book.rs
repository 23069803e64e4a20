//! Turns the events of senders into notes for the measured CPUs.

use super::{
    SenderId, SenderNames,
    table::{Origin, STACK_INTERRUPT_MAX, STACK_MAX, Table},
};
use crate::Sender;
use lowlat_host::{CpuId, CpuSet};
use lowlat_trace::{Channel, Level, Send, SendStep, Targets};
use std::collections::{BTreeSet, VecDeque};

/// Maximum number of ended threads whose names are kept: those of a few milliseconds.
const ENDED_MAX: usize = 1_024;
/// A thread's name with its zero byte (kernel: `TASK_COMM_LEN`).
const NAME_BYTES: usize = 16;

/// Something on its way to a measured CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Note {
    /// When it was sent, in ticks of the samplers' counter.
    pub ticks: u64,
    pub(super) what: What,
    pub(super) sender: SenderId,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// A function to run was queued.
    Request { request: u64, function: u64 },
    /// An interrupt was sent to it.
    Interrupt(Channel),
    /// Events of a sender are missing since this moment.
    Lost { since: u64 },
}

/// Sending by one CPU at one level: it queues functions, sends an interrupt, and its stack is traced.
#[derive(Debug, Default)]
struct Sending {
    is_open: bool,
    is_sent: bool,
    thread: i32,
    function: u64,
    callsite: u64,
    last_cpu: u32,
    notes: Vec<(CpuId, Note)>,
}

impl Sending {
    /// True if a function queued for this CPU belongs to it: a broadcast queues in order of the CPUs.
    fn takes(&self, thread: i32, function: u64, callsite: u64, cpu: u32) -> bool {
        self.is_open
            && !self.is_sent
            && (self.thread, self.function, self.callsite) == (thread, function, callsite)
            && cpu > self.last_cpu
    }

    /// True if this interrupt is sent for it.
    fn is_sent_by(&self, thread: i32, callsite: u64) -> bool {
        self.is_open && !self.is_sent && self.thread == thread && self.callsite == callsite
    }
}

/// Reads the senders' events. Memory does not grow with their number.
#[derive(Debug)]
pub struct SenderBook {
    measured: Vec<CpuId>,
    is_measured: CpuSet,
    acts: [Sending; Level::COUNT],
    table: Table,
    ended: VecDeque<(i32, [u8; NAME_BYTES])>,
    stack: Vec<u64>,
    /// Number of times that events of a sender were lost.
    pub lost_count: u64,
}

impl SenderBook {
    /// Creates a book for senders to these CPUs.
    pub fn new(measured: &CpuSet) -> Self {
        let act = |_| Sending { notes: Vec::with_capacity(2 * measured.len()), ..Sending::default() };
        Self {
            measured: measured.iter().collect(),
            is_measured: measured.clone(),
            acts: std::array::from_fn(act),
            table: Table::default(),
            ended: VecDeque::with_capacity(ENDED_MAX),
            stack: Vec::with_capacity(STACK_MAX),
            lost_count: 0,
        }
    }

    /// Takes the next event of a CPU. Notes that are complete go to `out`, with the CPU that they are for.
    pub fn take(&mut self, from: CpuId, send: &Send<'_>, mut out: impl FnMut(CpuId, Note)) {
        let thread = if send.level == Level::Thread { send.thread } else { 0 };
        let at = send.level as usize;
        match send.step {
            SendStep::Queues { cpu, function, request, callsite } => {
                if !self.act(at).takes(thread, function, callsite, cpu) {
                    self.close(at, from, &[], &mut out);
                    self.open(at, thread, function, callsite);
                }
                let is_measured = self.is_measured.contains(cpu);
                let act = self.act(at);
                act.last_cpu = cpu;
                if is_measured {
                    act.notes.push((cpu, note(send.ticks, What::Request { request, function })));
                }
            }
            SendStep::Sends { targets, channel, callsite, callback } => {
                if channel != Some(Channel::Call) || !self.act(at).is_sent_by(thread, callsite) {
                    self.close(at, from, &[], &mut out);
                    self.open(at, thread, callback, callsite);
                }
                self.note_interrupts(at, send.ticks, targets, channel);
            }
            SendStep::Stack(frames) => {
                let act = self.act(at);
                if act.is_open && act.is_sent && act.thread == thread {
                    let stack = self.frames(send.level, frames.iter());
                    self.close(at, from, &stack, &mut out);
                    self.stack = stack;
                }
            }
            // Its stack is not that of an interrupt before it.
            SendStep::Wakes(_) => self.close(at, from, &[], &mut out),
            SendStep::Ends(name) => self.note_end(send.thread, name),
            SendStep::Lost { since } => {
                self.end(from, &mut out);
                self.lost_count += 1;
                self.lose(since, send.ticks, &mut out);
            }
        }
    }

    /// States that this CPU's events have been read for now: what is incomplete remains so.
    pub fn end(&mut self, from: CpuId, mut out: impl FnMut(CpuId, Note)) {
        for at in 0..Level::COUNT {
            self.close(at, from, &[], &mut out);
        }
    }

    /// States that nothing more of a CPU can be read.
    pub fn stop(&mut self, mut out: impl FnMut(CpuId, Note)) {
        self.lost_count += 1;
        self.lose(0, u64::MAX, &mut out);
    }

    fn lose(&self, since: u64, until: u64, out: &mut impl FnMut(CpuId, Note)) {
        for cpu in &self.measured {
            out(*cpu, note(until, What::Lost { since }));
        }
    }

    fn act(&mut self, at: usize) -> &mut Sending {
        // A level's number is below the number of levels.
        &mut self.acts[at]
    }

    fn open(&mut self, at: usize, thread: i32, function: u64, callsite: u64) {
        let act = self.act(at);
        (act.is_open, act.is_sent, act.last_cpu) = (true, false, 0);
        (act.thread, act.function, act.callsite) = (thread, function, callsite);
    }

    fn note_interrupts(&mut self, at: usize, ticks: u64, targets: Targets<'_>, channel: Option<Channel>) {
        // Not through `act`: the measured CPUs are borrowed at the same time.
        let act = &mut self.acts[at];
        act.is_sent = true;
        let Some(channel) = channel else { return };
        let note = note(ticks, What::Interrupt(channel));
        match targets {
            Targets::One(cpu) if self.is_measured.contains(cpu) => act.notes.push((cpu, note)),
            Targets::One(_) => {}
            Targets::Mask(_) => {
                let hit = self.measured.iter().filter(|cpu| targets.contains(**cpu));
                act.notes.extend(hit.map(|cpu| (*cpu, note)));
            }
        }
    }

    /// Notes what a thread did at a level of a CPU, with its stack; the thread of an interrupt did nothing.
    pub fn note_stack(&mut self, from: CpuId, thread: i32, level: Level, frames: impl Iterator<Item = u64>) {
        let stack = self.frames(level, frames);
        let thread = if level == Level::Thread { thread } else { 0 };
        self.table.id(Origin { thread, level, function: 0, callsite: 0 }, &stack, from);
    }

    fn frames(&mut self, level: Level, frames: impl Iterator<Item = u64>) -> Vec<u64> {
        let count_max = if level == Level::Thread { STACK_MAX } else { STACK_INTERRUPT_MAX };
        let mut stack = std::mem::take(&mut self.stack);
        stack.clear();
        // A call may be the last instruction of its function: the address after it is then another's.
        stack.extend(frames.take(count_max).map(|address| address.saturating_sub(1)));
        stack
    }

    fn close(&mut self, at: usize, from: CpuId, stack: &[u64], out: &mut impl FnMut(CpuId, Note)) {
        let level = [Level::Thread, Level::Softirq, Level::Interrupt, Level::Nmi][at];
        let act = &mut self.acts[at];
        if !std::mem::take(&mut act.is_open) || act.notes.is_empty() {
            return;
        }
        let callsite = act.callsite.saturating_sub(1);
        let origin = Origin { thread: act.thread, level, function: act.function, callsite };
        let sender = self.table.id(origin, stack, from);
        for (cpu, note) in act.notes.drain(..) {
            out(cpu, Note { sender, ..note });
        }
    }

    fn note_end(&mut self, thread: i32, name: &[u8]) {
        if self.ended.len() >= ENDED_MAX {
            self.ended.pop_front();
        }
        // No allocation: threads end all the time.
        let mut bytes = [0; NAME_BYTES];
        bytes.iter_mut().zip(name).for_each(|(to, from)| *to = *from);
        self.table.end_thread(thread, || text(&bytes));
        self.ended.push_back((thread, bytes));
    }

    /// Asks for the names of new threads, as their own name and their process's. `None`: the thread has ended.
    pub fn name_threads(&mut self, mut name_of: impl FnMut(i32) -> Option<(String, String)>) {
        let ended = &self.ended;
        self.table.name_threads(|thread| {
            let found = name_of(thread);
            let has_ended = found.is_none();
            let last = || ended.iter().rev().find(|(ended, _)| *ended == thread);
            (found.or_else(|| last().map(|(_, name)| (text(name), String::new()))), has_ended)
        });
    }

    /// Times that a sender stayed unknown because there were too many.
    pub fn full_count(&self) -> u64 {
        self.table.full_count
    }

    /// Addresses in the kernel whose names [`SenderBook::finish`] needs.
    pub fn addresses(&self) -> BTreeSet<u64> {
        self.table.addresses()
    }

    /// The senders, and the place in them of each [`SenderId`].
    pub fn finish(&self, names: &SenderNames<'_>) -> (Vec<Sender>, Vec<usize>) {
        self.table.named(names)
    }
}

/// A name up to its zero byte.
fn text(bytes: &[u8; NAME_BYTES]) -> String {
    let name = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(name).into_owned()
}

fn note(ticks: u64, what: What) -> Note {
    Note { ticks, what, sender: SenderId::UNKNOWN }
}
