//! Receive packet steering of a queue, as a CPU list.

use super::{By, NicKind, mask, put_mask};
use crate::change::{
    Part,
    grammar::{CPU_LIST, QUEUE},
};

/// By the queue: "rx-0".
pub static KIND: NicKind = NicKind {
    tag: "nic_rps",
    noun: " rps_cpus",
    grammar: [&QUEUE, &CPU_LIST],
    get: |nic, queue| mask(&nic.rps, queue),
    put: |nic, queue, value| put_mask(&mut nic.rps, queue, value),
    by: By::QueueMask("rps_cpus"),
    part: Part::RunTime,
    tuned: "",
};
