//! Capabilities of this process. A process of root may lack them: containers and units drop some.

use crate::Root;
use lowlat_host::Reading;

/// A capability by its number in capabilities(7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Capability {
    /// Locks memory beyond RLIMIT_MEMLOCK.
    IpcLock = 14,
    SysAdmin = 21,
}

const STATUS: &str = "/proc/self/status";

/// True if the capability is in effect for this process.
pub fn has(root: &Root, capability: Capability) -> Reading<bool> {
    root.read(STATUS).and_then(|text| {
        let Some(set) = text.lines().find_map(|line| line.strip_prefix("CapEff:")) else {
            return Reading::Absent;
        };
        let bits = u64::from_str_radix(set.trim(), 16).ok();
        Reading::understood(
            bits.map(|bits| bits & (1 << capability as u32) != 0),
            STATUS,
            set,
            "a hexadecimal number after CapEff:",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_of_root_may_lack_a_capability() {
        let of = |text: &str| {
            let root = Root::in_memory("test", [(STATUS.to_owned(), text.as_bytes().to_vec())]);
            (has(&root, Capability::IpcLock), has(&root, Capability::SysAdmin))
        };
        // As in a container.
        assert_eq!(
            of("Uid:\t0\t0\t0\t0\nCapEff:\t00000000a80425fb\n"),
            (Reading::Known(false), Reading::Known(false))
        );
        assert_eq!(of("CapEff:\t000001ffffffffff\n"), (Reading::Known(true), Reading::Known(true)));
        assert!(of("Uid:\t0\n").0.is_absent() && matches!(of("CapEff:\tall\n").0, Reading::Unparsable(_)));
    }
}
