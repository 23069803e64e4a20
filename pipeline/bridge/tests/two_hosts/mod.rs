//! Streams between two network namespaces connected by a veth pair, over Aeron: driver and bridge are processes
//! in them, the runs and their nodes are in this process. `pipeline/bridge/test` creates the namespaces and
//! starts this.

mod hosts;
mod process;
mod scenarios;
