//! The senders of a run: threads and interrupts, with their way through the kernel.

use super::SenderId;
use crate::{Sender, SenderLevel};
use lowlat_host::{CPU_ID_MAX, CpuId, CpuSet};
use lowlat_trace::{Level, TraceNames};
use std::{
    collections::{BTreeSet, HashMap},
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

/// Maximum number of distinct senders of a run; later ones are unknown.
pub const SENDERS_MAX: usize = 512;
/// Addresses of a stack that are kept: a system call is rarely deeper.
pub(super) const STACK_MAX: usize = 40;
/// The same in an interrupt, where the interrupted code follows, which is irrelevant.
pub(super) const STACK_INTERRUPT_MAX: usize = 24;

/// Properties that distinguish senders, without the stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Origin {
    /// The thread; 0 in an interrupt, which no thread asked for.
    pub(super) thread: i32,
    pub(super) level: Level,
    /// Address of the requested function; 0 if there is none.
    pub(super) function: u64,
    /// Address in the kernel that requested it; 0 if unknown.
    pub(super) callsite: u64,
}

#[derive(Debug)]
struct Entry {
    origin: Origin,
    stack: Box<[u64]>,
    cpus: CpuSet,
    /// The thread's name and its process's.
    name: Option<(String, String)>,
    /// The thread has ended, so its number may be reused.
    has_ended: bool,
}

/// All senders of a run, each once.
#[derive(Debug, Default)]
pub(super) struct Table {
    entries: Vec<Entry>,
    places: HashMap<u64, Vec<u16>>,
    pub(super) full_count: u64,
}

impl Table {
    pub(super) fn id(&mut self, origin: Origin, stack: &[u64], from: CpuId) -> SenderId {
        let mut hasher = DefaultHasher::new();
        (origin, stack).hash(&mut hasher);
        let hash = hasher.finish();
        for place in self.places.get(&hash).into_iter().flatten() {
            if let Some(entry) = self.entries.get_mut(usize::from(*place))
                && entry.origin == origin
                && !entry.has_ended
                && *entry.stack == *stack
            {
                add_cpu(&mut entry.cpus, from);
                return SenderId(place + 1);
            }
        }
        match u16::try_from(self.entries.len()) {
            Ok(place) if self.entries.len() < SENDERS_MAX => {
                self.places.entry(hash).or_default().push(place);
                let mut cpus = CpuSet::default();
                add_cpu(&mut cpus, from);
                self.entries.push(Entry { origin, stack: stack.into(), cpus, name: None, has_ended: false });
                SenderId(place + 1)
            }
            _ => {
                self.full_count += 1;
                SenderId::UNKNOWN
            }
        }
    }

    /// Notes that a thread has ended, with its last name.
    pub(super) fn end_thread(&mut self, thread: i32, name: impl Fn() -> String) {
        for entry in self.entries.iter_mut().filter(|entry| entry.origin.thread == thread) {
            if !std::mem::replace(&mut entry.has_ended, true) && entry.name.is_none() {
                entry.name = Some((name(), String::new()));
            }
        }
    }

    /// Names the threads that have no name yet; a thread that is no longer found has ended.
    pub(super) fn name_threads(&mut self, mut name_of: impl FnMut(i32) -> (Option<(String, String)>, bool)) {
        let nameless = |entry: &&mut Entry| entry.origin.thread > 0 && entry.name.is_none();
        for entry in self.entries.iter_mut().filter(nameless) {
            let (name, has_ended) = name_of(entry.origin.thread);
            (entry.name, entry.has_ended) = (Some(name.unwrap_or_default()), has_ended);
        }
    }

    pub(super) fn addresses(&self) -> BTreeSet<u64> {
        let all = self.entries.iter().flat_map(|entry| {
            let origin = [entry.origin.function, entry.origin.callsite];
            origin.into_iter().chain(entry.stack.iter().copied())
        });
        all.filter(|address| *address != 0).collect()
    }

    /// All senders with their names. Those that only differ in addresses become one; the second value has the
    /// index of each former one.
    pub(super) fn named(&self, names: &SenderNames<'_>) -> (Vec<Sender>, Vec<usize>) {
        let mut all: Vec<Sender> = Vec::new();
        let index = |entry: &Entry| {
            let sender = names.sender(entry);
            let same = all.iter_mut().position(|other| other.is_same(&sender));
            if let Some(other) = same.and_then(|place| all.get_mut(place)) {
                sender.cpus.iter().for_each(|cpu| add_cpu(&mut other.cpus, cpu));
            }
            same.unwrap_or_else(|| {
                all.push(sender);
                all.len() - 1
            })
        };
        let places = self.entries.iter().map(index).collect();
        (all, places)
    }
}

fn add_cpu(cpus: &mut CpuSet, cpu: CpuId) {
    if cpu <= CPU_ID_MAX {
        cpus.insert(cpu);
    }
}

/// Names of senders, when a run has ended.
#[derive(Debug, Clone, Copy)]
pub struct SenderNames<'a> {
    pub names: &'a TraceNames,
    /// Thread IDs of lowlat itself.
    pub own_tids: &'a BTreeSet<i32>,
}

impl SenderNames<'_> {
    fn sender(&self, entry: &Entry) -> Sender {
        let Origin { thread, level, function, callsite } = entry.origin;
        let (name, process) = match &entry.name {
            Some(known) if level == Level::Thread => known.clone(),
            _ if level == Level::Thread && thread == 0 => ("idle".into(), String::new()),
            _ => Default::default(),
        };
        let mut path: Vec<String> =
            entry.stack.iter().filter_map(|address| self.function(*address)).collect();
        if path.is_empty() {
            path.extend(self.function(callsite));
        }
        Sender {
            thread: (level == Level::Thread && thread > 0).then_some(thread),
            name,
            process,
            level: match level {
                Level::Thread => SenderLevel::Thread,
                Level::Softirq => SenderLevel::Softirq,
                Level::Interrupt | Level::Nmi => SenderLevel::Interrupt,
            },
            cpus: entry.cpus.clone(),
            function: self.function(function).unwrap_or_default(),
            path,
            is_own: level == Level::Thread && self.own_tids.contains(&thread),
        }
    }

    /// A function's name without the offset of the address in it.
    fn function(&self, address: u64) -> Option<String> {
        let name = self.names.functions.get(&address)?;
        Some(name.split_once('+').map_or(name.as_str(), |(name, _)| name).to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn senders_that_come_too_late_take_no_memory() {
        let mut table = Table::default();
        let mut id = |thread| {
            let origin = Origin { thread, level: Level::Thread, function: 1, callsite: 2 };
            table.id(origin, &[3, 4], 0)
        };
        let first = id(1);
        for thread in 2..=100_000 {
            id(thread);
        }
        assert_eq!((id(1), id(100_000)), (first, SenderId::UNKNOWN));
        assert_eq!(table.full_count, 100_001 - SENDERS_MAX as u64);
        assert_eq!((table.entries.len(), table.places.len()), (SENDERS_MAX, SENDERS_MAX));
        assert!(table.places.capacity() < 4 * SENDERS_MAX);
    }
}
