//! Firmware settings read and changed over Redfish.

pub mod change;
pub mod fleet_page;
pub mod servers;
pub mod settings;
pub mod sheet;
