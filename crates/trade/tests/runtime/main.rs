//! Nodes and their master, in threads and in processes.

mod in_process;
mod master_thread;
