//! The `lowlat` binary.
fn main() {}
