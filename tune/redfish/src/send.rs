//! Sends one change, waits, and reads it back. A reported success counts only if the settings show it.

use crate::{
    Client, RedfishError, Resource, Saved,
    address::cut,
    answer::{Answer, messages},
    client::Call,
    error::Kind,
};
use lowlat_bios::{BiosFacts, LeftOutRow, MaintenanceWindow, Request, same_value, shown};
use serde::Serialize;
use serde_json::Value;
use std::time::{Duration, Instant};
use ureq::http::Method;

/// Interval of checks of a task or settings, unless the service sets one.
const PAUSE: Duration = Duration::from_secs(1);
/// Largest number of attributes listed in an error.
const NAMED_MAX: usize = 12;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Sent {
    pub path: String,
    /// HTTP status of the answer.
    pub status: u16,
    /// Attributes that were sent and read back.
    pub attributes: Vec<String>,
    /// Attributes that the service refused by name.
    pub refused: Vec<LeftOutRow>,
    pub messages: Vec<String>,
    /// The task that applies the change, if it had not ended in time.
    pub waiting_task: Option<String>,
    /// The maintenance window that the settings name when they are read back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<MaintenanceWindow>,
}

/// Sends one request of an export, waits for its task, and reads the settings back. `saved` is the state that
/// the request was made from: if the settings changed since then, and the service can compare, nothing is sent.
/// With `is_in_parts`, attributes that the service refuses by name are left out and the remaining ones are sent.
pub fn send(
    client: &mut Client,
    saved: &Saved,
    facts: &BiosFacts,
    request: &Request,
    is_in_parts: bool,
) -> Result<Sent, RedfishError> {
    let link = request.uri.as_deref().ok_or_else(|| {
        RedfishError::new(
            "the Bios resource names no settings resource (@Redfish.Settings): this service accepts no changes",
        )
    })?;
    let path = client.options.origin.path_of(link, "the Bios resource")?;
    // Failures up to here happen before anything is sent.
    client.time_left()?;
    let mut body = request.body.clone();
    let mut refused = Vec::new();
    let mut answer = patch(client, saved, &path, &body)?;
    while is_in_parts && answer.status == 400 {
        let named = take_refused(client, &mut body, &answer);
        if named.is_empty() || attributes(&body).next().is_none() {
            break;
        }
        refused.extend(named);
        answer = patch(client, saved, &path, &body)?;
    }
    match answer.status {
        200..300 => {}
        412 => {
            return Err(RedfishError::new(
                "another client changed the pending settings since they were read; nothing was changed\nhint: run it \
                 again",
            ));
        }
        _ => return Err(client.refusal("PATCH", &answer)),
    }
    let follow = move |client: &mut Client| -> Result<Sent, RedfishError> {
        let waiting_task = task(client, &answer, request.window.is_some())?;
        let (messages, window) = read_back(client, facts, &path, &body, &answer)?;
        let attributes = attributes(&body).map(|(name, _)| name.clone()).collect();
        let (path, status) = (path.clone(), answer.status);
        Ok(Sent { path, status, attributes, refused, messages, waiting_task, window })
    };
    // Errors after the service accepted the request state the outcome, or it is unknown.
    follow(client)
        .map_err(|error| if error.kind == Kind::Failed { error } else { error.with_unknown_outcome() })
}

/// Sends a change. Some services reject their own ETags: if the settings still equal what was read, the service is
/// asked again without a comparison.
fn patch(client: &mut Client, saved: &Saved, path: &str, body: &Value) -> Result<Answer, RedfishError> {
    let if_match = saved.settings_etag.as_deref();
    let call = Call { method: Method::PATCH, path, body: Some(body), if_match };
    let answer = client.request(&call).map_err(perhaps_sent)?;
    if answer.status == 412 && if_match.is_some() && is_as_read(client, saved, path)? {
        return client.request(&Call { if_match: None, ..call }).map_err(perhaps_sent);
    }
    Ok(answer)
}

/// Removes the attributes that an answer names as refused.
fn take_refused(client: &Client, body: &mut Value, answer: &Answer) -> Vec<LeftOutRow> {
    let Some(sent) = body.get_mut("Attributes").and_then(Value::as_object_mut) else { return Vec::new() };
    let mut refused = Vec::new();
    sent.retain(|name, _| {
        let Some(words) = answer.message_on(name) else { return true };
        let (attribute, why) = (name.clone(), client.without_secrets(&words));
        refused.push(LeftOutRow { id: String::new(), attribute, why });
        false
    });
    refused
}

/// True if the settings resource still has the content that was read.
fn is_as_read(client: &mut Client, saved: &Saved, path: &str) -> Result<bool, RedfishError> {
    let now = client.get(path)?.json()?;
    let read = saved.answers.iter().find(|(resource, ..)| *resource == Resource::Settings);
    let read: Option<Value> = read.and_then(|(_, _, bytes)| serde_json::from_slice(bytes).ok());
    Ok(read.is_some_and(|read| read.get("Attributes") == now.get("Attributes")))
}

