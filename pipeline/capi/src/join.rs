//! Joins a master.

use crate::{
    LOWLAT_ABI_VERSION,
    error::{Status, fail, guard, null, of_join},
    node::Node,
};
use lowlat_node::{
    Join, Keys, Overrun, Reads, ReadsFrom, STRATEGIES_MAX, Strategies, Wait, Writes, strategy,
};
use std::{
    ffi::{CStr, OsStr, c_char},
    fmt::Display,
    os::unix::ffi::OsStrExt,
    path::Path,
};

/// wait: sleep until woken.
pub const LOWLAT_WAIT_PARKED: u32 = 0;
/// wait: spin, and never sleep.
pub const LOWLAT_WAIT_FAST: u32 = 1;
/// wait: spin as long as that pays, then sleep.
pub const LOWLAT_WAIT_ADAPTIVE: u32 = 2;

/// which: all records of the streams.
pub const LOWLAT_KEYS_ALL: u32 = 0;
/// which: those of the instruments in keys; for answers, those for the strategies in keys.
pub const LOWLAT_KEYS_ONLY: u32 = 1;
/// which: those with the node's own number.
pub const LOWLAT_KEYS_OWN: u32 = 2;

/// overrun: records that find the reader's ring full are lost, and it learns their number, in place.
pub const LOWLAT_OVERRUN_GAP: u32 = 0;
/// overrun: the reader gets the latest record of each instrument.
pub const LOWLAT_OVERRUN_CONFLATE: u32 = 1;
/// overrun: nothing is lost; while the reader has no room, its publisher gets LOWLAT_STATUS_NO_CREDIT. Only for streams
/// whose writer accepts that, which are those of orders; for others it equals LOWLAT_OVERRUN_GAP.
pub const LOWLAT_OVERRUN_CREDIT: u32 = 2;
/// overrun: a reader with more pending records than behind_max loses all of them and learns their number.
pub const LOWLAT_OVERRUN_EVICT: u32 = 3;

/// start: the first record that is published after the node has joined.
pub const LOWLAT_START_HEAD: u32 = 0;
/// start: the oldest record that the stream's ring has kept.
pub const LOWLAT_START_OLDEST: u32 = 1;
/// start: the record after start_after, which is the sequence of the last one that the node has read in a recording of the
/// same run. Records that are not kept any more are lost.
pub const LOWLAT_START_AFTER: u32 = 2;

/// number: an unused one, assigned by the master.
pub const LOWLAT_NUMBER_FREE: u32 = u32::MAX;

/// Maximum number of keys, or of streams, of one node.
const LIST_MAX: usize = 1 << 16;
/// Default size of a stream's ring, in bytes.
const CAPACITY_BYTES: u64 = 1 << 20;

/// Streams that a node reads.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct NodeReads {
    /// A stream's name, or a prefix and a star: "orders.*". The streams need not exist yet.
    pub streams: *const c_char,
    /// Instruments, with LOWLAT_KEYS_ONLY.
    pub keys: *const u32,
    /// Number of keys.
    pub key_count: usize,
    /// LOWLAT_KEYS_...
    pub which: u32,
    /// LOWLAT_OVERRUN_...
    pub overrun: u32,
    /// With LOWLAT_OVERRUN_EVICT: maximum number of pending records.
    pub behind_max: u64,
    /// LOWLAT_START_...
    pub start: u32,
    /// 0.
    pub reserved: u32,
    /// With LOWLAT_START_AFTER: a sequence.
    pub start_after: u64,
}

/// Options of a node. Start with lowlat_node_options_default(), which sets the first two fields.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct NodeOptions {
    /// sizeof(lowlat_node_options).
    pub size_bytes: u32,
    /// LOWLAT_ABI_VERSION.
    pub abi_version: u32,
    /// The master's socket: FOLDER/master.sock.
    pub socket: *const c_char,
    /// The node's name, unique among the nodes of the master. A process restarted under it keeps its number.
    pub name: *const c_char,
    /// Its role, for display; NULL: "node".
    pub role: *const c_char,
    /// The stream that it writes; NULL: none.
    pub writes: *const c_char,
    /// Bytes of that stream's ring: a power of two, at least 4096; 0: 1 MiB.
    pub capacity_bytes: u64,
    /// Upper bound of that stream's instruments; 0: 1.
    pub keys: u32,
    /// LOWLAT_WAIT_...
    pub wait: u32,
    /// The streams that it reads.
    pub reads: *const NodeReads,
    /// Number of reads.
    pub reads_count: usize,
}

