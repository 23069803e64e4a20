//! Captured hosts and plans from other people: their size, their paths, and the values they pass on.

mod exports;
mod host;
mod limits;
mod redaction;
