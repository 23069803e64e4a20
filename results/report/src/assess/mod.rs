//! One whole run: one screen, the summary and the page.

pub mod brief;
pub mod html;
pub mod measurements;
pub mod summary;
