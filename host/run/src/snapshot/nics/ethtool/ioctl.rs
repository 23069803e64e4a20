//! The older interface to a driver: the SIOCETHTOOL ioctl and its structures (linux/ethtool.h).
//!
//! It cannot distinguish an unsupported coalescing value from a zero: both are zero here, as `ethtool -c`
//! shows them.

use super::Driver;
use crate::netlink::message::{text, u32_at};
use lowlat_host::snapshot::{Eee, Timestamping};
use rustix::{
    io::Errno,
    ioctl::{Opcode, Updater},
    net::{AddressFamily, SocketFlags, SocketType, socket_with},
};
use std::collections::BTreeMap;

const SIOCETHTOOL: Opcode = 0x8946;
/// Names in string sets (ETH_GSTRING_LEN).
pub(super) const NAME_BYTES: usize = 32;
/// Maximum number of features whose names are read; kernels have about sixty.
const FEATURES_MAX: usize = 1_024;
/// The set of the features' names (ETH_SS_FEATURES).
const FEATURE_NAMES: u32 = 4;

/// Numbers of the commands used directly by this crate.
pub(super) mod command {
    pub(in super::super) const DRIVER: u32 = 0x03;
    pub(in super::super) const COALESCING: u32 = 0x0E;
    pub(in super::super) const RINGS: u32 = 0x10;
    pub(in super::super) const PAUSE: u32 = 0x12;
    pub(in super::super) const STRINGS: u32 = 0x1B;
    pub(in super::super) const COUNTERS: u32 = 0x1D;
    pub(in super::super) const RULE_COUNT: u32 = 0x2E;
    pub(in super::super) const RULE: u32 = 0x2F;
    pub(in super::super) const RULES: u32 = 0x30;
    pub(in super::super) const SET_SIZES: u32 = 0x37;
    pub(in super::super) const FEATURES: u32 = 0x3A;
    pub(in super::super) const CHANNELS: u32 = 0x3C;
    pub(in super::super) const SET_FEATURES: u32 = 0x3B;
    pub(in super::super) const INDIRECTION: u32 = 0x38;
    pub(in super::super) const SET_INDIRECTION: u32 = 0x39;
    pub(in super::super) const TIMESTAMPING: u32 = 0x41;
    pub(in super::super) const EEE: u32 = 0x44;
    pub(in super::super) const PER_QUEUE: u32 = 0x4B;
}

/// Every readable structure of fixed size: the command that fills it, the command that writes it back (0 if
/// none), and its size. The kernel writes that many bytes regardless of the buffer, so no command outside
/// this table is run.
const STRUCTURES: [(u32, u32, usize); 8] = [
    (command::DRIVER, 0, 196),
    (command::COALESCING, 0x0F, 23 * 4),
    (command::RINGS, 0x11, 9 * 4),
    (command::CHANNELS, 0x3D, 9 * 4),
    (command::TIMESTAMPING, 0, 11 * 4),
    (command::PAUSE, 0x13, 4 * 4),
    (command::EEE, 0x45, 10 * 4),
    (command::RULE_COUNT, 0, RULE_BYTES),
];

/// `struct ethtool_rxnfc` of 64-bit kernels.
pub(super) const RULE_BYTES: usize = 192;

/// The row of a reading command.
fn structure(command: u32) -> Result<(u32, usize), Errno> {
    let found = STRUCTURES.iter().find(|(get, ..)| *get == command);
    found.map(|(_, set, bytes)| (*set, *bytes)).ok_or(Errno::OPNOTSUPP)
}

/// `struct ifreq`: a name and a union that is at least this large; the kernel copies no more than its own size, 40
/// bytes on 64-bit and 32 bytes on 32-bit machines.
#[repr(C)]
struct InterfaceRequest {
    name: [u8; 16],
    data: *mut u8,
    rest: [u8; 16],
}

/// Runs one command; `data` starts with its number and is filled in place.
///
/// # Safety
/// `data` must be as long as everything that the kernel writes for the command in it, or end at memory that nobody may
/// write.
pub(super) unsafe fn run(interface: &str, data: &mut [u8]) -> Result<(), Errno> {
    let mut name = [0; 16];
    // The last byte stays zero. A longer name cannot be an interface's (IFNAMSIZ).
    let place = name.get_mut(..interface.len()).filter(|place| place.len() < 16).ok_or(Errno::NODEV)?;
    place.copy_from_slice(interface.as_bytes());
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    let mut request = InterfaceRequest { name, data: data.as_mut_ptr(), rest: [0; 16] };
    // SAFETY: SIOCETHTOOL reads and writes a `struct ifreq`, which `InterfaceRequest` is laid out as and no smaller
    // than. It follows the pointer in it to `data`, which is borrowed mutably for the whole call and by this
    // function's contract long enough for what the kernel writes, or stops it. The kernel keeps neither pointer.
    unsafe { rustix::ioctl::ioctl(&socket, Updater::<SIOCETHTOOL, _>::new(&mut request)) }
}

