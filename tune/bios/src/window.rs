//! When a service applies a change: at the next reset, or in a maintenance window (Redfish `Settings`, DSP0266).

use super::{BiosError, BiosFacts, export::Request};
use serde::Serialize;
use serde_json::{Value, json};
use std::fmt;

const ON_RESET: &str = "OnReset";
const AT_WINDOW: &str = "AtMaintenanceWindowStart";
const IN_WINDOW: &str = "Wait until the maintenance window has passed. Then save the resources again and audit \
                         them, because a service may accept a request and drop it.";

/// A maintenance window, as a service writes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MaintenanceWindow {
    /// RFC 3339.
    pub start: String,
    pub seconds: u64,
}

/// "2030-01-31T02:00:00Z for 30 min".
impl fmt::Display for MaintenanceWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.seconds {
            seconds if seconds % 60 == 0 => write!(f, "{} for {} min", self.start, seconds / 60),
            seconds => write!(f, "{} for {seconds} s", self.start),
        }
    }
}

impl MaintenanceWindow {
    /// The window in which a settings resource says that its changes are applied; `None` if it names none.
    pub fn of(settings: &Value) -> Option<Self> {
        let apply =
            settings.get("@Redfish.SettingsApplyTime").filter(|apply| apply["ApplyTime"] == AT_WINDOW);
        let window = apply.or_else(|| settings.get("@Redfish.MaintenanceWindow"))?;
        let start = window.get("MaintenanceWindowStartTime")?.as_str()?.to_owned();
        Some(Self { start, seconds: window.get("MaintenanceWindowDurationInSeconds")?.as_u64()? })
    }

    fn members(&self) -> Value {
        json!({ "MaintenanceWindowStartTime": self.start, "MaintenanceWindowDurationInSeconds": self.seconds })
    }
}

/// The apply times that a service supports, each with the annotation that asks for it.
#[derive(Debug, Clone, Default)]
pub struct ApplyTimes {
    /// Of `@Redfish.SettingsApplyTime`.
    settings: Vec<String>,
    /// Of `@Redfish.OperationApplyTime`.
    operation: Vec<String>,
}

impl ApplyTimes {
    /// Adds those that a resource lists.
    pub(super) fn add(&mut self, resource: &Value) {
        let listed = |pointer: &str| {
            let times = resource.pointer(pointer).and_then(Value::as_array).into_iter().flatten();
            times.filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>()
        };
        self.settings.extend(listed("/@Redfish.Settings/SupportedApplyTimes"));
        self.operation.extend(listed("/@Redfish.OperationApplyTimeSupport/SupportedValues"));
    }

    /// True if a change can be asked to apply at the next reset.
    pub(super) fn has_reset(&self) -> bool {
        self.settings.iter().any(|time| time == ON_RESET)
    }
}

/// The annotation of a request that is applied at the next reset.
pub(super) fn on_reset() -> Value {
    json!({ "ApplyTime": ON_RESET })
}

impl Request {
    /// Defers the request to a maintenance window; an error if the service offers none.
    pub fn defer(&mut self, facts: &BiosFacts, window: &MaintenanceWindow) -> Result<(), BiosError> {
        let ApplyTimes { settings, operation } = &facts.apply_times;
        let has = |times: &[String]| times.iter().any(|time| time == AT_WINDOW);
        let mut members = window.members();
        let annotations = if has(settings) {
            members["ApplyTime"] = AT_WINDOW.into();
            json!({ "@Redfish.SettingsApplyTime": members })
        } else if has(operation) {
            json!({ "@Redfish.OperationApplyTime": AT_WINDOW, "@Redfish.MaintenanceWindow": members })
        } else {
            return Err(not_offered(settings.iter().chain(operation)));
        };
        if let (Some(body), Value::Object(annotations)) = (self.body.as_object_mut(), annotations) {
            body.remove("@Redfish.SettingsApplyTime");
            body.extend(annotations);
        }
        self.window = Some(window.clone());
        self.then = IN_WINDOW;
        Ok(())
    }
}

fn not_offered<'a>(times: impl Iterator<Item = &'a String>) -> BiosError {
    let times: Vec<&str> = times.map(String::as_str).collect();
    let offered = if times.is_empty() { "none".to_owned() } else { times.join(", ") };
    BiosError(format!(
        "cannot use a maintenance window: the service does not offer {AT_WINDOW} (apply times that it offers: \
         {offered})\nhint: omit --window-start and --window-length, and restart the server in the window"
    ))
}
