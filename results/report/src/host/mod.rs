//! Host: topology, devices, kernel, and the purpose of each CPU.

pub mod cpu_parts;
pub mod hardware;
pub mod html;
pub mod line;
pub mod shape;
pub mod terminal;
