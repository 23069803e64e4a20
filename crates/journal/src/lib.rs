//! Streams of `lowlat-ipc` on disk. A recorder is one more subscriber; what it writes outlives the memory.
