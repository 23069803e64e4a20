//! Firmware settings as text.

mod bios_change_text;
mod bios_fleet_text;
mod bios_text;
