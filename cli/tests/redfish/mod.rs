//! `lowlat bios` against services: a controller in this process, and an emulator that other people wrote.

mod controller;
mod emulator;
mod run;
mod terminal;
