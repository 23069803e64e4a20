//! A host: its topology, devices and kernel, and what its CPUs are for.

pub mod cpu_parts;
pub mod html;
pub mod line;
pub mod shape;
pub mod terminal;
