//! Streams between two network namespaces with a cable between them, over Aeron: driver and bridge are processes in them, the
//! runs and their nodes are this process. `crates/bridge/test` makes the namespaces and starts this.

mod hosts;
mod process;
#[path = "../common/read.rs"]
mod read;
#[path = "../common/run.rs"]
mod run;
mod scenarios;
