//! Reports as text and as pages, of whole documents.

mod browser;
mod common;
mod cores_text;
mod jitter_text;
mod page;
mod removal;
mod side_by_side;
mod terminal;
