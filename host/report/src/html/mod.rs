//! A host on the page.

pub mod allocation;
pub mod environment;
pub mod picture;
pub mod topology;
