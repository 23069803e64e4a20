//! Lists that drivers report by the SIOCETHTOOL ioctl alone: their counters, flow rules, and coalescing by queue.

use super::decode::{self, EthtoolNumbers};
use super::ioctl::{self, NAME_BYTES, RULE_BYTES, command, put, word};
use lowlat_host::snapshot::Coalescing;
use rustix::{
    io::Errno,
    mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap},
    param::page_size,
};
use std::{collections::BTreeMap, ffi::c_void, ptr, slice};

/// The set of the counters' names (ETH_SS_STATS).
const COUNTER_NAMES: u32 = 1;
/// Maximum number of counters read; adapters with hundreds of queues have some ten thousand.
const COUNTERS_MAX: usize = 1 << 17;
/// Maximum number of counters and of flow rules kept.
const KEPT_MAX: usize = 1_024;
/// Maximum number of queues whose coalescing is read.
const QUEUES_MAX: u32 = 256;

/// Parts of the names that drivers give to counters of lost and damaged packets.
const LOSSES: [&str; 14] = [
    "drop",
    "discard",
    "miss",
    "no_buf",
    "nobuf",
    "out_of_buf",
    "nodesc",
    "no_desc",
    "overflow",
    "overrun",
    "fifo",
    "error",
    "crc",
    "starv",
];

/// The counters whose names mean a loss.
pub(super) fn driver_drops(interface: &str) -> Result<BTreeMap<String, u64>, Errno> {
    let count = ioctl::set_size(interface, COUNTER_NAMES)?;
    if count == 0 {
        return Err(Errno::OPNOTSUPP);
    }
    if count > COUNTERS_MAX {
        return Err(Errno::OVERFLOW);
    }
    let mut names = Guarded::new(12 + count * NAME_BYTES)?;
    put(names.bytes(), 0, command::STRINGS);
    put(names.bytes(), 4, COUNTER_NAMES);
    // SAFETY: the kernel writes three words and 32 bytes for each name that the set has at that moment; `Guarded` ends at
    // memory that nobody may write, in case they have become more.
    unsafe { ioctl::run(interface, names.bytes()) }?;
    let mut counters = Guarded::new(8 + count * 8)?;
    put(counters.bytes(), 0, command::COUNTERS);
    // SAFETY: the kernel writes two words and 8 bytes for each counter; as above.
    unsafe { ioctl::run(interface, counters.bytes()) }?;
    let is_same = [word(names.bytes(), 2), word(counters.bytes(), 1)]
        .iter()
        .all(|found| usize::try_from(*found) == Ok(count));
    if !is_same {
        return Err(Errno::AGAIN);
    }
    let values =
        counters.bytes().get(8..).unwrap_or_default().chunks_exact(8).map(|value| value.first_chunk());
    let values = values.map(|value| value.copied().map(u64::from_ne_bytes).unwrap_or_default());
    let all = ioctl::names_in(names.bytes()).into_iter().zip(values);
    Ok(all.filter(|(name, _)| is_loss(name)).take(KEPT_MAX).collect())
}

fn is_loss(counter: &str) -> bool {
    let name = counter.to_ascii_lowercase();
    LOSSES.iter().any(|part| name.contains(part))
}

/// Returns the destination of each flow rule's packets, by the rule's location.
pub(super) fn flow_rules(interface: &str) -> Result<BTreeMap<u32, String>, Errno> {
    const COUNT: usize = 184;
    const LOCATIONS: usize = 188;
    let count = word(&ioctl::fixed(interface, command::RULE_COUNT)?, COUNT / 4);
    let asked = usize::try_from(count).map_err(|_| Errno::OVERFLOW)?;
    if asked > KEPT_MAX {
        return Err(Errno::OVERFLOW);
    }
    let mut list = Guarded::new((LOCATIONS + asked * 4).max(RULE_BYTES))?;
    put(list.bytes(), 0, command::RULES);
    put(list.bytes(), COUNT, count);
    if count > 0 {
        // SAFETY: the kernel writes the structure and as many locations as the driver lists, which are to be no more than
        // asked for; should they be more, `Guarded` stops it.
        unsafe { ioctl::run(interface, list.bytes()) }?;
    }
    let listed = usize::try_from(word(list.bytes(), COUNT / 4)).unwrap_or(usize::MAX).min(asked);
    let locations: Vec<u32> = (0..listed).map(|at| word(list.bytes(), LOCATIONS / 4 + at)).collect();
    locations.into_iter().map(|location| Ok((location, target_of(interface, location)?))).collect()
}

/// Returns the destination of a rule's packets.
fn target_of(interface: &str, location: u32) -> Result<String, Errno> {
    const FLOW_TYPE: usize = 16;
    const COOKIE: usize = 168;
    const LOCATION: usize = 176;
    const CONTEXT: usize = 184;
    let mut rule = vec![0; RULE_BYTES];
    put(&mut rule, 0, command::RULE);
    put(&mut rule, LOCATION, location);
    // SAFETY: for one rule the kernel writes the structure, whose size this is.
    unsafe { ioctl::run(interface, &mut rule) }?;
    Ok(target(
        word(&rule, FLOW_TYPE / 4),
        word(&rule, COOKIE / 4),
        word(&rule, COOKIE / 4 + 1),
        word(&rule, CONTEXT / 4),
    ))
}

