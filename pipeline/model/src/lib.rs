//! Runs of the trading pipeline: what was asked, what was measured, and the documents that hold both; the matrix of
//! runs, whether a host has room for them, and how many strategies it carries.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod balance;
pub mod check;
mod figures;
pub mod matrix;
mod record;
pub mod reference;
mod role;
pub mod size;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod wire;

pub use balance::{Balance, Delivered, SentOrders, findings};
pub use figures::{StageFigures, Stages};
pub use matrix::{MatrixDocument, MatrixRow, RowFigures, StageRange};
pub use record::*;
pub use role::{Pins, ProcessRole};
pub use wire::{ExchangeDocument, FeedFigures, GatewayFigures, SequenceRange, WireRecord, WireStages};
