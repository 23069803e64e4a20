//! Selects streams by name.

use super::{OpenError, Recording};

/// Returns true if a pattern matches the name of a stream: the name itself, or a prefix and a star (`orders.*`).
pub fn fits(pattern: &str, name: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == name, |begin| name.starts_with(begin))
}

impl Recording {
    /// The numbers of the streams that match any of the patterns ([`fits`]), lowest first. A pattern without a
    /// match is [`OpenError::NoStream`], which lists the existing streams.
    pub fn choose(&self, patterns: &[impl AsRef<str>]) -> Result<Vec<u32>, OpenError> {
        let names = || self.streams().iter().map(|stream| stream.name.as_str());
        for pattern in patterns.iter().map(AsRef::as_ref) {
            if !names().any(|name| fits(pattern, name)) {
                self.stream(pattern)?;
            }
        }
        let is_chosen = |name| patterns.iter().any(|pattern| fits(pattern.as_ref(), name));
        Ok((0..).zip(names()).filter(|(_, name)| is_chosen(name)).map(|(number, _)| number).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Maker, options};

    #[test]
    fn a_star_matches_any_suffix() {
        assert!(fits("orders.*", "orders.a") && fits("*", "md") && fits("md", "md"));
        assert!(!fits("orders.*", "md") && !fits("md", "md2"));
    }

    #[test]
    fn streams_are_selected_once_in_order_and_a_pattern_without_a_match_is_an_error() {
        let folder = tempfile::TempDir::new().unwrap();
        Maker::new(folder.path(), options(), &["md", "orders.a", "orders.b"]).files.finish().unwrap();
        let recording = Recording::open(folder.path()).unwrap();
        let chosen = |patterns: &[&str]| recording.choose(patterns);
        assert_eq!(chosen(&["orders.*", "orders.b", "md"]).unwrap(), [0, 1, 2]);
        assert_eq!(chosen(&["orders.b"]).unwrap(), [2]);
        assert_eq!(chosen(&[]).unwrap(), [0; 0]);
        let told = chosen(&["md", "quotes.*"]).unwrap_err().to_string();
        assert_eq!(told, "no stream \"quotes.*\" in the recording; its streams: md, orders.a, orders.b");
    }
}
