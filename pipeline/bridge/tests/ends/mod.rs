//! Both ends of the bridge, each with a master in a thread of the test, and a queue as the carrier.

mod carrier;
mod faults;
mod hosts;
mod records;
