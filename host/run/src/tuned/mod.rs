//! TuneD over its D-Bus interface, com.redhat.tuned: reads and switches the active profile.

#[cfg(test)]
mod tests;

use crate::dbus::{self, Kind};
use std::{fmt, future::poll_fn, pin::pin, sync::Arc, time::Duration};
use thiserror::Error;
use zbus::{
    Connection, MatchRule, Message, MessageStream, connection::Builder, export::futures_core::Stream,
    message::Type, wire,
};

const NAME: &str = "com.redhat.tuned";
const OBJECT: &str = "/Tuned";
const CONTROL: &str = "com.redhat.tuned.control";
/// Time limit of a query.
const LOOK: Duration = Duration::from_secs(15);
/// Time limit of a profile change: TuneD first rolls the old one back, and a profile may run scripts.
const CHANGE: Duration = Duration::from_secs(120);
/// Maximum number of unread signals.
const WAITING_MAX: usize = 256;

/// Error of a request to TuneD. Every message names the request and what to do.
#[derive(Debug, Error)]
pub enum TunedError {
    /// This user has no permission.
    #[error("TuneD denied this user the request to {doing}: {said}; run as root")]
    Denied { doing: String, said: String },
    /// TuneD, or the bus, rejected the request.
    #[error("TuneD refused to {doing}: {said}; see /var/log/tuned/tuned.log")]
    Refused { doing: String, said: String },
    /// No answer arrived from TuneD.
    #[error(
        "no answer from TuneD to the request to {doing}: {why}; see /var/log/tuned/tuned.log, then try again"
    )]
    Unheard { doing: String, why: String },
}

/// A client of TuneD. Each call opens a new connection.
#[derive(Clone)]
pub struct Tuned {
    bus: Arc<dyn Fn() -> Builder<'static> + Send + Sync>,
}

impl fmt::Debug for Tuned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tuned").finish_non_exhaustive()
    }
}

/// TuneD's operations; tests replace them.
pub trait TunedControl: fmt::Debug + Send {
    /// True if the daemon is running. The query does not start it; without a bus it cannot be running.
    fn is_running(&self) -> Result<bool, TunedError>;

    /// The active profile; empty if none.
    fn active_profile(&self) -> Result<String, TunedError>;

    /// Switches to a profile, or to several separated by blanks, and waits until it is applied.
    fn switch_profile(&self, profile: &str) -> Result<(), TunedError>;

    /// Makes TuneD choose the profile that it recommends for the host, and waits until it is applied.
    fn auto_profile(&self) -> Result<(), TunedError>;

    /// Rolls the active profile back; no profile is active afterwards.
    fn disable(&self) -> Result<(), TunedError>;

    /// True if it acts on the running host, so that only a writer for the running host may be used.
    fn is_live(&self) -> bool;
}

impl TunedControl for Tuned {
    fn is_running(&self) -> Result<bool, TunedError> {
        let asked = self.talk(LOOK, async |connection| {
            let bus = Some("org.freedesktop.DBus");
            let answer =
                connection.call_method(bus, "/org/freedesktop/DBus", bus, "NameHasOwner", &NAME).await?;
            Ok(answer.body().deserialize::<bool>()?)
        });
        match asked {
            Err(CallFailure::Bus(error)) if dbus::kind(&error) == Kind::Absent => Ok(false),
            other => other.map_err(|failure| failure.into_error("report whether it is running")),
        }
    }

    fn active_profile(&self) -> Result<String, TunedError> {
        let asked = self.talk(LOOK, async |connection| {
            Ok(call(&connection, "active_profile", &()).await?.body().deserialize()?)
        });
        asked.map_err(|failure| failure.into_error("report its active profile"))
    }

    fn switch_profile(&self, profile: &str) -> Result<(), TunedError> {
        let name = profile.to_owned();
        self.change(&format!("switch to the profile {profile}"), Some(profile), async move |connection| {
            call(&connection, "switch_profile", &name).await
        })
    }

    fn auto_profile(&self) -> Result<(), TunedError> {
        self.change("choose its profile automatically", None, async |connection| {
            call(&connection, "auto_profile", &()).await
        })
    }

