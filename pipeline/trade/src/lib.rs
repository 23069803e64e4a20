//! The trading pipeline as processes over `lowlat-ipc`, and as a library. Strategies and other programs that only take
//! part in one need `lowlat-node`.
//!
//! ```text
//! md --quotes, by instrument--> strategies --orders, one stream each--> td --answers, by strategy--> strategies
//! ```
//!
//! *master* starts and supervises the others, and allocates and shares their memory; *cached* keeps the latest
//! state in SQLite; *md* publishes quotes, *td* answers orders.

pub mod cached;
pub mod hosting;
pub mod master;
pub mod matrix;
pub mod md;
pub mod roles;
pub mod run;
pub mod scenario;
pub mod size;
pub mod stages;
pub mod td;
pub mod wire;
