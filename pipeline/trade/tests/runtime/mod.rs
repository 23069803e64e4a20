//! Nodes and their master, in threads and in processes.

mod child;
mod crowd;
mod ends;
mod failed_join;
mod greedy;
mod hostile;
mod in_process;
mod kills;
mod masters;
mod overrun;
mod pipeline;
mod zombie;
