//! Memory that a process shares with those that it forks.

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use std::{ffi::c_void, io, ops::Deref, ptr, slice};

/// Values in memory that forked processes share. They are not dropped.
#[derive(Debug)]
pub struct Shared<T> {
    first: *mut T,
    count: usize,
}

// SAFETY: it owns its values like a box does; sharing it shares them, which `T: Sync` allows.
unsafe impl<T: Send> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Shared<T> {}

impl<T> Shared<T> {
    /// Maps memory for `count` values and fills it.
    ///
    /// # Errors
    /// The system's error.
    pub fn new(count: usize, make: impl Fn() -> T) -> io::Result<Self> {
        let bytes = size_of::<T>().checked_mul(count.max(1)).ok_or(io::ErrorKind::OutOfMemory)?;
        // SAFETY: a new mapping at an address that the kernel chooses replaces nothing.
        let first = unsafe {
            mmap_anonymous(
                ptr::null_mut(),
                bytes.max(1),
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
            )
        }?
        .cast::<T>();
        for place in 0..count {
            // SAFETY: the mapping has room for `count` values and is aligned to a page; nobody else knows it yet.
            unsafe { first.add(place).write(make()) };
        }
        Ok(Self { first, count })
    }
}

impl<T> Deref for Shared<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: `new` wrote `count` values at `first`, which stay mapped until the drop; they are only lent as shared,
        // here and in forked processes, so only types with interior mutability change.
        unsafe { slice::from_raw_parts(self.first, self.count) }
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        let bytes = (size_of::<T>() * self.count.max(1)).max(1);
        // SAFETY: exactly what `new` mapped; no reference outlives `self`. Failure would leave the memory mapped.
        let _ = unsafe { munmap(self.first.cast::<c_void>(), bytes) };
    }
}
