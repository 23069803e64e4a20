//! Limits of orders.

use crate::records::Price;

/// Limits of orders; those that are `None` do not apply.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Limits {
    /// Quantity of one order.
    pub quantity_max: Option<u32>,
    /// Price, in ten-thousandths of the currency.
    pub price_max_ten_thousandths: Option<Price>,
    /// Largest deviation of a price from the middle of the last quote, in thousandths. Applies once td has seen
    /// a quote of the instrument.
    pub price_deviation_max_per_mille: Option<u32>,
    /// Position of a strategy in an instrument, bought or sold.
    pub position_max: Option<u32>,
    /// Orders of a strategy that are accepted and not filled.
    pub open_orders_max: Option<u32>,
}
