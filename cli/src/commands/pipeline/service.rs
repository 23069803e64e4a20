//! Notifications to systemd about a run that is a service (sd_notify(3)).

use crate::output;
use lowlat_text::units::count;
use lowlat_trade::run::{Phase, Progress};
use std::{
    ffi::OsString,
    io,
    os::{
        linux::net::SocketAddrExt as _,
        unix::{
            ffi::OsStrExt as _,
            net::{SocketAddr, UnixDatagram},
        },
    },
};

/// Sends the state of a run to the service manager that has asked for it.
pub struct RunNotifier {
    address: SocketAddr,
    socket: UnixDatagram,
    last: Option<Phase>,
}

impl RunNotifier {
    /// Finds the service manager; `None` if there is none. One that cannot be reached is reported.
    pub fn find() -> Option<Self> {
        let name = std::env::var_os("NOTIFY_SOCKET").filter(|name| !name.is_empty())?;
        Self::at(&name)
            .map_err(|error| output::talk(&format!("cannot notify systemd at {}: {error}", name.display())))
            .ok()
    }

    fn at(name: &OsString) -> io::Result<Self> {
        let address = match name.as_bytes() {
            [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
            _ => SocketAddr::from_pathname(name)?,
        };
        Ok(Self { address, socket: UnixDatagram::unbound()?, last: None })
    }

    /// Sends the state of the run. The master does so every second, so that it is also the sign of life that
    /// `WatchdogSec=` asks for.
    pub fn notify(&mut self, now: &Progress) {
        let mut text = String::from("WATCHDOG=1\n");
        if self.last.replace(now.phase) != Some(now.phase) {
            text.push_str(match now.phase {
                Phase::Joining => "",
                Phase::Publishing => "READY=1\n",
                Phase::Ending => "STOPPING=1\n",
            });
        }
        text.push_str(&format!("STATUS={}", status(now)));
        // A manager that does not listen now gets the next one.
        self.socket.send_to_addr(text.as_bytes(), &self.address).ok();
    }
}

fn status(now: &Progress) -> String {
    match now.phase {
        Phase::Joining => format!("starting: {} of {} processes have joined", now.joined, now.processes),
        Phase::Publishing | Phase::Ending => {
            let doing = if now.phase == Phase::Ending { "ending" } else { "publishing" };
            let [ticks, orders, lost] = [now.ticks_published, now.orders, now.lost].map(count);
            format!("{doing}: {ticks} ticks, {orders} orders, {lost} lost")
        }
    }
}