/// The structure that a command of fixed size fills.
pub(super) fn fixed(interface: &str, command: u32) -> Result<Vec<u8>, Errno> {
    let (_, bytes) = structure(command)?;
    let mut data = vec![0; bytes];
    put(&mut data, 0, command);
    // SAFETY: `structure` gives commands of its table only, with the sizes of the structures in linux/ethtool.h that the
    // kernel writes; none of these has a part of variable length.
    unsafe { run(interface, &mut data) }?;
    Ok(data)
}

pub(super) fn put(data: &mut [u8], at: usize, number: u32) {
    if let Some(place) = data.get_mut(at..at + 4) {
        place.copy_from_slice(&number.to_ne_bytes());
    }
}

/// The number at a position counted in 32-bit words.
pub(super) fn word(data: &[u8], at: usize) -> u32 {
    u32_at(data, at * 4).unwrap_or(0)
}

pub(super) fn driver(interface: &str) -> Result<Driver, Errno> {
    let data = fixed(interface, command::DRIVER)?;
    let field = |at: usize| data.get(at..at + 32).map(text).unwrap_or_default();
    let told = |text: String| if text == "N/A" { String::new() } else { text };
    Ok(Driver { name: field(4), version: told(field(36)), firmware: told(field(68)) })
}

pub(super) fn eee(interface: &str) -> Result<Eee, Errno> {
    let data = fixed(interface, command::EEE)?;
    Ok(Eee { is_active: word(&data, 4) != 0, eee: word(&data, 5) != 0 })
}

/// Maximum number of entries of an indirection table that are read; the largest adapters have a few thousand.
const INDIRECTION_ENTRIES_MAX: usize = 1 << 16;

/// The queue of each entry of the indirection table. It is read here because netlink has it since 6.3 only and sets it
/// since 6.17 only.
pub(super) fn indirection(interface: &str) -> Result<Vec<u32>, Errno> {
    let mut size = vec![0; 8];
    put(&mut size, 0, command::INDIRECTION);
    // SAFETY: asked for no entries, the kernel writes the two words with the size of its table.
    unsafe { run(interface, &mut size) }?;
    let entries = usize::try_from(word(&size, 1)).map_err(|_| Errno::OVERFLOW)?;
    if entries == 0 {
        return Err(Errno::OPNOTSUPP);
    }
    if entries > INDIRECTION_ENTRIES_MAX {
        return Err(Errno::OVERFLOW);
    }
    let mut data = vec![0; 8 + entries * 4];
    put(&mut data, 0, command::INDIRECTION);
    put(&mut data, 4, word(&size, 1));
    // SAFETY: the kernel writes two words, and no more entries than the second word asked for.
    unsafe { run(interface, &mut data) }?;
    Ok((2..2 + entries).map(|at| word(&data, at)).collect())
}

pub(super) fn set_indirection(interface: &str, table: &[u32]) -> Result<(), Errno> {
    let mut data = vec![0; 8 + table.len() * 4];
    put(&mut data, 0, command::SET_INDIRECTION);
    put(&mut data, 4, u32::try_from(table.len()).map_err(|_| Errno::OVERFLOW)?);
    for (at, queue) in table.iter().enumerate() {
        put(&mut data, 8 + at * 4, *queue);
    }
    // SAFETY: the kernel reads two words and as many entries as the second word says, and writes nothing.
    unsafe { run(interface, &mut data) }
}

pub(super) fn timestamping(interface: &str) -> Result<Timestamping, Errno> {
    let data = fixed(interface, command::TIMESTAMPING)?;
    let flags = word(&data, 1);
    Ok(Timestamping {
        hardware_tx: flags & 1 != 0,
        hardware_rx: flags & (1 << 2) != 0,
        // -1 without a clock.
        phc_index: Some(word(&data, 2)).filter(|index| *index <= i32::MAX.unsigned_abs()),
    })
}

