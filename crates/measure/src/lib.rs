//! lowlat: measure.