/// Options of a strategy: it reads its instruments of "md" and its answers of "td", and writes "orders.NAME".
/// Start with lowlat_strategy_options_default(), which sets the first two fields, and number to
/// LOWLAT_NUMBER_FREE.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct StrategyNodeOptions {
    /// sizeof(lowlat_strategy_options).
    pub size_bytes: u32,
    /// LOWLAT_ABI_VERSION.
    pub abi_version: u32,
    /// The master's socket: FOLDER/master.sock.
    pub socket: *const c_char,
    /// The node's name, unique among the nodes of the master.
    pub name: *const c_char,
    /// The strategy's number: LOWLAT_NUMBER_FREE, or a number below 16384, which the master refuses if another
    /// strategy has it. A node that restarts under its name gets the same free number.
    pub number: u32,
    /// LOWLAT_WAIT_...
    pub wait: u32,
    /// The instruments whose quotes it reads.
    pub instruments: *const u32,
    /// Number of instruments.
    pub instrument_count: usize,
    /// Bytes of its orders' ring: a power of two, at least 4096; 0: 1 MiB.
    pub capacity_bytes: u64,
    /// LOWLAT_OVERRUN_... for quotes.
    pub overrun: u32,
    /// LOWLAT_START_... for quotes.
    pub start: u32,
    /// With LOWLAT_OVERRUN_EVICT: maximum number of pending quotes.
    pub behind_max: u64,
    /// With LOWLAT_START_AFTER: a sequence.
    pub start_after: u64,
    /// Other streams that it reads.
    pub reads: *const NodeReads,
    /// Number of reads.
    pub reads_count: usize,
}

/// Joins the master that listens at a socket, and returns a node, to be released with lowlat_leave. Once it
/// returns, the node loses nothing that is published from then on. It may take up to 30 s if the master or a
/// publisher is slow.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lowlat_join(options: *const NodeOptions, node: *mut *mut Node) -> Status {
    let join = || {
        // SAFETY: the caller passes options as documented, or NULL, so the versions can be read.
        let options = unsafe { checked(options, |options| (options.size_bytes, options.abi_version)) }?;
        // SAFETY: as above: zero-terminated texts, or NULL.
        let (socket, name, role, stream) = unsafe {
            (
                path(options.socket, "socket")?,
                text(options.name, "name")?,
                optional(options.role, "role")?.unwrap_or("node"),
                optional(options.writes, "writes")?,
            )
        };
        let writes =
            stream.map(|stream| Writes::new(stream, capacity(options.capacity_bytes), options.keys.max(1)));
        // SAFETY: as above: this many of them.
        let reads = unsafe { all_reads(options.reads, options.reads_count) }?;
        let wait = wait(options.wait)?;
        let join = Join::new(name, role).writing(writes).reading(reads).waiting(wait);
        // SAFETY: the caller passes space for a pointer, or NULL.
        unsafe { join_as(socket, &join, node) }
    };
    guard(join, || ())
}

