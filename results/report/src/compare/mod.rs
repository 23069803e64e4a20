//! Comparison of two measurements of interruptions.

pub mod comparison;
mod explained;
pub mod html;
pub mod terminal;
