//! Comparisons and documents as a whole.

mod twin;
