//! `lowlat net`.

mod compare;
mod import;
mod pingpong;
mod stream;
mod xdp;
