//! lowlat: report.
