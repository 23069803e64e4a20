//! Network stacks in user space that bypass the kernel's.

use crate::Reading;
use serde::{Deserialize, Serialize};

/// One network stack and what shows that it is installed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Bypass {
    /// "Onload", "VMA", "XLIO", "exasock", "TCPDirect".
    pub name: String,
    /// Its library, program or kernel module: "/usr/lib64/libonload.so". Absent if it is not installed.
    pub found: Reading<String>,
    /// Version: of the loaded kernel module, otherwise from the name of the library's file.
    pub version: Reading<String>,
    /// True if its kernel module is loaded; absent for a stack without one.
    pub is_loaded: Reading<bool>,
}
