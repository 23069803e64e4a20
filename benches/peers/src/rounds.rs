//! Ratios of two programs that run in turn, round by round.

/// The quartiles of a ratio over rounds.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Ratio {
    /// Lower quartile of the ratios.
    pub low: f64,
    pub median: f64,
    /// Upper quartile of the ratios.
    pub high: f64,
    /// Number of rounds with a ratio.
    pub rounds: usize,
}

impl Ratio {
    /// The ratio of ours to theirs, round by round; `None` when no round has both above zero.
    pub fn of(rounds: &[(f64, f64)]) -> Option<Self> {
        let mut ratios: Vec<f64> = rounds
            .iter()
            .filter(|(ours, theirs)| *ours > 0.0 && *theirs > 0.0)
            .map(|(ours, theirs)| ours / theirs)
            .collect();
        ratios.sort_by(f64::total_cmp);
        let at = |share: usize| ratios.get((ratios.len().saturating_sub(1) * share + 2) / 4).copied();
        Some(Self { low: at(1)?, median: at(2)?, high: at(3)?, rounds: ratios.len() })
    }

    /// Text of the ratio, which says whether it shows a difference.
    pub fn text(&self) -> String {
        let shown = if self.rounds < 5 {
            ", too few rounds to tell"
        } else if self.low <= 1.0 && self.high >= 1.0 {
            ", no difference shown"
        } else {
            ""
        };
        format!(
            "{:.3} (quartiles {:.3} to {:.3} over {} rounds{shown})",
            self.median, self.low, self.high, self.rounds
        )
    }
}

/// Prints the ratio of ours to theirs.
pub fn print_ratio(what: &str, rounds: &[(f64, f64)]) {
    println!("{what}: {}", Ratio::of(rounds).map_or("no round gave both".into(), |ratio| ratio.text()));
}

/// Runs both, in an order that changes from round to round.
pub fn in_turn<T>(
    round: u32,
    mut ours: impl FnMut() -> anyhow::Result<T>,
    mut theirs: impl FnMut() -> anyhow::Result<T>,
) -> anyhow::Result<(T, T)> {
    if round.is_multiple_of(2) {
        let first = ours()?;
        Ok((first, theirs()?))
    } else {
        let first = theirs()?;
        Ok((ours()?, first))
    }
}

/// Runs both in each round, and tells the round's number, from 1, with what they gave. Returns all of it.
pub fn in_rounds<T>(
    rounds: u32,
    mut ours: impl FnMut() -> anyhow::Result<T>,
    mut theirs: impl FnMut() -> anyhow::Result<T>,
    tell: impl Fn(u32, &T, &T),
) -> anyhow::Result<Vec<(T, T)>> {
    let one = |round| {
        let (our, their) = in_turn(round, &mut ours, &mut theirs)?;
        tell(round + 1, &our, &their);
        Ok((our, their))
    };
    (0..rounds).map(one).collect()
}

/// Prints the ratio of a figure of ours to theirs.
pub fn print_ratio_of<T>(what: &str, rounds: &[(T, T)], figure: impl Fn(&T) -> f64) {
    let figures: Vec<(f64, f64)> = rounds.iter().map(|(our, their)| (figure(our), figure(their))).collect();
    print_ratio(what, &figures);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_the_rounds_counts() {
        let rounds = [(1.0, 2.0), (2.0, 2.0), (3.0, 2.0), (100.0, 2.0), (1.5, 2.0), (0.0, 2.0)];
        let ratio = Ratio::of(&rounds).unwrap();
        assert_eq!((ratio.low, ratio.median, ratio.high, ratio.rounds), (0.75, 1.0, 1.5, 5));
        assert!(ratio.text().contains("no difference shown"));
        assert_eq!(Ratio::of(&[(0.0, 1.0)]), None);
        assert!(Ratio::of(&rounds[..2]).unwrap().text().contains("too few rounds"));
    }
}
