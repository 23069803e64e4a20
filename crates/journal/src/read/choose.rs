//! Streams that are asked for by their names.

use super::{OpenError, Recording};

/// Whether a pattern means a stream of this name: it is the name, or how it begins and a star (`orders.*`).
pub fn fits(pattern: &str, name: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == name, |begin| name.starts_with(begin))
}

impl Recording {
    /// The numbers of the streams that any of the patterns means ([`fits`]), lowest first. A pattern that means none is
    /// [`OpenError::NoStream`], which names those that there are.
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
    fn a_star_stands_for_the_rest() {
        assert!(fits("orders.*", "orders.a") && fits("*", "md") && fits("md", "md"));
        assert!(!fits("orders.*", "md") && !fits("md", "md2"));
    }

    #[test]
    fn streams_are_chosen_once_in_their_order_and_what_means_none_is_told() {
        let folder = tempfile::TempDir::new().unwrap();
        Maker::new(folder.path(), options(), &["md", "orders.a", "orders.b"]).files.finish().unwrap();
        let recording = Recording::open(folder.path()).unwrap();
        let chosen = |patterns: &[&str]| recording.choose(patterns);
        assert_eq!(chosen(&["orders.*", "orders.b", "md"]).unwrap(), [0, 1, 2]);
        assert_eq!(chosen(&["orders.b"]).unwrap(), [2]);
        assert_eq!(chosen(&[]).unwrap(), [0; 0]);
        let told = chosen(&["md", "quotes.*"]).unwrap_err().to_string();
        assert_eq!(told, "no stream \"quotes.*\" in the recording; it has md, orders.a, orders.b");
    }
}
