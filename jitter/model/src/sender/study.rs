//! Senders over all measured CPUs.

use super::{Sender, SenderLevel};
use crate::{JitterRecord, Remedy};
use lowlat_host::{CPU_ID_MAX, CpuSet, statistics::RateInterval};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Interruptions of measured CPUs by one sender on another CPU, for one reason.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SenderStudy {
    /// The sender: "md (pid 812)"; without the number if several threads of this name sent. "unknown sender" if it
    /// is not known.
    pub who: String,
    /// The reason: "TLB shootdown: munmap"; empty if the sender is unknown.
    pub what: String,
    /// The CPUs from which it sent.
    pub from: CpuSet,
    /// The CPUs that it interrupted.
    pub cpus: CpuSet,
    /// Interruptions that contained an interrupt or a function of it.
    pub count: u64,
    /// Time of these interrupts and functions.
    pub ns_total: u64,
    /// Longest time in one interruption.
    pub ns_max: u64,
    /// Interruptions per core-second of all measured CPUs.
    pub rate: Option<RateInterval>,
    pub remedy: Option<Remedy>,
    pub is_known: bool,
    /// True if it is lowlat itself.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_own: bool,
}

/// Name of an unknown sender.
const UNKNOWN: &str = "unknown sender";

/// Properties that distinguish senders: a program and a reason, on any CPU.
type Key = (Option<(SenderLevel, String)>, String, bool);

/// All senders, those that took the most time first; empty if they were not traced.
pub(crate) fn senders_of(record: &JitterRecord) -> Vec<SenderStudy> {
    let Some(causes) = &record.causes else { return Vec::new() };
    let Some(senders) = &causes.senders else { return Vec::new() };
    let mut merged: BTreeMap<Key, (SenderStudy, Option<i32>)> = BTreeMap::new();
    for cpu in &causes.cpus {
        for total in &cpu.senders {
            let sender = total.sender.and_then(|place| senders.get(place));
            let reason = sender.map(Sender::reason).unwrap_or_default();
            let program = sender.map(|sender| (sender.level, key_name(sender)));
            let is_own = sender.is_some_and(|sender| sender.is_own);
            let entry = merged.entry((program, reason.what.clone(), is_own));
            let (of, thread) = entry.or_insert_with(|| {
                let who = sender.map_or_else(|| UNKNOWN.to_owned(), Sender::who);
                let remedy = reason.remedy.filter(|_| !is_own);
                let (what, is_known) = (reason.what, sender.is_some());
                let of = SenderStudy { who, what, remedy, is_known, is_own, ..SenderStudy::default() };
                (of, sender.and_then(|sender| sender.thread))
            });
            if let Some(sender) = sender {
                if *thread != sender.thread {
                    // Several threads of one name.
                    of.who = sender.program();
                }
                for cpu in sender.cpus.iter().filter(|cpu| *cpu <= CPU_ID_MAX) {
                    of.from.insert(cpu);
                }
                if sender.thread.is_none() {
                    of.who = Sender { cpus: of.from.clone(), ..sender.clone() }.who();
                }
            }
            if cpu.cpu <= CPU_ID_MAX {
                of.cpus.insert(cpu.cpu);
            }
            of.count = of.count.saturating_add(total.count);
            of.ns_total = of.ns_total.saturating_add(total.ns_total);
            of.ns_max = of.ns_max.max(total.ns_max);
        }
    }
    let core_seconds: f64 = record.cpus.iter().map(|cpu| cpu.runtime_ns as f64 / 1e9).sum();
    let mut found: Vec<SenderStudy> = merged.into_values().map(|(of, _)| of).collect();
    for of in &mut found {
        of.rate = RateInterval::of(of.count, core_seconds);
    }
    found.sort_by(|a, b| b.ns_total.cmp(&a.ns_total).then_with(|| a.who.cmp(&b.who)));
    found
}

/// Its name as one sender among others; threads without a name are distinguished by their numbers.
fn key_name(sender: &Sender) -> String {
    match (sender.thread, sender.name.is_empty()) {
        (Some(thread), true) => thread.to_string(),
        _ => sender.program(),
    }
}
