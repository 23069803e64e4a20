//! Levels of latency: the groups that a list of times falls into.

/// Width of the smoothing, as a ratio of two times.
const WIDTH: f64 = 1.06;
/// Least ratio of two neighbouring levels.
const RATIO_MIN: f64 = 1.25;
/// Deepest valley between two levels, as a share of the lower peak.
const VALLEY_SHARE_MAX: f64 = 0.5;
/// Points of the density between a time and its double.
const POINTS_PER_DOUBLING: f64 = 60.0;

/// Upper bounds of all levels but the last, ascending: times up to the first bound are of level 0.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Bounds(Vec<f64>);

impl Bounds {
    /// Finds the levels of some times by the valleys of their density on a logarithmic scale.
    pub fn of(times_ns: &[f64]) -> Self {
        let mut logs: Vec<f64> = times_ns.iter().filter(|ns| **ns > 0.0).map(|ns| ns.ln()).collect();
        logs.sort_by(f64::total_cmp);
        let (Some(first), Some(last)) = (logs.first(), logs.last()) else { return Self::default() };
        let width = WIDTH.ln();
        let step = std::f64::consts::LN_2 / POINTS_PER_DOUBLING;
        let (start, end) = (first - 4.0 * width, last + 4.0 * width);
        let density = |point: f64| {
            let from = logs.partition_point(|log| *log < point - 4.0 * width);
            let near = logs.iter().skip(from).take_while(|log| **log <= point + 4.0 * width);
            near.map(|log| (-0.5 * ((log - point) / width).powi(2)).exp()).sum::<f64>()
        };
        let points =
            std::iter::successors(Some(start), |point| Some(point + step).filter(|point| *point <= end));
        let curve: Vec<(f64, f64)> = points.map(|point| (point, density(point))).collect();
        Self(valleys(&curve).into_iter().map(f64::exp).collect())
    }

    pub fn level(&self, ns: f64) -> usize {
        self.0.partition_point(|bound| *bound < ns)
    }

    pub fn count(&self) -> usize {
        self.0.len() + 1
    }
}

/// Lowest points between peaks that count as separate.
fn valleys(curve: &[(f64, f64)]) -> Vec<f64> {
    // The peak of the level so far, and the lowest point since.
    let mut found = Vec::new();
    let (mut peak, mut valley): ((f64, f64), Option<(f64, f64)>) = ((0.0, 0.0), None);
    for (place, (at, height)) in curve.iter().copied().enumerate() {
        let before = place.checked_sub(1).and_then(|place| curve.get(place)).map_or(0.0, |point| point.1);
        let after = curve.get(place + 1).map_or(0.0, |point| point.1);
        let is_peak = height > before && height >= after;
        if let Some(low) = valley.filter(|_| is_peak) {
            let is_deep = low.1 <= VALLEY_SHARE_MAX * height.min(peak.1);
            if is_deep && at - peak.0 >= RATIO_MIN.ln() {
                found.push(low.0);
                (peak, valley) = ((at, height), None);
                continue;
            }
        }
        if is_peak && height > peak.1 {
            (peak, valley) = ((at, height), None);
        } else if peak.1 > 0.0 && valley.is_none_or(|low| height < low.1) {
            valley = Some((at, height));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn around(centre: f64, count: usize) -> impl Iterator<Item = f64> {
        (0..count).map(move |n| centre * (0.93 + 0.14 * (n as f64 + 0.5) / count as f64))
    }

    #[test]
    fn levels_of_very_different_sizes_are_found() {
        let times: Vec<f64> =
            around(8.0, 3).chain(around(25.0, 9)).chain(around(50.0, 48)).chain(around(110.0, 900)).collect();
        let bounds = Bounds::of(&times);
        assert_eq!(bounds.count(), 4, "{bounds:?}");
        assert_eq!([7.0, 8.5, 24.0, 51.0, 100.0, 500.0].map(|ns| bounds.level(ns)), [0, 0, 1, 2, 3, 3]);
    }

    #[test]
    fn a_mesh_of_many_hops_is_one_level() {
        let times: Vec<f64> = (0..200).map(|n| 40.0 + f64::from(n) * 0.15).collect();
        assert_eq!(Bounds::of(&times).count(), 1);
    }

    #[test]
    fn equal_times_and_none_are_one_level() {
        assert_eq!(Bounds::of(&[60.0; 10]).count(), 1);
        assert_eq!(Bounds::of(&[]).count(), 1);
        assert_eq!(Bounds::of(&[60.0]).level(1_000.0), 0);
    }
}
