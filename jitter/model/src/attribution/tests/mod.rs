//! Event streams as a kernel writes them, and streams that no kernel would write.

mod bench;
mod golden;
mod properties;
mod recorded;
mod senders;
mod signals;
mod threads;
mod windows;
