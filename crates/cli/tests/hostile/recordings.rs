//! Recordings that were killed, cut short, emptied or mixed up.
