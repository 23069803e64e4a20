//! Memory policy of this process (set_mempolicy(2)), which a command inherits.

use lowlat_launch::MemoryPolicy;
use std::{ffi::c_ulong, io};

/// include/uapi/linux/mempolicy.h.
const MPOL_BIND: libc::c_int = 2;
const MPOL_LOCAL: libc::c_int = 4;
/// Bits in a word of the kernel's masks.
const WORD_BITS: u32 = c_ulong::BITS;
/// Highest number of nodes of any kernel (CONFIG_NODES_SHIFT is at most 10).
const NODES_MAX: u32 = 1024;

/// Lets the calling thread allocate on this node only, until it ends.
///
/// # Errors
/// The system's error: a kernel without NUMA, or a node outside of the cpuset.
pub fn allocate_on(node: u32) -> io::Result<()> {
    set_policy(MemoryPolicy::Node(node))
}

/// Sets the policy of the calling thread. Allocates nothing.
pub fn set_policy(memory: MemoryPolicy) -> io::Result<()> {
    let mut mask = [0; (NODES_MAX / WORD_BITS) as usize];
    let (mode, bits) = match memory {
        MemoryPolicy::Inherited => return Ok(()),
        MemoryPolicy::Local => (MPOL_LOCAL, 0),
        MemoryPolicy::Node(node) => {
            let word = mask.get_mut((node / WORD_BITS) as usize).ok_or(io::ErrorKind::InvalidInput)?;
            *word = 1 << (node % WORD_BITS);
            // The kernel reads one bit less than this length.
            (MPOL_BIND, c_ulong::from(NODES_MAX) + 1)
        }
    };
    let mask = if bits == 0 { std::ptr::null() } else { mask.as_ptr() };
    // SAFETY: the mask is null with a length of 0, or alive through the call and as long as the length says: the kernel
    // reads `bits - 1` bits.
    let result = unsafe { libc::syscall(libc::SYS_set_mempolicy, mode, mask, bits) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
