//! `lowlat bios` against services: a controller in this process, and an emulator that other people wrote.

#[path = "../common/mod.rs"]
mod common;
mod controller;
mod emulator;
mod run;
#[path = "../../../redfish/tests/service/mod.rs"]
mod service;
mod terminal;
