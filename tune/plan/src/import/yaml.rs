//! YAML as a tree of values.

use serde_json::Value;

/// Parses YAML whose top level is a mapping.
pub fn parse(text: &str) -> Result<Value, String> {
    match serde_saphyr::from_str(text) {
        Ok(mapping @ Value::Object(_)) => Ok(mapping),
        Ok(Value::Null) => Err("it is empty".to_owned()),
        Ok(_) => Err("it is not a mapping of names to values".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// The entries of a mapping; none of anything else.
pub fn entries(value: &Value) -> impl Iterator<Item = (&str, &Value)> {
    value.as_object().into_iter().flatten().map(|(key, value)| (key.as_str(), value))
}

/// A scalar as text; none for lists, mappings and null.
pub fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.trim().to_owned()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(is_set) => Some(is_set.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// CPUs as a list in the kernel's form: "2-3", 4 or [2, 3].
pub fn cpus(value: &Value) -> Option<String> {
    match value {
        Value::Array(cpus) => Some(cpus.iter().filter_map(scalar).collect::<Vec<_>>().join(",")),
        other => scalar(other),
    }
}

/// The members of a list, or the values of a mapping of named members.
pub fn members(value: &Value) -> Vec<(String, &Value)> {
    match value {
        Value::Array(members) => {
            members.iter().enumerate().map(|(at, one)| (format!("[{at}]"), one)).collect()
        }
        Value::Object(members) => members.iter().map(|(name, one)| (format!(".{name}"), one)).collect(),
        _ => Vec::new(),
    }
}

/// A member under either spelling: rt-conf has used dashes and underscores.
pub fn either<'a>(value: &'a Value, name: &str) -> Option<&'a Value> {
    value.get(name).or_else(|| value.get(name.replace('_', "-")))
}
