//! The system's allocator, counting the requests of each thread: the test harness's threads are excluded.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

/// Allocator requests of a piece of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AllocatorRequests {
    /// Number of allocations; a resized block counts as one.
    pub allocations: u64,
    pub releases: u64,
    /// Peak bytes in addition to those before.
    pub bytes_max: i64,
}

/// Counts the allocations and frees of the work in this thread. Must not be nested.
pub fn asked<T>(work: impl FnOnce() -> T) -> (AllocatorRequests, T) {
    let (allocations, releases, bytes) = (ALLOCATIONS.get(), RELEASES.get(), BYTES.get());
    BYTES_MAX.set(bytes);
    let result = work();
    let asked = AllocatorRequests {
        allocations: ALLOCATIONS.get() - allocations,
        releases: RELEASES.get() - releases,
        bytes_max: BYTES_MAX.get() - bytes,
    };
    (asked, result)
}

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    static RELEASES: Cell<u64> = const { Cell::new(0) };
    static BYTES: Cell<i64> = const { Cell::new(0) };
    static BYTES_MAX: Cell<i64> = const { Cell::new(0) };
}

fn count(counter: &'static std::thread::LocalKey<Cell<u64>>, grown: usize, freed: usize) {
    counter.set(counter.get() + 1);
    let change = i64::try_from(grown).unwrap_or(i64::MAX) - i64::try_from(freed).unwrap_or(i64::MAX);
    BYTES.set(BYTES.get() + change);
    BYTES_MAX.set(BYTES_MAX.get().max(BYTES.get()));
}

struct Counting;

// SAFETY: each call is passed to the system's allocator unchanged; counting accesses only thread-local cells,
// which are initialised at compile time, need no destructor and so allocate nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(&ALLOCATIONS, layout.size(), 0);
        // SAFETY: the caller's guarantees about the layout are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(&RELEASES, 0, layout.size());
        // SAFETY: the pointer came from `System` by the calls here, with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        count(&ALLOCATIONS, bytes, layout.size());
        // SAFETY: the pointer came from `System` by the calls here, with this layout; the size is the caller's.
        unsafe { System.realloc(pointer, layout, bytes) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Part of every test program that counts: without it a count of zero would be meaningless.
#[test]
fn allocator_requests_are_counted() {
    let (found, ()) = asked(|| {
        let mut bytes = std::hint::black_box(Vec::<u8>::with_capacity(1_000));
        bytes.reserve_exact(3_000);
        drop(std::hint::black_box(bytes));
        drop(std::hint::black_box(Box::new(5_u64)));
    });
    assert_eq!(found, AllocatorRequests { allocations: 3, releases: 2, bytes_max: 3_000 });
}
