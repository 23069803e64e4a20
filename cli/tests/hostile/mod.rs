//! Attacks on the binary: what an attacker may prepare, send or break, and what lowlat must answer.
//!
//! Each module is one surface of the threat model (docs/threat-model.md).

mod captures;
mod descriptors;
mod outputs;
mod recordings;
mod reports;
mod runs;
mod terminal;
mod tune;
