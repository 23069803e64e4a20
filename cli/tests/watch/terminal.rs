//! The view in a terminal of 80 by 24: a pseudo-terminal, and an emulator that shows what a person would see.

use crate::common::{binary, running::Running};
use rustix::{
    event::{PollFd, PollFlags, poll},
    process::{Pid, Signal, kill_process},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize},
    time::Timespec,
};
use std::{
    fs::File,
    io::{Read, Write},
    num::NonZero,
    os::fd::OwnedFd,
    process::{Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

const ROWS: u16 = 24;
const COLUMNS: u16 = 80;

fn size(cells: u16) -> NonZero<u16> {
    NonZero::new(cells).unwrap()
}
/// Longest wait for a screen: long, because other tests use the CPUs too.
const PATIENCE: Duration = Duration::from_secs(120);

/// lowlat running in a pseudo-terminal.
struct Screen {
    running: Running,
    outside: File,
    /// Inner side of the pseudo-terminal, to read its modes.
    inside: OwnedFd,
    parser: vt100::Parser,
}

impl Screen {
    /// Starts lowlat as the leader of a session, so that it gets SIGHUP when the terminal closes.
    fn start(arguments: &[&str]) -> Self {
        Self::start_with(arguments, "")
    }

    /// Starts lowlat with this pager.
    fn start_with(arguments: &[&str], pager: &str) -> Self {
        let outside = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&outside).unwrap();
        unlockpt(&outside).unwrap();
        let name = ptsname(&outside, Vec::new()).unwrap();
        tcsetwinsize(&outside, Winsize { ws_row: ROWS, ws_col: COLUMNS, ws_xpixel: 0, ws_ypixel: 0 })
            .unwrap();
        let inside = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
        let mut command = Command::new("setsid");
        command.arg("--ctty").arg(binary()).args(arguments).env("TERM", "xterm-256color").env("PAGER", pager);
        command.stdin(inside.try_clone().unwrap()).stdout(inside.try_clone().unwrap()).stderr(Stdio::null());
        let child = command.spawn().expect("setsid of util-linux");
        drop(command);
        Self {
            running: Running(Some(child)),
            outside: File::from(outside),
            inside: inside.into(),
            parser: vt100::Parser::new(size(ROWS), size(COLUMNS), 0),
        }
    }

    /// Waits until the screen shows what is wanted, and returns it.
    fn wait_for(&mut self, what: &str, is_shown: impl Fn(&str) -> bool) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            let shown = self.parser.screen().contents();
            if is_shown(&shown) {
                return shown;
            }
            let left = until.saturating_duration_since(Instant::now());
            let mut waiting = [PollFd::new(&self.outside, PollFlags::IN)];
            let ready = poll(&mut waiting, Timespec::try_from(left).ok().as_ref()).unwrap();
            assert!(ready > 0, "no {what} on the screen:\n{shown}");
            let mut part = [0; 4_096];
            let length = self.outside.read(&mut part).expect("lowlat still runs");
            self.parser.process(&part[..length]);
        }
    }

    fn press(&mut self, keys: &[u8]) {
        self.outside.write_all(keys).unwrap();
    }

    fn end(&mut self) -> ExitStatus {
        self.running.0.take().unwrap().wait().unwrap()
    }

    /// True if the terminal echoes and waits for whole lines, as a shell needs it.
    fn is_restored(&self) -> bool {
        let modes = tcgetattr(&self.inside).unwrap().local_modes;
        modes.contains(LocalModes::ECHO | LocalModes::ICANON)
    }
}

fn first_interval(shown: &str) -> bool {
    // A frame is drawn from top to bottom. The first one has keys already, so the last label counts too.
    [" UTC live", "Events", "q quit"].iter().all(|words| shown.contains(words))
}

