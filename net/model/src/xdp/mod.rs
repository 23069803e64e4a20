//! AF_XDP: frames as bytes, the program that selects them, and what an end uses.

pub mod frame;
mod program;

pub use program::{Flow, program};

use crate::words::words;
use serde::{Deserialize, Serialize};

words! {
    /// Place where frames leave the kernel's path, and whether they are copied.
    XdpMode {
        /// The fastest that the driver supports.
        Auto = "auto",
        /// In the driver; the NIC reads and writes the memory of the process.
        ZeroCopy = "zero-copy",
        /// In the driver, with a copy of each frame.
        Native = "native",
        /// In the kernel's generic path, behind the driver, with a copy of each frame.
        Generic = "generic",
    }
}

words! {
    /// Ends that use AF_XDP. On the wire both are UDP.
    XdpEnds {
        Both = "both",
        /// The client; the server uses a UDP socket of the kernel.
        Client = "client",
    }
}

/// AF_XDP options of a scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct XdpOptions {
    pub mode: XdpMode,
    /// The ends that use it.
    pub ends: XdpEnds,
}

impl Default for XdpOptions {
    fn default() -> Self {
        Self { mode: XdpMode::Auto, ends: XdpEnds::Both }
    }
}

/// AF_XDP mode and queues that the kernel granted an end.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct XdpFacts {
    pub interface: String,
    /// True if the program runs in the driver, false if in the kernel's generic path.
    pub is_native: bool,
    /// True if the NIC uses the memory of the process (XDP_OPTIONS_ZEROCOPY), false if each frame is copied.
    pub is_zero_copy: bool,
    /// Queues of the interface, each with a socket.
    pub queues: u32,
    /// Reason why a faster mode was not used, one sentence.
    pub fallback: Option<String>,
}

impl XdpFacts {
    /// The mode in which the end ran.
    pub fn mode(&self) -> XdpMode {
        match (self.is_native, self.is_zero_copy) {
            (_, true) => XdpMode::ZeroCopy,
            (true, false) => XdpMode::Native,
            (false, false) => XdpMode::Generic,
        }
    }
}
