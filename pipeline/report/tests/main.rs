//! Texts and pages of whole documents.

mod pipeline;
