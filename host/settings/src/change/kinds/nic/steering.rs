//! Packet steering of a queue, as a CPU list.

use super::{By, NicKind, mask, put_mask};
use crate::change::{
    Part,
    grammar::{CPU_LIST, QUEUE},
};

/// Receive packet steering, by the queue: "rx-0".
pub static RPS: NicKind = NicKind {
    tag: "nic_rps",
    noun: " rps_cpus",
    grammar: [&QUEUE, &CPU_LIST],
    get: |nic, queue| mask(&nic.rps, queue),
    put: |nic, queue, value| put_mask(&mut nic.rps, queue, value),
    by: By::QueueMask("rps_cpus"),
    part: Part::RunTime,
    tuned: "",
};

/// Transmit packet steering, by the queue: "tx-0".
pub static XPS: NicKind = NicKind {
    tag: "nic_xps",
    noun: " xps_cpus",
    grammar: [&QUEUE, &CPU_LIST],
    get: |nic, queue| mask(&nic.xps, queue),
    put: |nic, queue, value| put_mask(&mut nic.xps, queue, value),
    by: By::QueueMask("xps_cpus"),
    part: Part::RunTime,
    tuned: "",
};
