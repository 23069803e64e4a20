//! Interruptions of CPUs: their length, rate and causes.

pub mod causes;
pub mod comparison;
pub mod figures;
pub mod html;
pub mod reference;
pub mod terminal;
pub mod view;
