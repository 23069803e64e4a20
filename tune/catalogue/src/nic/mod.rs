//! Network interfaces: the link, automatic functions of the adapter, queues and their CPUs.

pub(super) mod choice;
pub(super) mod hardware;
pub(super) mod link;
pub(super) mod losses;
pub(super) mod moderation;
pub(super) mod napi;
mod parameter;
pub(super) mod queues;
pub(super) mod rings;
pub(super) mod rss;
pub(super) mod timestamps;
