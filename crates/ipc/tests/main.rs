//! Segments of earlier versions, and nodes that are killed.

mod golden;
mod killed;
