//! The service manager.

use crate::Programs;
use std::{fmt, io};

/// Starts and stops units. Tests replace it.
pub trait Manager: fmt::Debug {
    fn daemon_reload(&self) -> io::Result<()>;
    /// Starts a unit and waits for it.
    fn start(&self, unit: &str) -> io::Result<()>;
    /// Stops a unit and waits for it. Succeeds if it is not running.
    fn stop(&self, unit: &str) -> io::Result<()>;
    /// Restarts a unit if it is running.
    fn restart(&self, unit: &str) -> io::Result<()>;
    /// When a unit became active, in microseconds of the monotonic clock; none if it is not active.
    fn active_since_us(&self, unit: &str) -> io::Result<Option<u64>>;
    fn reboot(&self) -> io::Result<()>;
}

#[derive(Debug)]
pub struct Systemctl<P>(pub P);

impl<P: Programs> Systemctl<P> {
    fn run(&self, arguments: &[&str]) -> io::Result<String> {
        let outcome = self.0.run("systemctl", arguments)?;
        if outcome.is_success {
            return Ok(String::from_utf8_lossy(&outcome.stdout).into_owned());
        }
        let said = outcome.stderr.trim();
        Err(io::Error::other(format!("systemctl {}: {said}", arguments.join(" "))))
    }
}

impl<P: Programs> Manager for Systemctl<P> {
    fn daemon_reload(&self) -> io::Result<()> {
        self.run(&["daemon-reload"]).map(drop)
    }

    fn start(&self, unit: &str) -> io::Result<()> {
        self.run(&["start", "--", unit]).map(drop)
    }

    fn stop(&self, unit: &str) -> io::Result<()> {
        match self.active_since_us(unit)? {
            Some(_) => self.run(&["stop", "--", unit]).map(drop),
            None => Ok(()),
        }
    }

    fn restart(&self, unit: &str) -> io::Result<()> {
        self.run(&["try-restart", "--", unit]).map(drop)
    }

    fn active_since_us(&self, unit: &str) -> io::Result<Option<u64>> {
        let properties = "--property=ActiveState,ActiveEnterTimestampMonotonic,LoadState";
        let text = self.run(&["show", properties, "--", unit])?;
        let property = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        if property("ActiveState") != Some("active") {
            return Ok(None);
        }
        Ok(property("ActiveEnterTimestampMonotonic").and_then(|number| number.trim().parse().ok()))
    }

    fn reboot(&self) -> io::Result<()> {
        self.run(&["reboot"]).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Outcome;

    #[derive(Debug)]
    struct Says(&'static str, bool);

    impl Programs for Says {
        fn run(&self, program: &str, _: &[&str]) -> io::Result<Outcome> {
            assert_eq!(program, "systemctl");
            Ok(Outcome { is_success: self.1, stdout: self.0.into(), stderr: "Unit x is masked.\n".into() })
        }
    }

    #[test]
    fn the_state_of_a_unit_is_read() {
        let active = "ActiveState=active\nActiveEnterTimestampMonotonic=1234567\nLoadState=loaded\n";
        assert_eq!(Systemctl(Says(active, true)).active_since_us("x").unwrap(), Some(1_234_567));
        let inactive = "ActiveState=inactive\nActiveEnterTimestampMonotonic=0\nLoadState=not-found\n";
        assert_eq!(Systemctl(Says(inactive, true)).active_since_us("x").unwrap(), None);
        assert_eq!(Systemctl(Says("nonsense", true)).active_since_us("x").unwrap(), None);
    }

    #[test]
    fn an_error_says_what_was_asked() {
        let error = Systemctl(Says("", false)).start("x.service").unwrap_err().to_string();
        assert_eq!(error, "systemctl start -- x.service: Unit x is masked.");
    }
}
