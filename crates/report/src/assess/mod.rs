//! One whole run: the summary, the page and the next steps.

pub mod html;
mod measurements;
pub mod next_steps;
pub mod summary;
