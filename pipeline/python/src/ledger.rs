//! td's ledger: the open orders of a strategy.

use crate::arguments;
use lowlat_node::{ledger, records::Side};
use pyo3::prelude::*;

/// An open order of the strategy: accepted, and neither filled nor cancelled. It is equal to another with the same
/// values, and can be copied and pickled.
#[pyclass(frozen, eq, hash, module = "lowlat")]
#[derive(PartialEq, Eq, Hash)]
pub struct OpenOrder {
    /// The strategy's number of it.
    #[pyo3(get)]
    number: u64,
    /// Its instrument.
    #[pyo3(get)]
    instrument: u32,
    /// "buy" or "sell".
    #[pyo3(get)]
    side: &'static str,
    /// Limit price in 1/PRICE_SCALE.
    #[pyo3(get)]
    price: i64,
    /// The whole quantity, with what is filled.
    #[pyo3(get)]
    quantity: u32,
    /// Filled quantity.
    #[pyo3(get)]
    filled: u32,
}

impl From<ledger::OpenOrder> for OpenOrder {
    fn from(order: ledger::OpenOrder) -> Self {
        let ledger::OpenOrder { number, instrument, side, price, quantity, filled, .. } = order;
        Self { number, instrument, side: side.word(), price, quantity, filled }
    }
}

#[pymethods]
impl OpenOrder {
    #[new]
    fn new(
        number: u64,
        instrument: u32,
        side: &str,
        price: i64,
        quantity: u32,
        filled: u32,
    ) -> PyResult<Self> {
        let side = arguments::side(side).map(Side::word)?;
        Ok(Self { number, instrument, side, price, quantity, filled })
    }
    fn __getnewargs__(&self) -> (u64, u32, &str, i64, u32, u32) {
        (self.number, self.instrument, self.side, self.price, self.quantity, self.filled)
    }
    fn __repr__(&self) -> String {
        let Self { number, instrument, side, price, quantity, filled } = self;
        format!(
            "OpenOrder(number={number}, instrument={instrument}, side='{side}', price={price}, quantity={quantity}, filled={filled})"
        )
    }
}
