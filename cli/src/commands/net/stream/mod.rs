//! `lowlat net stream`: messages in one direction at rising rates.

mod arguments;
mod client;

pub use arguments::{Action, Format};
pub use client::{print, run};
