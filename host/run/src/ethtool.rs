//! Changes network interfaces as `ethtool` does.

pub use crate::snapshot::ethtool::{EthtoolError, Setting, Value};
