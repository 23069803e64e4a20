//! Attacks on the binary: what an attacker may prepare, send or break, and what lowlat must answer.
//!
//! Each module is one surface of the threat model (docs/threat-model.md). `LOWLAT_BINARY=PATH` runs the same attacks on
//! another binary, an installed one for example.

#[path = "../common/mod.rs"]
mod common;
mod support;

mod captures;
mod descriptors;
mod outputs;
mod recordings;
mod reports;
mod runs;
mod terminal;
mod tune;
