//! Compares two spellings of a BIOS value by meaning.

use serde_json::Value;

const ON: [&str; 5] = ["enabled", "enable", "on", "true", "yes"];
const OFF: [&str; 5] = ["disabled", "disable", "off", "false", "no"];

/// A value for display; null is "nothing".
pub fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "nothing".into(),
        other => other.to_string(),
    }
}

/// True if two texts mean the same: equal numbers (`16` = `0x10`), two words for on or for off (`Disabled` = `Off` =
/// `false`), otherwise equal letters and digits (`NoCStates` = `No C-states`).
pub fn same_value(a: &str, b: &str) -> bool {
    let (a, b) = (a.trim(), b.trim());
    if let (Some(a), Some(b)) = (number(a), number(b)) {
        return a == b;
    }
    let (folded_a, folded_b) = (folded(a), folded(b));
    let both = |words: &[&str]| words.contains(&folded_a.as_str()) && words.contains(&folded_b.as_str());
    if folded_a.is_empty() || folded_b.is_empty() {
        return a == b;
    }
    folded_a == folded_b || both(&ON) || both(&OFF)
}

/// Parses a word for on or off.
pub(super) fn switch(text: &str) -> Option<bool> {
    let text = folded(text);
    if ON.contains(&text.as_str()) { Some(true) } else { OFF.contains(&text.as_str()).then_some(false) }
}

pub(super) fn number(text: &str) -> Option<i128> {
    match text.strip_prefix("0x") {
        Some(digits) => i128::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Letters and digits in lower case.
pub(super) fn folded(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meanings_are_compared() {
        for (a, b) in [
            ("Disabled", "Off"),
            ("Disabled", "false"),
            ("Enable", "Enabled"),
            ("true", "On"),
            ("NoCStates", "No C-states"),
            ("OneMemoryDomainPerSocket", "One memory domain per socket"),
            ("3700", "3700"),
            ("0x10", "16"),
            ("", ""),
        ] {
            assert!(same_value(a, b), "{a} {b}");
            assert!(same_value(b, a), "{b} {a}");
        }
        for (a, b) in [
            ("Disabled", "Auto"),
            ("Disabled", "0"),
            ("1", "-1"),
            ("Enabled", "Disabled"),
            ("", "Disabled"),
            ("-", ""),
            ("C1", "C6"),
            ("No", "No C-states"),
        ] {
            assert!(!same_value(a, b), "{a} {b}");
        }
    }
}
