//! Common parts of terminal texts and pages: units, wrapping, columns, the frame and style of a page. Pure: no I/O, no
//! clock.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod article;
pub mod columns;
pub mod page;
pub mod text;
pub mod units;
pub mod view;
