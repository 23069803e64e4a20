//! Attributes whose values no file may contain.

use serde_json::Value;
use std::borrow::Cow;

/// True for attributes whose values are passwords, keys, hashes of them and similar, which no file may contain.
pub(super) fn is_secret(attribute: &str) -> bool {
    const PARTS: [&str; 13] = [
        "password",
        "passwd",
        "pwd",
        "passphrase",
        "passcode",
        "secret",
        "sha256",
        "salt",
        "privatekey",
        "credential",
        "community",
        "ownerauth",
        "token",
    ];
    let attribute = attribute.to_ascii_lowercase();
    let is_key = attribute.ends_with("key") && !attribute.ends_with("hotkey");
    is_key
        || ["pw", "hash"].iter().any(|end| attribute.ends_with(end))
        || PARTS.iter().any(|part| attribute.contains(part))
}

/// A saved resource without the values of attributes that are secret by name; unchanged if it has none.
pub fn without_secrets(json: &[u8]) -> Cow<'_, [u8]> {
    let Ok(mut resource) = serde_json::from_slice::<Value>(json) else { return Cow::Borrowed(json) };
    let attributes = resource.get_mut("Attributes").and_then(Value::as_object_mut).into_iter().flatten();
    let secrets = attributes.filter(|(name, value)| is_secret(name) && !value.is_null());
    let count = secrets.map(|(_, value)| *value = Value::Null).count();
    if count == 0 { Cow::Borrowed(json) } else { Cow::Owned(resource.to_string().into_bytes()) }
}
