//! Loads a library, counts in it from many threads, unloads it and keeps the threads running: `host LIBRARY`.

use std::{ffi::CString, sync::Barrier, thread};

const THREADS: i64 = 8;
const ADDITIONS: i64 = 1_000;

fn main() {
    let path = std::env::args().nth(1).unwrap();
    let library = CString::new(path.as_str()).unwrap();
    for _ in 0..3 {
        // SAFETY: the library's initialisers do nothing unusual.
        let handle = unsafe { libc::dlopen(library.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        assert!(!handle.is_null(), "{path} does not load");
        // SAFETY: the library exports a function of this name and type.
        let bump: extern "C" fn(i64) -> i64 =
            unsafe { std::mem::transmute(libc::dlsym(handle, c"bump".as_ptr())) };
        // SAFETY: as above.
        let is_restartable: extern "C" fn() -> i32 =
            unsafe { std::mem::transmute(libc::dlsym(handle, c"is_restartable".as_ptr())) };
        let barrier = Barrier::new(usize::try_from(THREADS).unwrap() + 1);
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    bump(ADDITIONS);
                    barrier.wait();
                    barrier.wait();
                    // At each switch the kernel reads what the thread's area points to.
                    for _ in 0..2_000 {
                        thread::yield_now();
                    }
                });
            }
            barrier.wait();
            // A library that stays in memory goes on counting.
            assert_eq!(bump(ADDITIONS) % (2 * ADDITIONS * (THREADS + 1)), 0);
            println!("restartable: {}", is_restartable() == 1);
            // SAFETY: nobody calls into the library any more.
            assert_eq!(unsafe { libc::dlclose(handle) }, 0);
            let is_mapped = std::fs::read_to_string("/proc/self/maps").unwrap().contains(&path);
            println!("mapped: {is_mapped}");
            barrier.wait();
            for _ in 0..2_000 {
                thread::yield_now();
            }
        });
    }
}
