//! The stored layout of segments, and nodes that are killed.

mod golden;
mod killed;
