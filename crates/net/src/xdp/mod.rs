//! AF_XDP: frames as bytes, the program that selects them, and what an end uses.

pub mod frame;
mod program;

pub use program::{Flow, program};

use crate::words::words;
use serde::{Deserialize, Serialize};

words! {
    /// Where frames leave the kernel's path, and whether they are copied.
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
        /// Client and server.
        Both = "both",
        /// The client; the server uses a UDP socket of the kernel.
        Client = "client",
    }
}

/// What a scenario asks of AF_XDP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct XdpOptions {
    /// The mode.
    pub mode: XdpMode,
    /// The ends that use it.
    pub ends: XdpEnds,
}

impl Default for XdpOptions {
    fn default() -> Self {
        Self { mode: XdpMode::Auto, ends: XdpEnds::Both }
    }
}

/// What the kernel gave an end.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct XdpFacts {
    /// The interface.
    pub interface: String,
    /// Whether the program runs in the driver; in the kernel's generic path otherwise.
    pub is_native: bool,
    /// Whether the NIC uses the memory of the process (XDP_OPTIONS_ZEROCOPY); each frame is copied otherwise.
    pub is_zero_copy: bool,
    /// Queues of the interface, each with a socket.
    pub queues: u32,
    /// Why a faster mode was not used. One sentence.
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
