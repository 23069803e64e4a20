//! Measurements of cores and caches, workloads, and the start of commands on chosen CPUs.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod cache;
pub mod launch;
pub mod watch;
pub mod workload;
