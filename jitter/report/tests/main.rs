//! A watch of a made-up host, as text, frames, JSON and metrics.

mod contrib;
mod frames;
mod host;
mod watching;

/// Names of all metrics as they are exported.
fn metric_names() -> Vec<&'static str> {
    include_str!("metrics.txt").lines().collect()
}
