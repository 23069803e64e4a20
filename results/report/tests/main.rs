//! Reports as text and as pages, of whole documents.

mod bios_change_text;
mod bios_text;
mod browser;
mod common;
mod cores_text;
mod jitter_text;
mod page;
mod removal;
mod side_by_side;
mod terminal;
