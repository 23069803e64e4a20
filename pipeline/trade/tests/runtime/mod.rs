//! Nodes and their master, in threads and in processes.

mod child;
mod crowd;
mod ends;
mod greedy;
mod hostile;
mod in_process;
mod joins;
mod kills;
mod late;
mod masters;
mod names;
mod overrun;
mod pipeline;
mod zombie;
