//! `lowlat net`.

mod import;
mod pingpong;
