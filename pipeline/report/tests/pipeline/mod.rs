//! Views of the trading pipeline, of invented documents: no figure here was measured.

mod documents;
mod page;
mod text;
