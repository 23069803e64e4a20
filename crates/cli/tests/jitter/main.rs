//! `lowlat jitter` as people and scripts use it: the real binary, short runs on this host.

#[path = "../common/mod.rs"]
mod common;
mod runs;

mod compare;
mod document;
mod files;
mod gate;
mod help;
mod keeps;
mod refused;
mod signals;
mod sysjitter;
mod tracing;
