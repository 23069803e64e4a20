//! The catalogue of settings that lowlat knows. Pure: no I/O, no clock.
//!
//! A family of settings is one file with a const `SETTINGS` slice, and one line in [`FAMILIES`].
//! `lowlat-settings` defines what a setting is and how it is judged and changed.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod boot;
mod debugfs;
mod firmware;
mod irq;
mod kernel;
mod kthread;
mod limits;
mod memory;
mod netfilter;
mod nic;
mod periodic;
mod readiness;
mod service;
mod sysctl;
mod sysfs;
mod tuned;

#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
mod tests;

use lowlat_settings::{Catalogue, Setting};

/// Every setting that lowlat knows.
pub const CATALOGUE: Catalogue = Catalogue::new(FAMILIES);

/// Sources of several families.
const HAZARDS: &str = "docs/guide-57037.md: hazards of guide 57037 on today's hosts";
const CPU_PARTITIONING: &str = "TuneD 2.28 profile cpu-partitioning";
const NETWORK_LATENCY: &str = "TuneD 2.28 profile network-latency";

const FAMILIES: &[&[Setting]] = &[
    boot::clock::SETTINGS,
    boot::idle::SETTINGS,
    boot::isolation::SETTINGS,
    boot::kernel::SETTINGS,
    boot::line::SETTINGS,
    boot::memory::SETTINGS,
    boot::protection::SETTINGS,
    boot::ticks::SETTINGS,
    debugfs::SETTINGS,
    firmware::PLATFORM,
    firmware::PROCESSOR,
    firmware::MEMORY,
    firmware::POWER,
    kernel::SETTINGS,
    sysfs::power::SETTINGS,
    sysfs::topology::SETTINGS,
    sysfs::platform::SETTINGS,
    sysfs::extra::SETTINGS,
    memory::pages::SETTINGS,
    memory::modules::SETTINGS,
    irq::placement::SETTINGS,
    nic::hardware::SETTINGS,
    nic::link::SETTINGS,
    nic::moderation::SETTINGS,
    nic::queues::SETTINGS,
    nic::rss::SETTINGS,
    nic::napi::SETTINGS,
    nic::onload::SETTINGS,
    nic::rings::SETTINGS,
    nic::losses::SETTINGS,
    nic::timestamps::SETTINGS,
    irq::affinity::SETTINGS,
    kthread::SETTINGS,
    readiness::SETTINGS,
    service::SETTINGS,
    periodic::SETTINGS,
    limits::SETTINGS,
    sysctl::console::SETTINGS,
    sysctl::file::SETTINGS,
    sysctl::net::SETTINGS,
    sysctl::numa::SETTINGS,
    sysctl::sched::SETTINGS,
    sysctl::vm::SETTINGS,
    sysctl::watchdog::SETTINGS,
    sysfs::guide::SETTINGS,
    tuned::SETTINGS,
];
