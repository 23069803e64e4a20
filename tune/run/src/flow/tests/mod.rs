//! The flows on a captured host, with crashes, full disks, changes by other programs, and reboots.

mod basics;
mod bench;
mod boots;
mod confirm;
mod errors;
mod faults;
mod kill;
mod layers;
mod log_check;
mod others;
mod prove;
mod refused;
mod whole;
