//! The work of lowlat's own workloads.

pub mod cache;
pub mod compute;
pub mod eventfd;
pub mod fork_exec;
pub mod futex;
pub mod msg_posix;
pub mod msg_sysv;
pub mod pipe;
pub mod sem_posix;
pub mod sem_sysv;
