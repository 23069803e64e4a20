//! Views of the trading pipeline, of made-up documents: no figure here was measured.

mod documents;
mod page;
mod text;
