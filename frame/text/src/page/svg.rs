//! Shared parts of pictures: numbers, logarithmic scales, boxes of text.

/// Formats a coordinate with at most one decimal.
pub fn px(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or_else(|| text.clone(), str::to_owned)
}

/// Logarithmic scale from whole decades to pixels.
#[derive(Debug, Clone, Copy)]
pub struct LogScale {
    /// Power of ten at the low end.
    pub low: i32,
    /// Power of ten at the high end.
    pub high: i32,
    /// Pixel of the low end.
    pub start: f64,
    /// Pixel of the high end.
    pub end: f64,
}

impl LogScale {
    /// Returns the pixel of a value, clamped to the scale.
    pub fn at(&self, value: f64) -> f64 {
        let span = f64::from((self.high - self.low).max(1));
        let part = ((value.max(f64::MIN_POSITIVE).log10() - f64::from(self.low)) / span).clamp(0.0, 1.0);
        self.start + part * (self.end - self.start)
    }

    /// Returns every decade with its pixel.
    pub fn decades(&self) -> impl Iterator<Item = (i32, f64)> + use<'_> {
        (self.low..=self.high).map(|power| (power, self.at(10f64.powi(power))))
    }
}

/// Returns the whole decade at or below a value.
#[allow(clippy::cast_possible_truncation, reason = "the logarithm of a u64 is below 20")]
pub fn decade_below(value: u64) -> i32 {
    (value.max(1) as f64).log10().floor() as i32
}

/// Returns the whole decade at or above a value.
#[allow(clippy::cast_possible_truncation, reason = "the logarithm of a u64 is below 20")]
pub fn decade_above(value: u64) -> i32 {
    (value.max(1) as f64).log10().ceil() as i32
}

/// Returns the width of text in the page's sans font at 11 px, large enough for the fonts of common systems.
pub fn text_width(text: &str) -> f64 {
    text.chars().count() as f64 * 6.9
}

/// Cuts a text to a number of characters.
pub fn cut(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        Some(_) => {
            let kept: String = text.chars().take(chars_max.saturating_sub(1)).collect();
            format!("{}…", kept.trim_end())
        }
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scale_maps_its_ends_and_clamps_values_outside() {
        let scale = LogScale { low: 2, high: 5, start: 10.0, end: 310.0 };
        assert_eq!((px(scale.at(100.0)), px(scale.at(1e5))), ("10".into(), "310".into()));
        assert_eq!((px(scale.at(0.0)), px(scale.at(1e9))), ("10".into(), "310".into()));
        assert_eq!(scale.decades().count(), 4);
        assert_eq!(
            (decade_below(0), decade_below(999), decade_above(1_000), decade_above(1_001)),
            (0, 2, 3, 4)
        );
        assert_eq!((cut("abcdef", 4), cut("abcd", 4)), ("abc…".into(), "abcd".into()));
    }
}