/// One word of the structure that a command fills.
pub(super) fn word_of(interface: &str, command: u32, at: usize) -> Result<u32, Errno> {
    Ok(word(&fixed(interface, command)?, at))
}

/// Changes one word of the structure that a command fills.
pub(super) fn set_word(interface: &str, command: u32, at: usize, to: u32) -> Result<(), Errno> {
    let (set, _) = structure(command)?;
    if set == 0 {
        return Err(Errno::OPNOTSUPP);
    }
    let mut data = fixed(interface, command)?;
    put(&mut data, 0, set);
    put(&mut data, at * 4, to);
    // SAFETY: the table pairs each command that reads with the one that takes the same structure, and `fixed` has made
    // `data` as long as that is.
    unsafe { run(interface, &mut data) }
}

/// Requests a feature to be on or off. The kernel may ignore the request without an error.
pub(super) fn set_feature(interface: &str, name: &str, is_on: bool) -> Result<(), Errno> {
    let names = feature_names(interface)?;
    let index = names.iter().position(|known| known == name).ok_or(Errno::OPNOTSUPP)?;
    let blocks = names.len().div_ceil(32);
    // Two words, and for each block which of its bits are selected and which of those are wanted.
    let mut data = vec![0; 8 + blocks * 8];
    put(&mut data, 0, command::SET_FEATURES);
    put(&mut data, 4, u32::try_from(blocks).map_err(|_| Errno::OVERFLOW)?);
    let bit = 1 << (index % 32);
    put(&mut data, 8 + index / 32 * 8, bit);
    put(&mut data, 8 + index / 32 * 8 + 4, if is_on { bit } else { 0 });
    // SAFETY: the kernel reads two words and two words for each block, as many as the second word says, and writes no
    // more than that.
    unsafe { run(interface, &mut data) }
}

/// Returns whether each feature is active.
pub(super) fn features(interface: &str) -> Result<BTreeMap<String, bool>, Errno> {
    let names = feature_names(interface)?;
    let blocks = names.len().div_ceil(32);
    let mut states = vec![0; 8 + blocks * 16];
    put(&mut states, 0, command::FEATURES);
    put(&mut states, 4, u32::try_from(blocks).map_err(|_| Errno::OVERFLOW)?);
    // SAFETY: the kernel writes two words and four words for each block, and no more blocks than the second word
    // asked for.
    unsafe { run(interface, &mut states) }?;
    // Of a block's four words (available, requested, active, never changed) the third is wanted.
    let is_active = |index: usize| word(&states, 2 + index / 32 * 4 + 2) & (1 << (index % 32)) != 0;
    let features = names.into_iter().enumerate().map(|(index, name)| (name, is_active(index)));
    Ok(features.filter(|(name, _)| !name.is_empty()).collect())
}

/// The names of all features by their numbers; an unused number has an empty name.
fn feature_names(interface: &str) -> Result<Vec<String>, Errno> {
    let count = set_size(interface, FEATURE_NAMES)?;
    if count > FEATURES_MAX {
        return Err(Errno::OVERFLOW);
    }
    let mut names = vec![0; 12 + count * NAME_BYTES];
    put(&mut names, 0, command::STRINGS);
    put(&mut names, 4, FEATURE_NAMES);
    // SAFETY: the kernel writes the three words and 32 bytes for each name of the set, whose size it has just reported
    // and which is fixed when the kernel is built.
    unsafe { run(interface, &mut names) }?;
    Ok(names_in(&names))
}

/// The names of `struct ethtool_gstrings`.
pub(super) fn names_in(data: &[u8]) -> Vec<String> {
    data.get(12..).unwrap_or_default().chunks_exact(NAME_BYTES).map(text).collect()
}

/// The number of names in a set; 0 if the driver has no such set.
pub(super) fn set_size(interface: &str, set: u32) -> Result<usize, Errno> {
    // Two words, a mask of sets in 64 bits, and a word for each set asked for.
    let mut data = vec![0; 16 + 4];
    put(&mut data, 0, command::SET_SIZES);
    let mask = (1u64 << set).to_ne_bytes();
    if let Some(place) = data.get_mut(8..16) {
        place.copy_from_slice(&mask);
    }
    // SAFETY: the kernel writes two words, the mask, and one word for each set of the mask: one here, for which
    // there is room.
    unsafe { run(interface, &mut data) }?;
    usize::try_from(word(&data, 4)).map_err(|_| Errno::OVERFLOW)
}
