//! Undo logs, saved plans and roots that an attacker or an accident has changed.
