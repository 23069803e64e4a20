//! The library as programs in C use it.

#[path = "../../trade/tests/common/allocator.rs"]
mod allocator;
mod compile;
mod example;
mod header;
mod journals;
#[path = "../../trade/tests/runtime/master_thread.rs"]
#[allow(dead_code, clippy::unnecessary_wraps, reason = "other tests use the rest")]
mod master_thread;
mod nodes;
mod orders;
mod processes;
#[path = "../../trade/tests/pipeline/threads.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod threads;
