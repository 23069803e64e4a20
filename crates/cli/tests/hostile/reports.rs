//! Claims in reports that the measurement does not carry.
