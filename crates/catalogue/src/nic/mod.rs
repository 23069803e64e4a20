//! Network interfaces: the link, what the adapter does on its own, queues and their CPUs.

pub(super) mod choice;
pub(super) mod hardware;
pub(super) mod queues;
