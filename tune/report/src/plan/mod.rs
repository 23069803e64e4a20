//! Plans, the outcome of an apply or rollback, and verifications.

pub mod apply;
#[cfg(test)]
mod apply_tests;
pub mod import;
pub mod proof;
pub mod standing;
pub mod text;
pub mod three_way;
pub mod verification;
