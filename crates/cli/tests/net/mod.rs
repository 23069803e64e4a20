//! `lowlat net`.

mod import;
