//! Both ends of the bridge, each beside a master in a thread of the test, with a carrier that is a queue.

mod carrier;
mod faults;
mod hosts;
#[path = "../common/read.rs"]
mod read;
mod records;
#[path = "../common/run.rs"]
mod run;
