//! The interruption that ends a run.

use crate::{GroupMember, Sender};
use lowlat_host::Reading;
use serde::{Deserialize, Serialize};

/// Whether an interruption of at least a given length ended the run, and where it came from.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Stop {
    /// The shortest interruption that ends the run.
    pub on_ns: u64,
    /// The first of them with its main cause; `None` if the run lasted until its end.
    pub hit: Option<GroupMember>,
    /// Who woke the thread that took the CPU, or interrupted it from another CPU; absent if nothing did or the trace does not
    /// contain it, denied if the kernel hides the names of its functions, unparsable if it has none for these.
    #[serde(default)]
    pub origin: Reading<Sender>,
    /// When, since the start of the interruption; `None` if that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin_offset_ns: Option<i64>,
    /// Why that is not known; empty if it is, or if there was no interruption.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub origin_reason: String,
    /// The trace around the interruption as a trace.dat, which is in no document; empty if it is not wanted.
    #[serde(skip)]
    pub trace: Vec<u8>,
}