    fn disable(&self) -> Result<(), TunedError> {
        let asked = self.talk(CHANGE, async |connection| {
            let is_done: bool = call(&connection, "disable", &()).await?.body().deserialize()?;
            let said = "it returned \"false\", expected \"true\"";
            if is_done { Ok(()) } else { Err(CallFailure::Said(said.into())) }
        });
        asked.map_err(|failure| failure.into_error("roll its profile back"))
    }

    fn is_live(&self) -> bool {
        true
    }
}

impl Tuned {
    /// TuneD of the running host, over the system bus. Nothing is sent before the first call.
    pub fn live() -> Self {
        Self { bus: Arc::new(Builder::system) }
    }

    fn change<F>(
        &self,
        doing: &str,
        wanted: Option<&str>,
        ask: impl FnOnce(Connection) -> F + Send + 'static,
    ) -> Result<(), TunedError>
    where
        F: Future<Output = Result<Message, CallFailure>>,
    {
        let asked = self.talk(CHANGE, async move |connection| {
            let rule =
                MatchRule::builder().msg_type(Type::Signal).interface(CONTROL).member("profile_changed");
            // Before the call, because the profile may be applied when the call returns.
            let changes =
                MessageStream::for_match_rule(rule.build()?, &connection, WAITING_MAX.try_into().ok())
                    .await?;
            let answer = ask(connection.clone()).await?;
            let (is_taken, said): (bool, String) = answer.body().deserialize()?;
            if !is_taken {
                return Err(CallFailure::Said(said));
            }
            // A daemon without a profile does not start tuning automatically.
            let is_tuning: bool = call(&connection, "is_running", &()).await?.body().deserialize()?;
            if !is_tuning {
                call(&connection, "start", &()).await?;
            }
            applied(changes).await
        });
        match asked {
            // A signal can be lost if the daemon was restarted in the meantime; the active profile decides.
            Err(CallFailure::Unheard(_))
                if wanted.is_some() && self.active_profile().ok().as_deref() == wanted =>
            {
                Ok(())
            }
            other => other.map_err(|failure| failure.into_error(doing)),
        }
    }

    /// Runs a call on a new connection.
    fn talk<T, F>(
        &self,
        patience: Duration,
        talk: impl FnOnce(Connection) -> F + Send + 'static,
    ) -> Result<T, CallFailure>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, CallFailure>>,
    {
        let bus = Arc::clone(&self.bus);
        let heard = dbus::within(patience, "tuned", move || {
            zbus::block_on(async { talk(bus().method_timeout(patience).build().await?).await })
        });
        heard.unwrap_or_else(|unheard| Err(CallFailure::Unheard(unheard.to_string())))
    }
}

/// Cause of a failed D-Bus call.
#[derive(Debug)]
enum CallFailure {
    Bus(zbus::Error),
    Said(String),
    Unheard(String),
}

impl From<zbus::Error> for CallFailure {
    fn from(error: zbus::Error) -> Self {
        Self::Bus(error)
    }
}

impl CallFailure {
    fn into_error(self, doing: &str) -> TunedError {
        let doing = doing.to_owned();
        match self {
            Self::Unheard(why) => TunedError::Unheard { doing, why },
            // Its own error text if polkit permits no one.
            Self::Said(said) if said == "Unauthorized" => TunedError::Denied { doing, said },
            Self::Said(said) => TunedError::Refused { doing, said },
            Self::Bus(error) => match (dbus::kind(&error), error.to_string()) {
                (Kind::Denied, said) => TunedError::Denied { doing, said },
                (_, said) => TunedError::Refused { doing, said },
            },
        }
    }
}

async fn call<B>(connection: &Connection, method: &str, body: &B) -> Result<Message, CallFailure>
where
    B: serde::Serialize + wire::DynamicType,
{
    Ok(connection.call_method(Some(NAME), OBJECT, Some(CONTROL), method, body).await?)
}

/// Waits until TuneD reports that a profile is applied, or why not.
async fn applied(changes: MessageStream) -> Result<(), CallFailure> {
    let mut changes = pin!(changes);
    let Some(message) = poll_fn(|context| changes.as_mut().poll_next(context)).await else {
        return Err(CallFailure::Said("the connection ended before the profile was applied".into()));
    };
    let (_, is_applied, said): (String, bool, String) = message?.body().deserialize()?;
    if is_applied { Ok(()) } else { Err(CallFailure::Said(said)) }
}
