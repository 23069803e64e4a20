//! Interruptions of CPUs: how long, how often, and what caused them.

pub mod causes;
pub mod comparison;
pub mod figures;
pub mod html;
pub mod terminal;
pub mod view;
