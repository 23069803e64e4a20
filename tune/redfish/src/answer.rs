//! An answer of a service, and its messages.

use crate::{RedfishError, Secret, address::cut};
use lowlat_bios::unpacked;
use serde_json::Value;

/// Largest number of messages shown per answer, and characters of each.
const MESSAGES_MAX: usize = 8;
const MESSAGE_CHARS_MAX: usize = 300;

pub(crate) struct Answer {
    pub path: String,
    pub status: u16,
    pub etag: Option<String>,
    pub location: Option<String>,
    pub retry_after: Option<String>,
    /// Methods that the resource accepts.
    pub allow: Option<String>,
    pub token: Option<Secret>,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    pub fn json(&self) -> Result<Value, RedfishError> {
        // Some services store their registries with gzip and do not say so.
        let body = unpacked(&self.path, &self.body).map_err(|error| RedfishError::new(error.to_string()))?;
        let bytes = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&body);
        serde_json::from_slice(bytes).map_err(|error| {
            let begin = cut(&String::from_utf8_lossy(bytes.get(..80).unwrap_or(bytes)), 60);
            RedfishError::new(format!(
                "the answer of {} is not JSON ({error}); it starts with {begin:?}\nhint: check that this is a Redfish \
                 service",
                self.path
            ))
        })
    }

    /// Messages of the body; empty if it is not JSON.
    pub fn messages(&self) -> Vec<String> {
        self.json().map(|body| messages(&body)).unwrap_or_default()
    }

    /// The message that names an attribute among its arguments or properties; `None` if none does.
    pub fn message_on(&self, attribute: &str) -> Option<String> {
        let body = self.json().ok()?;
        let is_on = |message: &&Value| {
            let lists =
                ["MessageArgs", "RelatedProperties"].map(|list| message.get(list).and_then(Value::as_array));
            let mut texts = lists.into_iter().flatten().flatten().filter_map(Value::as_str);
            texts.any(|text| text.rsplit('/').next() == Some(attribute))
        };
        extended_info(&body).find(is_on).and_then(in_words)
    }

    /// True if a message has this id (its last part, without registry and version).
    pub fn has_message(&self, id: &str) -> bool {
        let Ok(body) = self.json() else { return false };
        extended_info(&body).any(|message| message_id(message).is_some_and(|found| found.ends_with(id)))
    }
}

/// The link at this JSON pointer: `{"@odata.id": "..."}`.
pub(crate) fn link<'a>(body: &'a Value, pointer: &str) -> Option<&'a str> {
    body.pointer(pointer)?.get("@odata.id")?.as_str()
}

/// All messages of a body as text: of errors, successes and tasks.
pub(crate) fn messages(body: &Value) -> Vec<String> {
    let mut said: Vec<String> = extended_info(body).filter_map(in_words).collect();
    let summary = body.pointer("/error/message").and_then(Value::as_str);
    if let (true, Some(summary)) = (said.iter().all(|words| !words.contains(' ')), summary) {
        said.insert(0, cut(summary, MESSAGE_CHARS_MAX));
    }
    said.dedup();
    said.truncate(MESSAGES_MAX);
    said
}

fn extended_info(body: &Value) -> impl Iterator<Item = &Value> {
    // Places of messages: in an error, beside a resource, in a task, in the settings of a Bios resource.
    ["/error/@Message.ExtendedInfo", "/@Message.ExtendedInfo", "/Messages", "/@Redfish.Settings/Messages"]
        .into_iter()
        .filter_map(|pointer| body.pointer(pointer)?.as_array())
        .flatten()
        .take(MESSAGES_MAX * 4)
}

fn message_id(message: &Value) -> Option<&str> {
    // iLO sometimes spells it MessageID.
    message.get("MessageId").or_else(|| message.get("MessageID"))?.as_str()
}

/// A message such as "The property X is not writable. (PropertyNotWritable)"; without a text, the id and its
/// arguments.
fn in_words(message: &Value) -> Option<String> {
    let id = message_id(message).map(|id| id.rsplit(['.', ':']).next().unwrap_or(id));
    let text = message.get("Message").and_then(Value::as_str).filter(|text| !text.trim().is_empty());
    let words = match (text, id) {
        (Some(text), Some(id)) => format!("{} ({id})", text.trim()),
        (Some(text), None) => text.trim().to_owned(),
        (None, Some(id)) => {
            let arguments = message.get("MessageArgs").and_then(Value::as_array);
            let arguments: Vec<&str> =
                arguments.into_iter().flatten().filter_map(Value::as_str).take(MESSAGES_MAX).collect();
            if arguments.is_empty() { id.to_owned() } else { format!("{id}: {}", arguments.join(", ")) }
        }
        (None, None) => return None,
    };
    Some(cut(&words, MESSAGE_CHARS_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn messages_keep_the_service_s_words() {
        let body = json!({"error": {
            "code": "iLO.0.10.ExtendedInfo",
            "message": "See @Message.ExtendedInfo for more information.",
            "@Message.ExtendedInfo": [
                {"MessageId": "Base.1.4.PropertyNotWritable", "Message": "The property X is read\u{1b}[2J on\u{202e}ly."},
                {"MessageID": "iLO.2.14.SystemResetRequired"},
                {"MessageId": "Bios.1.0.Bad", "MessageArgs": ["ProcSMT", 3]},
                7
            ]
        }});
        let said = messages(&body);
        assert_eq!(
            said,
            [
                "The property X is read [2J on ly. (PropertyNotWritable)",
                "SystemResetRequired",
                "Bad: ProcSMT"
            ]
        );
        let plain = json!({"error": {"code": "x", "message": "no power", "@Message.ExtendedInfo": [{"MessageId": "Base.1.0.GeneralError"}]}});
        assert_eq!(messages(&plain), ["no power", "GeneralError"]);
        assert!(messages(&json!([1])).is_empty());
        let flood = json!({"Messages": vec![json!({"Message": "a".repeat(9000)}); 999]});
        assert!(messages(&flood).concat().len() < 4000);
    }
}
