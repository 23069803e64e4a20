//! Network interfaces: the link, what the adapter does on its own, queues and their CPUs.

pub(super) mod choice;
pub(super) mod hardware;
mod parameter;
pub(super) mod queues;
pub(super) mod rings;
