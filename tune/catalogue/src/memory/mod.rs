//! Memory: pages and swap, modules.

pub(super) mod modules;
pub(super) mod pages;
