//! Checks whether a process is alive. Process ids are reused; together with its start time, an id names one process.

use crate::stream::Owner;
use rustix::{
    io::Errno,
    process::{self, Pid, PidfdFlags},
};
use std::{fs, io};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Life {
    /// It is alive and not stopped.
    Alive,
    /// It is stopped (SIGSTOP, a debugger): it does nothing, and may continue at any moment.
    Stopped,
    /// It has ended, or is a zombie.
    Dead,
    /// Unknown: /proc is not mounted, or hides processes of others.
    Unknown,
}

impl Owner {
    /// Returns the id and start time of this process.
    pub fn current() -> io::Result<Self> {
        let pid = std::process::id();
        let stat = fs::read_to_string("/proc/self/stat")?;
        let (_, start_ticks) = parse(&stat).ok_or_else(|| {
            io::Error::other(format!("/proc/self/stat: found {stat:?}, expected the fields of proc(5)"))
        })?;
        Ok(Self { pid, start_ticks })
    }

    /// Returns the process with this id. If /proc does not show it, its start time is 0, which is unknown.
    pub fn of(pid: u32) -> Self {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        Self { pid, start_ticks: parse(&stat).map_or(0, |(_, start_ticks)| start_ticks) }
    }

    /// Returns the state of this very process, rather than of a later one with the same id.
    pub fn life(&self) -> Life {
        let stat = match fs::read_to_string(format!("/proc/{}/stat", self.pid)) {
            Ok(stat) => stat,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return self.without_proc(),
            // The process ended between opening and reading.
            Err(error) if error.raw_os_error() == Some(Errno::SRCH.raw_os_error()) => return Life::Dead,
            Err(_) => return Life::Unknown,
        };
        match parse(&stat) {
            Some((_, start_ticks)) if ![0, start_ticks].contains(&self.start_ticks) => Life::Dead,
            Some(('Z' | 'X' | 'x', _)) => Life::Dead,
            Some(('T' | 't', _)) => Life::Stopped,
            Some(_) => Life::Alive,
            None => Life::Unknown,
        }
    }

    /// No entry in /proc: it has ended, or is hidden (hidepid=).
    fn without_proc(&self) -> Life {
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw);
        match pid.map(|pid| process::pidfd_open(pid, PidfdFlags::empty())) {
            Some(Err(Errno::SRCH)) | None => Life::Dead,
            _ => Life::Unknown,
        }
    }
}

/// Parses state and start time, fields 3 and 22 of /proc/PID/stat (proc(5)). The name before them, in
/// parentheses, may itself contain parentheses and spaces.
fn parse(stat: &str) -> Option<(char, u64)> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    let start_ticks = fields.nth(18)?.parse().ok()?;
    Some((state, start_ticks))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn this_process_is_alive_and_one_with_another_start_time_is_dead() {
        let me = Owner::current().unwrap();
        assert_eq!((me.life(), Owner::of(me.pid)), (Life::Alive, me));
        assert_eq!(Owner { start_ticks: 0, ..me }.life(), Life::Alive, "its start is unknown");
        assert_eq!(Owner { start_ticks: me.start_ticks + 1, ..me }.life(), Life::Dead, "a reused id");
        assert_eq!(Owner { pid: u32::MAX, start_ticks: 0 }.life(), Life::Dead);
    }

    #[test]
    fn stopped_and_ended_processes_are_distinguished() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let pid = child.id();
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let owner = Owner { pid, start_ticks: parse(&stat).unwrap().1 };
        let signal = |signal| process::kill_process(Pid::from_child(&child), signal).unwrap();
        signal(process::Signal::STOP);
        let stopped = (0..5000).find(|_| {
            std::thread::sleep(std::time::Duration::from_millis(1));
            owner.life() == Life::Stopped
        });
        assert!(stopped.is_some());
        signal(process::Signal::KILL);
        // A zombie is dead, although it has not been waited for.
        let dead = (0..5000).find(|_| {
            std::thread::sleep(std::time::Duration::from_millis(1));
            owner.life() == Life::Dead
        });
        assert!(dead.is_some());
        child.wait().unwrap();
        assert_eq!(owner.life(), Life::Dead);
    }

    #[test]
    fn a_name_with_parentheses_does_not_shift_the_fields() {
        let fields = (5..=21).map(|field| field.to_string()).collect::<Vec<_>>().join(" ");
        let stat = format!("12 (a) b) (c) R 4 {fields} 777 23");
        assert_eq!(parse(&stat), Some(('R', 777)));
        assert_eq!(parse("12 (a) R 1 2"), None);
        assert_eq!(parse(""), None);
    }
}
