//! Plans of changes: what they would do, what was applied, whether it is in force.

pub mod apply;
#[cfg(test)]
mod apply_tests;
pub mod text;
pub mod three_way;
pub mod verification;
