//! Files that lowlat writes for its user: where it writes them, through what, and what happens when it cannot.
