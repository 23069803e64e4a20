//! The client against a controller in this process.

mod reads;
mod sends;
mod service;
