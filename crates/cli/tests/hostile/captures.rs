//! Captured hosts and plans from other people: their size, their paths, and the values they pass on.
