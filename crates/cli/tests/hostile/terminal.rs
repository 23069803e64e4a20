//! Escape sequences and bidirectional marks in names and contents never reach a terminal.
