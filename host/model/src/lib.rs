//! The facts about a host: its CPUs and topology, the facts read from it, the user's role for it, and the
//! CPUs chosen for that role. Also what every measurement needs: statistics, histograms, counter ticks.
//!
//! Pure: no I/O, no clock.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod allocation;
pub mod cmdline;
mod cpuset;
pub mod diff;
pub mod histogram;
mod isolation;
pub mod kernel_version;
mod measured;
pub mod memory;
pub mod paired;
mod profile;
mod reading;
pub mod resctrl;
mod role;
pub mod shell;
pub mod snapshot;
pub mod spelling;
pub mod statistics;
mod ticks;
pub mod topology;

pub use allocation::Allocation;
pub use cpuset::{CPU_ID_MAX, CpuId, CpuSet, ListError, MaskError};
pub use isolation::{
    BOOT_CPU, BOOT_CPU_ISOLATED, ISOLCPUS_FLAGS, ISOLCPUS_SKIPS_FLAGS_SINCE, IsolatedCpus, Isolation,
};
pub use lowlat_plain::{Labels, printable};
pub use profile::Profile;
pub use reading::{Count, Reading, Unparsable};
pub use role::{IsolateBy, Role, RoleError, RoleFile, RoleSource};
pub use snapshot::HostSnapshot;
pub use ticks::{TickScale, ticks_between};
pub use topology::Topology;

use sha2::{Digest, Sha256};
use std::fmt::Write;

/// The first 16 digits of the SHA-256 of a text, to identify hosts and plans.
pub fn digest(text: &str) -> String {
    let hash = Sha256::digest(text.as_bytes());
    hash.iter().take(8).fold(String::with_capacity(16), |mut digits, byte| {
        // Writing to a String cannot fail.
        let _ = write!(digits, "{byte:02x}");
        digits
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_is_the_published_one() {
        // Test vectors of SHA-256 (FIPS 180-4), their first 64 bits.
        assert_eq!(digest(""), "e3b0c44298fc1c14");
        assert_eq!(digest("abc"), "ba7816bf8f01cfea");
    }
}
