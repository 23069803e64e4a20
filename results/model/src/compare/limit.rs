//! A limit for how much worse the side after may be, for scripts.

use super::{
    Comparison, LengthVerdict,
    harm::{Harm, HarmVerdict, Quantity, QuantityHarm},
};
use lowlat_jitter::JitterRecord;
use serde::{Deserialize, Serialize};

/// The chance by which a quantity is within its margin.
const SURE: f64 = 0.95;
/// The percentile over time of [`Quantity::Wait`].
const WAIT_QUANTILE: f64 = 0.999;

/// Quantities with their margins: 0.05 for 5 %.
#[derive(Debug, Clone, PartialEq)]
pub struct Limit(Vec<(Quantity, f64)>);

impl std::str::FromStr for Limit {
    type Err = String;

    /// `5%` for every quantity, or `lost=5%,max=20%`.
    fn from_str(text: &str) -> Result<Self, String> {
        if !text.contains('=') {
            let margin = margin(text)?;
            return Ok(Self(Quantity::ALL.map(|quantity| (quantity, margin)).into()));
        }
        let mut found: Vec<(Quantity, f64)> = Vec::new();
        for part in text.split(',') {
            let (name, share) = part.split_once('=').unwrap_or((part, ""));
            let quantity =
                Quantity::ALL.into_iter().find(|of| of.name() == name.trim()).ok_or_else(|| {
                    let names = Quantity::ALL.map(Quantity::name).join(", ");
                    format!("\"{}\" is no quantity; name one of {names}", name.trim())
                })?;
            if found.iter().any(|(known, _)| *known == quantity) {
                return Err(format!("{} is named twice", quantity.name()));
            }
            found.push((quantity, margin(share)?));
        }
        Ok(Self(found))
    }
}

/// A percentage such as 5% or 0.5 %, as a share.
fn margin(text: &str) -> Result<f64, String> {
    let number =
        text.trim().strip_suffix('%').map(str::trim_end).and_then(|number| number.parse::<f64>().ok());
    number
        .filter(|percent| percent.is_finite() && *percent >= 0.0)
        .map(|percent| percent / 100.0)
        .ok_or_else(|| format!("\"{text}\" is not a percentage; write one such as 5%"))
}

/// Outcome of a limit for how much worse the side after may be.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct LimitOutcome {
    pub verdict: LimitVerdict,
    /// Each quantity of the limit.
    pub quantities: Vec<LimitedQuantity>,
}

/// One quantity of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LimitedQuantity {
    pub quantity: Quantity,
    /// Its margin: 0.05 for 5 %.
    pub margin: f64,
    pub verdict: LimitVerdict,
    /// Its figures; `None` if the documents do not support them.
    pub figures: Option<QuantityHarm>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitVerdict {
    /// Worse by more than the margin.
    Worse,
    /// Not worse by more than the margin.
    Held,
    /// Neither of these is shown.
    NotShown,
    /// It would be worse, and the load of the host differed too ([`HarmVerdict::SurroundingsDiffered`]).
    SurroundingsDiffered,
    /// A side is too short for a verdict.
    #[default]
    TooShort,
}

impl Comparison {
    /// Checks the compared records against a limit.
    pub fn limit(&self, before: &[&JitterRecord], after: &[&JitterRecord], limit: &Limit) -> LimitOutcome {
        let harm = Harm::of([before, after], &self.cpus, &limit.0);
        let is_short = harm.verdict == HarmVerdict::TooShort;
        let one = |(quantity, margin): &(Quantity, f64)| {
            let figures = match quantity {
                Quantity::Wait => self.wait(*margin),
                _ => harm.quantity(*quantity).copied(),
            };
            let is_within = |of: QuantityHarm| match (of.chances, of.difference) {
                (Some([towards_worse, _]), _) => towards_worse >= SURE,
                (None, Some([_, high])) => high <= margin * of.before,
                (None, None) => false,
            };
            let verdict = match figures {
                _ if is_short => LimitVerdict::TooShort,
                Some(of)
                    if of.verdict == HarmVerdict::Worse
                        && harm.verdict == HarmVerdict::SurroundingsDiffered =>
                {
                    LimitVerdict::SurroundingsDiffered
                }
                Some(of) if of.verdict == HarmVerdict::Worse => LimitVerdict::Worse,
                Some(of) if is_within(of) => LimitVerdict::Held,
                _ => LimitVerdict::NotShown,
            };
            LimitedQuantity { quantity: *quantity, margin: *margin, verdict, figures }
        };
        let quantities: Vec<LimitedQuantity> = limit.0.iter().map(one).collect();
        let has = |verdict| quantities.iter().any(|of| of.verdict == verdict);
        let order = [
            LimitVerdict::TooShort,
            LimitVerdict::SurroundingsDiffered,
            LimitVerdict::Worse,
            LimitVerdict::NotShown,
        ];
        let verdict = order.into_iter().find(|verdict| has(*verdict)).unwrap_or(LimitVerdict::Held);
        LimitOutcome { verdict, quantities }
    }

    /// The percentile over time, by its bootstrap interval.
    fn wait(&self, margin: f64) -> Option<QuantityHarm> {
        let pair = self.time_percentiles.iter().find(|pair| (pair.quantile - WAIT_QUANTILE).abs() < 1e-12)?;
        let of = pair.difference?;
        let is_worse = of.verdict == LengthVerdict::Longer && of.low_ns > margin * pair.before_ns as f64;
        Some(QuantityHarm {
            before: pair.before_ns as f64,
            after: pair.after_ns as f64,
            difference: Some([of.low_ns, of.high_ns]),
            verdict: if is_worse { HarmVerdict::Worse } else { HarmVerdict::NoDifferenceShown },
            ..QuantityHarm::new(Quantity::Wait, margin)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_name_quantities() {
        let of = |text: &str| text.parse::<Limit>().map(|limit| limit.0);
        assert_eq!(of("5%").unwrap().len(), 4);
        assert_eq!(of("lost=5%, max=0.5 %").unwrap(), [(Quantity::Lost, 0.05), (Quantity::Longest, 0.005)]);
        assert_eq!(of("count>10us=0%,p99.9=10%").unwrap(), [(Quantity::Long, 0.0), (Quantity::Wait, 0.1)]);
        for wrong in [
            "5",
            "-5%",
            "five%",
            "NaN%",
            "%",
            "",
            "lost",
            "lost=5",
            "mean=5%",
            "lost=5%,lost=6%",
            "=5%",
            "lost=5%,",
        ] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }
}
