//! `lowlat tune` against those who can write a plan, a tree or lowlat's own files, and against disks and kills.

mod faults;
mod links;
mod log;
mod plans;
mod read_only;
mod tree;
mod users;
