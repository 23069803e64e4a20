//! Common parts of terminal texts and pages: units, wrapping, columns, the frame and style of a page. Pure: no I/O, no
//! clock.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]
#![allow(
    clippy::format_push_string,
    clippy::format_collect,
    reason = "texts are short and built once; a formatted piece reads better than a write that cannot fail"
)]

pub mod columns;
pub mod page;
pub mod text;
pub mod units;
pub mod view;
