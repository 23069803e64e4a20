//! Converts ticks to nanoseconds so that parts still sum up.

/// Divides `total_ns` in proportion to `parts`: each is rounded down, and the largest (the first of equal
/// ones) gets the remainder. The shares sum to `total_ns` unless all parts are 0.
pub(super) fn share_out(total_ns: u64, parts: &[u64]) -> Vec<u64> {
    let whole: u128 = parts.iter().map(|ticks| u128::from(*ticks)).sum();
    if whole == 0 {
        return vec![0; parts.len()];
    }
    // A share is at most the total, because a part is at most the whole.
    let share = |ticks: &u64| {
        let ns = u128::from(total_ns) * u128::from(*ticks) / whole;
        u64::try_from(ns).unwrap_or(u64::MAX)
    };
    let mut shares: Vec<u64> = parts.iter().map(share).collect();
    let rest = total_ns.saturating_sub(shares.iter().sum());
    let largest = parts.iter().enumerate().max_by_key(|(place, ticks)| (**ticks, std::cmp::Reverse(*place)));
    if let Some(share) = largest.and_then(|(place, _)| shares.get_mut(place)) {
        *share += rest;
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_largest_has_the_rest() {
        assert_eq!(share_out(10, &[1, 1, 1]), [4, 3, 3]);
        assert_eq!(share_out(100, &[1, 5, 1]), [14, 72, 14]);
        assert_eq!(share_out(100, &[0, 0]), [0, 0]);
        assert!(share_out(100, &[]).is_empty());
    }

    proptest! {
        #[test]
        fn shares_add_up(total in any::<u64>(), parts in proptest::collection::vec(any::<u64>(), 1..20)) {
            prop_assume!(parts.iter().any(|ticks| *ticks > 0));
            let sum: u128 = share_out(total, &parts).into_iter().map(u128::from).sum();
            prop_assert_eq!(sum, u128::from(total));
        }
    }
}