/// Joins as a strategy, and returns a node, to be released with lowlat_leave. Otherwise like lowlat_join.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lowlat_join_strategy(
    options: *const StrategyNodeOptions,
    node: *mut *mut Node,
) -> Status {
    let join = || {
        // SAFETY: the caller passes options as documented, or NULL, so the versions can be read.
        let options = unsafe { checked(options, |options| (options.size_bytes, options.abi_version)) }?;
        // SAFETY: as above: zero-terminated texts, or NULL.
        let (socket, name) = unsafe { (path(options.socket, "socket")?, text(options.name, "name")?) };
        let strategies = match options.number {
            LOWLAT_NUMBER_FREE => Strategies::Free,
            number if number < STRATEGIES_MAX => Strategies::Only(vec![number]),
            number => {
                let text = format_args!(
                    "cannot join as strategy number {number}: numbers are below {STRATEGIES_MAX}\n\
                     hint: use LOWLAT_NUMBER_FREE"
                );
                return Err(fail(Status::Argument, &text));
            }
        };
        // SAFETY: as above: this many of them.
        let instruments = unsafe { list(options.instruments, options.instrument_count, "instruments") }?;
        let (wait, capacity_bytes) = (wait(options.wait)?, capacity(options.capacity_bytes));
        let join = strategy::join(name, "strategy", strategies, instruments, capacity_bytes, wait);
        let join = strategy::with_overrun(join, overrun(options.overrun, options.behind_max)?);
        let mut join = strategy::starting(join, start(options.start, options.start_after)?);
        // SAFETY: as above: this many of them.
        join.reads.extend(unsafe { all_reads(options.reads, options.reads_count) }?);
        // SAFETY: the caller passes space for a pointer, or NULL.
        unsafe { join_as(socket, &join, node) }
    };
    guard(join, || ())
}

/// # Safety
/// `node` is NULL, or has space for a pointer.
unsafe fn join_as(socket: &Path, join: &Join, node: *mut *mut Node) -> Result<(), Status> {
    if node.is_null() {
        return Err(null("node"));
    }
    let joined = lowlat_node::Node::join(socket, join).map_err(|error| of_join(&error))?;
    let made = Box::into_raw(Box::new(Node::new(joined)));
    // SAFETY: not NULL, and the caller guarantees the space.
    unsafe { node.write(made) };
    Ok(())
}

/// The status for a program that was compiled with the header of another version; `what` it wanted to do.
pub fn other_version(what: &dyn Display) -> Status {
    let text = format_args!(
        "cannot {what}: this library has interface {LOWLAT_ABI_VERSION}\n\
         hint: compile with the library's lowlat.h, and start with the default options"
    );
    fail(Status::Version, &text)
}

/// Checks that options are of this version of the library.
///
/// # Safety
/// The pointer is NULL, or that of a struct that starts with its size and version, as all versions do.
unsafe fn checked<'a, T>(
    options: *const T,
    versions: impl FnOnce(&T) -> (u32, u32),
) -> Result<&'a T, Status> {
    if options.is_null() {
        return Err(null("options"));
    }
    // SAFETY: not NULL, and the caller guarantees that it starts with two numbers, whatever its length.
    let (size_bytes, abi_version) = unsafe { options.cast::<[u32; 2]>().read() }.into();
    if abi_version != LOWLAT_ABI_VERSION || usize::try_from(size_bytes).ok() != Some(size_of::<T>()) {
        return Err(other_version(&format_args!(
            "use options of interface {abi_version} with {size_bytes} bytes instead of {}",
            size_of::<T>()
        )));
    }
    // SAFETY: not NULL, and of the size set by the caller's compiler, which equals the size that is read here.
    let options = unsafe { &*options };
    debug_assert_eq!(versions(options), (size_bytes, abi_version), "they are first");
    Ok(options)
}

/// # Safety
/// The pointer is NULL, or that of a zero-terminated text.
pub unsafe fn optional<'a>(text: *const c_char, what: &str) -> Result<Option<&'a str>, Status> {
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: not NULL, and zero-terminated, as the caller guarantees.
    let text = unsafe { CStr::from_ptr(text) };
    let not_utf8 = |_| fail(Status::Argument, &format_args!("{what} {text:?}: expected UTF-8"));
    text.to_str().map(Some).map_err(not_utf8)
}

/// # Safety
/// As for [`optional`].
unsafe fn text<'a>(text: *const c_char, what: &str) -> Result<&'a str, Status> {
    // SAFETY: guaranteed by the caller.
    unsafe { optional(text, what) }?.ok_or_else(|| null(what))
}

/// # Safety
/// As for [`optional`].
pub unsafe fn path<'a>(path: *const c_char, what: &str) -> Result<&'a Path, Status> {
    if path.is_null() {
        return Err(null(what));
    }
    // SAFETY: not NULL, and zero-terminated, as the caller guarantees.
    let bytes = unsafe { CStr::from_ptr(path) }.to_bytes();
    Ok(Path::new(OsStr::from_bytes(bytes)))
}

