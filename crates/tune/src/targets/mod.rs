//! What the undo log cannot change as a file or a value of the kernel. One file per kind, one line in [`all`].
//!
//! | kind | name | value |
//! |---|---|---|
//! | `service` | `chronyd.service` | `active, enabled` (as a plan has it) |
//! | `kthread-affinity` | `78 kswapd0`: process id and name | CPU list |
//! | `kthread-scheduling` | `78 kswapd0` | `SCHED_FIFO 2` |
//! | `nic-channels` | `enp1s0 combined` | number |
//! | `nic-coalescing` | `enp1s0 rx-usecs` | number, `on`, `off` |
//! | `nic-feature` | `enp1s0 rx-lro` | `on`, `off` |
//! | `tuned-profile` | `tuned` | profile and mode: `virtual-guest auto` |

use lowlat_sys::undo::Target;

/// Every kind of target beyond files and values, for [`lowlat_sys::undo::UndoLog::with_target`].
pub fn all() -> Vec<Box<dyn Target>> {
    Vec::new()
}
