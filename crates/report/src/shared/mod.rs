//! Shared parts of the texts and pages of every capability.

pub mod columns;
pub mod document;
pub mod fields;
pub mod page;
pub mod text;
pub mod units;
pub mod view;