/// # Safety
/// This many of them exist there, or none.
unsafe fn list<'a, T>(first: *const T, count: usize, what: &str) -> Result<&'a [T], Status> {
    if count == 0 {
        return Ok(&[]);
    }
    if first.is_null() {
        return Err(null(what));
    }
    if count > LIST_MAX {
        return Err(fail(
            Status::Argument,
            &format_args!("{what}: found {count}, expected at most {LIST_MAX}"),
        ));
    }
    // SAFETY: not NULL, and this many exist there and do not change, as the caller guarantees.
    Ok(unsafe { std::slice::from_raw_parts(first, count) })
}

/// # Safety
/// This many exist there, with pointers as documented for [`NodeReads`], or none.
unsafe fn all_reads(first: *const NodeReads, count: usize) -> Result<Vec<Reads>, Status> {
    // SAFETY: guaranteed by the caller.
    let reads = unsafe { list(first, count, "reads") }?;
    // SAFETY: as above, of each of them.
    reads.iter().map(|reads| unsafe { reads_of(reads) }).collect()
}

/// # Safety
/// Its pointers are as documented for [`NodeReads`], or NULL.
unsafe fn reads_of(reads: &NodeReads) -> Result<Reads, Status> {
    // SAFETY: guaranteed by the caller.
    let (streams, keys) =
        unsafe { (text(reads.streams, "streams")?, list(reads.keys, reads.key_count, "keys")?) };
    let keys = match reads.which {
        LOWLAT_KEYS_ALL => Keys::All,
        LOWLAT_KEYS_ONLY => Keys::Only(keys.to_vec()),
        LOWLAT_KEYS_OWN => Keys::Own,
        found => {
            let text = format_args!(
                "which {found}: expected a LOWLAT_KEYS_ of {LOWLAT_KEYS_ALL} to {LOWLAT_KEYS_OWN}"
            );
            return Err(fail(Status::Argument, &text));
        }
    };
    let from = start(reads.start, reads.start_after)?;
    Ok(Reads::new(streams, keys).with(overrun(reads.overrun, reads.behind_max)?).starting(from))
}

fn start(start: u32, after: u64) -> Result<ReadsFrom, Status> {
    match start {
        LOWLAT_START_HEAD => Ok(ReadsFrom::Head),
        LOWLAT_START_OLDEST => Ok(ReadsFrom::Oldest),
        LOWLAT_START_AFTER => Ok(ReadsFrom::After(after)),
        found => {
            let text = format_args!(
                "start {found}: expected a LOWLAT_START_ of {LOWLAT_START_HEAD} to {LOWLAT_START_AFTER}"
            );
            Err(fail(Status::Argument, &text))
        }
    }
}

fn overrun(overrun: u32, behind_max: u64) -> Result<Overrun, Status> {
    match overrun {
        LOWLAT_OVERRUN_GAP => Ok(Overrun::Gap),
        LOWLAT_OVERRUN_CONFLATE => Ok(Overrun::Conflate),
        LOWLAT_OVERRUN_CREDIT => Ok(Overrun::Credit),
        LOWLAT_OVERRUN_EVICT => Ok(Overrun::Evict { behind_max }),
        found => {
            let text = format_args!(
                "overrun {found}: expected a LOWLAT_OVERRUN_ of {LOWLAT_OVERRUN_GAP} to {LOWLAT_OVERRUN_EVICT}"
            );
            Err(fail(Status::Argument, &text))
        }
    }
}

fn wait(wait: u32) -> Result<Wait, Status> {
    match wait {
        LOWLAT_WAIT_PARKED => Ok(Wait::Parked),
        LOWLAT_WAIT_FAST => Ok(Wait::Fast),
        LOWLAT_WAIT_ADAPTIVE => Ok(Wait::Adaptive),
        found => {
            let text = format_args!(
                "wait {found}: expected a LOWLAT_WAIT_ of {LOWLAT_WAIT_PARKED} to {LOWLAT_WAIT_ADAPTIVE}"
            );
            Err(fail(Status::Argument, &text))
        }
    }
}

fn capacity(bytes: u64) -> u64 {
    if bytes == 0 { CAPACITY_BYTES } else { bytes }
}
