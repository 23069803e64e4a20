#![allow(clippy::unused_self, reason = "the interface macro calls methods on the object")]

use super::*;
use std::{os::unix::net::UnixStream, sync::Mutex, thread};
use zbus::{fdo, object_server::SignalEmitter};

/// TuneD, as far as these tests need it.
#[derive(Debug, Clone, Default)]
struct State {
    profile: String,
    is_tuning: bool,
    is_there: bool,
    asked: Vec<String>,
}

#[derive(Debug, Clone)]
struct Control(Arc<Mutex<State>>);

#[zbus::interface(name = "com.redhat.tuned.control")]
impl Control {
    #[zbus(name = "switch_profile")]
    async fn switch_profile(
        &self,
        #[zbus(signal_emitter)] emitter: SignalEmitter<'_>,
        profile: &str,
    ) -> fdo::Result<(bool, String)> {
        self.0.lock().unwrap().asked.push(format!("switch {profile}"));
        let is_tuning = match profile {
            "missing" => return Ok((false, "Requested profile 'missing' doesn't exist.".into())),
            "forbidden" => return Ok((false, "Unauthorized".into())),
            "broken" => {
                Self::profile_changed(&emitter, profile, false, "its script failed").await?;
                return Ok((true, "OK".into()));
            }
            _ => self.0.lock().unwrap().is_tuning,
        };
        self.0.lock().unwrap().profile = profile.to_owned();
        if is_tuning {
            // The result may be sent before the call returns.
            Self::profile_changed(&emitter, profile, true, "OK").await?;
        }
        Ok((true, "OK".into()))
    }

    #[zbus(name = "auto_profile")]
    async fn auto_profile(
        &self,
        #[zbus(signal_emitter)] emitter: SignalEmitter<'_>,
    ) -> fdo::Result<(bool, String)> {
        self.switch_profile(emitter, "virtual-guest").await
    }

    #[zbus(name = "is_running")]
    fn is_running(&self) -> bool {
        self.0.lock().unwrap().is_tuning
    }

    #[zbus(name = "start")]
    async fn start(&self, #[zbus(signal_emitter)] emitter: SignalEmitter<'_>) -> fdo::Result<bool> {
        let profile = {
            let mut state = self.0.lock().unwrap();
            state.is_tuning = true;
            state.asked.push("start".into());
            state.profile.clone()
        };
        Self::profile_changed(&emitter, &profile, true, "OK").await?;
        Ok(true)
    }

    #[zbus(name = "active_profile")]
    fn active_profile(&self) -> String {
        self.0.lock().unwrap().profile.clone()
    }

    #[zbus(name = "disable")]
    fn disable(&self) -> bool {
        let mut state = self.0.lock().unwrap();
        state.profile.clear();
        std::mem::replace(&mut state.is_tuning, false)
    }

    #[zbus(signal, name = "profile_changed")]
    async fn profile_changed(
        emitter: &SignalEmitter<'_>,
        profile: &str,
        is_applied: bool,
        said: &str,
    ) -> zbus::Result<()>;
}

/// Fake of the bus's own object.
struct Bus(Arc<Mutex<State>>);

#[zbus::interface(name = "org.freedesktop.DBus")]
impl Bus {
    fn name_has_owner(&self, name: &str) -> bool {
        name == NAME && self.0.lock().unwrap().is_there
    }
}

fn fake(state: State) -> (Tuned, Arc<Mutex<State>>) {
    let state = Arc::new(Mutex::new(state));
    let served = Arc::clone(&state);
    let bus = move || {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let builder = Builder::unix_stream(theirs).server(zbus::Guid::generate()).p2p();
        let builder = builder.serve_at(OBJECT, Control(Arc::clone(&served)));
        let builder = builder.serve_at("/org/freedesktop/DBus", Bus(Arc::clone(&served)));
        thread::spawn(move || {
            zbus::block_on(async {
                let connection = builder.build().await.unwrap();
                connection.closed().await;
            });
        });
        Builder::unix_stream(ours).p2p()
    };
    (Tuned { bus: Arc::new(bus) }, state)
}

fn tuning() -> State {
    State { profile: "balanced".into(), is_tuning: true, is_there: true, ..State::default() }
}

#[test]
fn profiles_are_switched_and_waited_for() {
    let (tuned, state) = fake(tuning());
    assert!(tuned.is_running().unwrap());
    tuned.switch_profile("lowlat").unwrap();
    assert_eq!(tuned.active_profile().unwrap(), "lowlat");
    tuned.auto_profile().unwrap();
    assert_eq!(tuned.active_profile().unwrap(), "virtual-guest");
    tuned.disable().unwrap();
    assert_eq!(tuned.active_profile().unwrap(), "");
    // Without a profile the daemon waits for its start.
    tuned.switch_profile("lowlat").unwrap();
    assert_eq!(
        state.lock().unwrap().asked,
        ["switch lowlat", "switch virtual-guest", "switch lowlat", "start"]
    );
}

#[test]
fn what_fails_says_so() {
    let (tuned, _) = fake(tuning());
    let said = |profile: &str| tuned.switch_profile(profile).unwrap_err().to_string();
    let expected = "TuneD refused to switch to the profile missing: Requested profile 'missing' doesn't exist.; see \
                    /var/log/tuned/tuned.log";
    assert_eq!(said("missing"), expected);
    assert!(said("broken").contains("its script failed"));
    assert_eq!(
        said("forbidden"),
        "TuneD denied this user the request to switch to the profile forbidden: Unauthorized; run as root"
    );
}

#[test]
fn a_daemon_that_is_missing_is_not_running() {
    let (tuned, _) = fake(State::default());
    assert!(!tuned.is_running().unwrap());
    let no_bus = Tuned { bus: Arc::new(|| Builder::address("unix:path=/nonexistent/bus")) };
    assert!(!no_bus.is_running().unwrap());
    assert!(matches!(no_bus.switch_profile("x"), Err(TunedError::Refused { .. })));
}
