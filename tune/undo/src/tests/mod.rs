//! Stress tests of the undo log: crashes, kills, full disks, damage, edits from outside.

mod basics;
mod boots;
mod choose;
mod compact;
mod crash;
mod damage;
mod disk;
mod early;
mod errors;
mod host;
mod kill;
mod mark;
mod preview;
mod random;
mod refused;

pub(super) use host::Host;
