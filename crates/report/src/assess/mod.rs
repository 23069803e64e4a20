//! One run as a whole: the summary, the page, and what to do next.

pub mod html;
mod measurements;
pub mod next_steps;
pub mod summary;
