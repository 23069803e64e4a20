//! Hosts of each boot loader, as trees.
