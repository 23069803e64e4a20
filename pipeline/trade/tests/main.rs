//! Nodes, their master, and the pipeline of them.

mod allocations;
#[path = "common/allocator.rs"]
mod allocator;
mod hot_path;
#[path = "runtime/master_thread.rs"]
mod master_thread;
mod pipeline;
mod runtime;
