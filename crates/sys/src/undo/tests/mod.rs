//! The torture of the undo log: crashes, kills, full disks, damage, other people's edits.

mod basics;
mod crash;
mod damage;
mod disk;
mod host;
mod kill;
mod random;

pub(super) use host::Host;
