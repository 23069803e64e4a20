//! Shared parts of the texts and pages of every capability.

pub mod document;
pub mod fields;
