//! A watch of a made-up host, as text, frames, JSON and metrics.

mod contrib;
mod frames;
mod host;
mod watching;