/// The lower word of a rule's cookie is a queue, the upper one a virtual function; all ones mean "drop".
fn target(flow_type: u32, low: u32, high: u32, context: u32) -> String {
    const BY_RSS: u32 = 0x2000_0000;
    match (low, high & 0xff) {
        (u32::MAX, _) => "dropped".to_owned(),
        (queue, 0) if flow_type & BY_RSS != 0 => format!("RSS context {context} from queue {queue}"),
        (queue, 0) => format!("queue {queue}"),
        (queue, function) => format!("queue {queue} of virtual function {}", function - 1),
    }
}

/// The coalescing of each queue.
pub(super) fn queue_coalescing(interface: &str, queues: u32) -> Result<Vec<Coalescing>, Errno> {
    // The command, the command for each queue, and a bit for each of 4096 queues.
    const HEADER: usize = 8 + 512;
    const ONE: usize = 23 * 4;
    let queues = queues.min(QUEUES_MAX);
    let count = usize::try_from(queues).map_err(|_| Errno::OVERFLOW)?;
    let mut data = vec![0; HEADER + count * ONE];
    put(&mut data, 0, command::PER_QUEUE);
    put(&mut data, 4, command::COALESCING);
    for queue in 0..queues {
        if let Some(byte) = usize::try_from(queue / 8).ok().and_then(|at| data.get_mut(8 + at)) {
            *byte |= 1 << (queue % 8);
        }
    }
    // SAFETY: the kernel writes one structure for each bit that is set, and there is room for so many.
    unsafe { ioctl::run(interface, &mut data) }?;
    let each = data.get(HEADER..).unwrap_or_default().chunks_exact(ONE);
    Ok(each.map(|queue| decode::coalescing(EthtoolNumbers::Structure(queue))).collect())
}

/// Zeroed memory that ends at an inaccessible page. The kernel writes as many counters as a driver has at that moment;
/// if they do not fit, it fails with EFAULT.
struct Guarded {
    map: *mut c_void,
    mapped: usize,
    length: usize,
}

impl Guarded {
    fn new(length: usize) -> Result<Self, Errno> {
        let room = length.next_multiple_of(page_size());
        let mapped = room + page_size();
        // SAFETY: a new private mapping at an address of the kernel's choice takes no memory that is in use.
        let map = unsafe {
            mmap_anonymous(ptr::null_mut(), mapped, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)
        }?;
        let guarded = Self { map, mapped, length };
        // SAFETY: the last page of the mapping, which nobody has seen yet, loses its access.
        unsafe { mprotect(map.byte_add(room), page_size(), MprotectFlags::empty()) }?;
        Ok(guarded)
    }

    /// The memory up to the guard.
    fn bytes(&mut self) -> &mut [u8] {
        let start = self.mapped - page_size() - self.length;
        // SAFETY: the bytes lie in the mapping before its guard, are initialised (the kernel maps zeros), live as long as
        // `self`, and are reached through this exclusive borrow alone.
        unsafe { slice::from_raw_parts_mut(self.map.byte_add(start).cast(), self.length) }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own, and no borrow of it outlives it.
        let _ = unsafe { munmap(self.map, self.mapped) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_go_to_queues_contexts_functions_or_nowhere() {
        let rule = |flow, low, high, context| target(flow, low, high, context);
        assert_eq!(rule(5, 4, 0, 9), "queue 4");
        assert_eq!(rule(5, u32::MAX, u32::MAX, 0), "dropped");
        assert_eq!(rule(0x2000_0005, 0, 0, 2), "RSS context 2 from queue 0");
        assert_eq!(rule(5, 1, 3, 0), "queue 1 of virtual function 2");
    }

    #[test]
    fn counters_of_losses_are_told_by_their_names() {
        for name in [
            "rx_out_of_buffer",
            "rx_queue_0_drops",
            "rx_nodesc_trunc",
            "rx_discards_phy",
            "port.rx_crc_errors",
        ] {
            assert!(is_loss(name), "{name}");
        }
        for name in ["rx_packets", "tx_bytes_nic", "rx_queue_3_xdp_redirect", "rx_pause"] {
            assert!(!is_loss(name), "{name}");
        }
    }

    #[test]
    fn the_kernel_cannot_write_beyond_a_guard() {
        let mut memory = Guarded::new(12).unwrap();
        assert_eq!(memory.bytes(), [0; 12]);
        memory.bytes().fill(1);
        let end = memory.bytes().as_mut_ptr_range().end;
        let file = std::fs::File::open("/dev/zero").unwrap();
        // SAFETY: the read is to fail; should it not, it writes a byte into the page of the mapping's own guard.
        let read = unsafe { libc::read(std::os::fd::AsRawFd::as_raw_fd(&file), end.cast(), 1) };
        assert_eq!((read, std::io::Error::last_os_error().raw_os_error()), (-1, Some(libc::EFAULT)));
    }
}
