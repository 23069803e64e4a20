//! Both ends of the bridge, in this process and, with Aeron, on two hosts.

mod allocations;
#[path = "../../trade/tests/common/allocator.rs"]
mod allocator;
mod ends;
mod read;
mod run;
#[cfg(feature = "aeron")]
mod two_hosts;
