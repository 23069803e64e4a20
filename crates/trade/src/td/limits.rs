//! Limits of orders.

use crate::{
    records::Price,
    scenario::input::{Fault, InputError, parse_json, read_json},
};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Limits, as in a JSON file. Omitted fields have no limit.
///
/// ```json
/// { "quantity_max": 1000, "position_max": 5000, "open_orders_max": 100 }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
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

impl Limits {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self, InputError> {
        read_json(path, Self::check)
    }

    /// Reads limits from text; `path` names it in errors.
    pub fn parse(path: &Path, text: &str) -> Result<Self, InputError> {
        parse_json(path, text, Self::check)
    }

    fn check(&self) -> Result<(), Fault> {
        let wrong = |field, found: String| {
            Err(Fault { field, found, expected: "1 or more; omit it for no limit".to_owned() })
        };
        match self {
            Self { quantity_max: Some(0), .. } => wrong("quantity_max", "0".to_owned()),
            Self { price_max_ten_thousandths: Some(price), .. } if *price < 1 => {
                wrong("price_max_ten_thousandths", price.to_string())
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_and_errors_give_the_place() {
        let parse = |text| Limits::parse(Path::new("limits.json"), text);
        assert_eq!(parse("{}").unwrap(), Limits::default());
        let limits = parse(r#"{"quantity_max": 5, "position_max": 0}"#).unwrap();
        assert_eq!((limits.quantity_max, limits.position_max), (Some(5), Some(0)));
        let error = parse("{\n \"quantity_max\": 0}").unwrap_err().to_string();
        assert!(error.contains("limits.json, line 2, column 2: found quantity_max 0"), "{error}");
        let error = parse(r#"{"quantity": 5}"#).unwrap_err().to_string();
        assert!(error.contains("unknown field `quantity`"), "{error}");
        let error = parse(r#"{"quantity_max": -1}"#).unwrap_err().to_string();
        assert!(error.contains("expected u32"), "{error}");
    }
}