#[test]
fn the_view_shows_the_host_and_q_ends_it() {
    let mut screen = Screen::start(&["watch", "--interval", "300ms"]);
    let shown = screen.wait_for("first interval", first_interval);
    let lines: Vec<&str> = shown.lines().collect();
    assert!(lines[0].starts_with("lowlat watch  "), "{shown}");
    assert!(
        lines[1].contains("CPU") && lines[1].contains("every 300 ms") && lines[1].contains("own cost "),
        "{shown}"
    );
    assert!(lines[2].starts_with("CPUs ─") && lines[3].starts_with("CPU  state"), "{shown}");
    assert!(lines[4].trim_start().starts_with("0  "), "the first CPU: {shown}");
    for label in ["Intruders", "Settings", "Network", "Pipelines", "Events"] {
        assert!(lines.iter().any(|line| line.starts_with(label)), "{label}: {shown}");
    }
    assert_eq!(lines[23].trim_end(), "q quit   p pause   s sort by state   up/down scroll", "{shown}");
    assert!(screen.parser.screen().alternate_screen(), "what was there before comes back at the end");
    assert!(!screen.is_restored(), "keys arrive one by one");
    screen.press(b"q");
    assert_eq!(screen.end().code(), Some(0));
    assert!(screen.is_restored());
}

#[test]
fn p_holds_the_frame_and_s_sorts() {
    let mut screen = Screen::start(&["watch", "--interval", "200ms"]);
    screen.wait_for("first interval", first_interval);
    screen.press(b"p");
    let paused = screen.wait_for("pause", |shown| shown.contains("PAUSED"));
    screen.press(b"s");
    let sorted = screen.wait_for("order", |shown| shown.contains("s sort by rate"));
    let clock = |shown: &str| shown.lines().next().unwrap().to_owned();
    assert_eq!(clock(&paused), clock(&sorted), "the time of the frame stands still");
    screen.press(b"p");
    screen.wait_for("resumption", first_interval);
    // Ctrl-C is a key here.
    screen.press(b"\x03");
    assert_eq!(screen.end().code(), Some(0));
    assert!(screen.is_restored());
}

#[test]
fn a_smaller_terminal_gets_a_smaller_frame() {
    let mut screen = Screen::start(&["watch", "--interval", "200ms"]);
    screen.wait_for("first interval", first_interval);
    screen.parser.screen_mut().set_size(size(16), size(70));
    tcsetwinsize(&screen.outside, Winsize { ws_row: 16, ws_col: 70, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    let shown = screen.wait_for("keys in the last line", |shown| {
        shown.lines().nth(15).is_some_and(|line| line.starts_with("q quit"))
    });
    assert!(shown.lines().all(|line| line.chars().count() <= 70), "{shown}");
    screen.press(b"q");
    assert_eq!(screen.end().code(), Some(0));
}

#[test]
fn a_signal_ends_the_view_and_restores_the_terminal() {
    let mut screen = Screen::start(&["watch", "--interval", "200ms"]);
    screen.wait_for("first interval", first_interval);
    let pid = Pid::from_child(screen.running.0.as_ref().unwrap());
    kill_process(pid, Signal::TERM).unwrap();
    assert_eq!(screen.end().code(), Some(0));
    assert!(screen.is_restored());
}

#[test]
fn lowlat_ends_when_its_terminal_closes() {
    let mut screen = Screen::start(&["watch", "--interval", "200ms"]);
    screen.wait_for("first interval", first_interval);
    let Screen { mut running, outside, inside, .. } = screen;
    drop((outside, inside));
    // The end of a session can send SIGHUP twice, and the second signal ends lowlat at once.
    let code = running.0.take().unwrap().wait().unwrap().code();
    assert!(matches!(code, Some(0 | 130)), "{code:?}");
}

#[test]
fn a_text_that_is_longer_than_the_terminal_goes_through_the_pager() {
    let (_, capture) = crate::common::fixtures().into_iter().next().unwrap();
    let root = capture.to_str().unwrap();
    // A line of the pager's own, before and after what it is given.
    let pager = "echo paged; head -n 3; echo to the end";
    let mut screen = Screen::start_with(&["audit", "--root", root], pager);
    let shown = screen.wait_for("paged text", |shown| shown.contains("to the end"));
    assert!(shown.starts_with("paged\n"), "{shown}");
    // Without a pager, with none that exists, and of a text that fits: as it is.
    for (arguments, pager) in [
        (&["audit", "--root", root][..], "cat"),
        (&["audit", "--root", root], "no-such-pager 2>/dev/null"),
        (&["cpus", "--root", root], "echo paged"),
    ] {
        let mut screen = Screen::start_with(arguments, pager);
        let end = if arguments[0] == "cpus" { "isolated " } else { "--all shows them." };
        let shown = screen.wait_for("the whole text", |shown| shown.contains(end));
        assert!(!shown.contains("paged\n"), "{pager}: {shown}");
    }
}