/// Marks errors of the request itself after which the service may still have accepted it.
fn perhaps_sent(error: RedfishError) -> RedfishError {
    match error.kind {
        Kind::TimedOut | Kind::NoAnswer | Kind::Interrupted => error.with_unknown_outcome(),
        _ => error,
    }
}

fn attributes(body: &Value) -> impl Iterator<Item = (&String, &Value)> {
    body.get("Attributes").and_then(Value::as_object).into_iter().flatten()
}

/// Waits for the task of a deferred request. Returns the task's path if it is still running: some services end
/// it only during the restart, or in the maintenance window.
fn task(client: &mut Client, answer: &Answer, has_window: bool) -> Result<Option<String>, RedfishError> {
    let body = answer.json().unwrap_or_default();
    let place = answer.location.as_deref().or_else(|| body.get("@odata.id")?.as_str());
    let (202, Some(place)) = (answer.status, place) else { return Ok(None) };
    let path = client.options.origin.path_of(place, &answer.path)?;
    let began = Instant::now();
    loop {
        let seen = client.request(&Call::get(&path))?;
        // A missing monitor means that the task has ended; the settings show how.
        if matches!(seen.status, 404 | 410) {
            return Ok(None);
        }
        if !seen.is_success() {
            return Err(client.refusal("GET", &seen));
        }
        let body = seen.json().unwrap_or_default();
        let state = body.get("TaskState").and_then(Value::as_str).unwrap_or_default();
        match state {
            "Exception" | "Killed" | "Cancelled" => {
                let said = client.said(&messages(&body));
                return Err(Kind::Failed.error(format!(
                    "the service accepted the request, but its task {path} ended as {state}{said}"
                )));
            }
            "Completed" => return Ok(None),
            "" if seen.status != 202 => return Ok(None),
            // These end only during the restart.
            "Pending" | "Suspended" => return Ok(Some(path)),
            _ if has_window => return Ok(Some(path)),
            _ => {}
        }
        let asked =
            seen.retry_after.as_deref().and_then(|wait| wait.parse().ok()).map_or(PAUSE, Duration::from_secs);
        let left = client.options.limits.task_time.saturating_sub(began.elapsed());
        if left.is_zero() {
            return Ok(Some(path));
        }
        client.wait(asked.clamp(Duration::from_millis(100), left.max(Duration::from_millis(100))))?;
    }
}

/// Reads the settings until they contain what was sent, which takes some services a moment. Returns the
/// service's messages and the maintenance window that the settings name.
fn read_back(
    client: &mut Client,
    facts: &BiosFacts,
    path: &str,
    sent: &Value,
    answer: &Answer,
) -> Result<(Vec<String>, Option<MaintenanceWindow>), RedfishError> {
    let began = Instant::now();
    loop {
        let body = client.get(path)?.json()?;
        let pending = body.get("Attributes").and_then(Value::as_object);
        let stands =
            |name: &str| pending.and_then(|pending| pending.get(name)).or_else(|| facts.active.get(name));
        let missing: Vec<String> = attributes(sent)
            .filter(|(name, value)| {
                !stands(name).is_some_and(|stands| same_value(&shown(stands), &shown(value)))
            })
            .map(|(name, value)| {
                let stands = stands(name).map_or_else(|| "nothing".into(), shown);
                cut(&format!("{name} = {stands} (sent {})", shown(value)), 120)
            })
            .collect();
        let mut said = answer.messages();
        said.extend(messages(&body).into_iter().filter(|words| !said.contains(words)).collect::<Vec<_>>());
        let said: Vec<String> = said.iter().map(|words| client.without_secrets(words)).collect();
        // Without a settings resource, what is pending shows only after the restart.
        if missing.is_empty() || facts.uri.as_deref().is_some_and(|uri| uri.trim_end_matches('/') == path) {
            return Ok((said, MaintenanceWindow::of(&body)));
        }
        let left = client.options.limits.read_back_time.saturating_sub(began.elapsed());
        if left.is_zero() {
            let more = missing.len().saturating_sub(NAMED_MAX);
            let mut named: Vec<String> = missing.into_iter().take(NAMED_MAX).collect();
            if more > 0 {
                named.push(format!("and {more} more"));
            }
            let named = named.join(", ");
            let said = client.said(&said);
            return Err(Kind::Failed.error(format!(
                    "the service answered status {}, but its pending settings differ from the request: {named}{said}; \
                     nothing more was sent\nhint: run `lowlat bios audit` to list pending settings, and check the \
                     service's log",
                    answer.status
                )));
        }
        client.wait(PAUSE.min(left))?;
    }
}
