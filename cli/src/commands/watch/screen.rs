//! The view on a terminal: draws frames, and obeys keys.

use super::watcher::Watcher;
use anyhow::Context;
use lowlat_jitter_report::watch::{DisplayOptions, Watch, frame};
use ratatui::{
    DefaultTerminal,
    crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers},
};
use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
    time::Timespec,
};
use std::{
    io,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

/// Longest time until a raised stop flag, or a new size of the terminal, is noticed.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// CPUs that a page key scrolls by.
const PAGE: usize = 10;

/// True while a view is open.
static IS_OPEN: AtomicBool = AtomicBool::new(false);

/// Restores the terminal, however the view ends. A panic restores it before its message is printed, by ratatui's hook.
struct Screen(DefaultTerminal);

impl Screen {
    fn open() -> anyhow::Result<Self> {
        // Relaxed: the flag orders nothing.
        IS_OPEN.store(true, Ordering::Relaxed);
        let terminal = ratatui::try_init().inspect_err(|_| restore_terminal());
        Ok(Self(terminal.context("cannot open a view on this terminal\nhint: --once prints a text")?))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore_terminal();
    }
}

/// Restores the terminal if a view is open, before the process ends without unwinding.
pub fn restore_terminal() {
    // Relaxed: the flag orders nothing, and only one of two threads that swap it gets `true`.
    if IS_OPEN.swap(false, Ordering::Relaxed) {
        // A terminal that is gone needs nothing.
        let _ = ratatui::try_restore();
    }
}

/// Request of the user, by a key.
#[derive(Debug, PartialEq, Eq)]
enum Wish {
    Nothing,
    Quit,
}

/// Shows the watch until the user ends it.
pub fn show<'scope, 'env: 'scope>(
    watcher: &mut Watcher<'scope, 'env>,
    stop: &AtomicBool,
) -> anyhow::Result<()> {
    let mut screen = Screen::open()?;
    let (mut view, mut paused): (DisplayOptions, Option<Watch>) = (DisplayOptions::default(), None);
    // Relaxed: the flag orders nothing.
    while !stop.load(Ordering::Relaxed) {
        let shown = paused.as_ref().unwrap_or(&watcher.watch);
        let drawn = screen.0.draw(|out| {
            let area = out.area();
            out.render_widget(frame(shown, &view, area.width, area.height), area);
        });
        let is_drawn = unless_gone(drawn.map(drop)).context("cannot draw on this terminal")?.is_some();
        let is_ready = if is_drawn { wait_for_key(watcher.left().min(LOOK_EVERY)) } else { None };
        let Some(is_ready) = is_ready else { return Ok(()) };
        while is_ready && let Some(event) = unless_gone(next_event())?.flatten() {
            if obey(&event, &mut view, shown.rows.len()) == Wish::Quit {
                return Ok(());
            }
        }
        if watcher.left().is_zero() {
            watcher.step()?;
        }
        match (view.is_paused, &paused) {
            (true, None) => paused = Some(watcher.watch.clone()),
            (false, Some(_)) => paused = None,
            _ => {}
        }
    }
    Ok(())
}

/// `None` if it failed because the terminal is gone, as at the end of an ssh session. Its signal may arrive later.
fn unless_gone<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(_) if wait_for_key(Duration::ZERO).is_none() => Ok(None),
        result => result.map(Some),
    }
}

/// The next key or size, without waiting for one.
fn next_event() -> io::Result<Option<Event>> {
    if event::poll(Duration::ZERO)? { event::read().map(Some) } else { Ok(None) }
}

/// Waits for a key or a new size. `None` if the terminal is gone; reading it would never return then.
fn wait_for_key(time: Duration) -> Option<bool> {
    let stdin = io::stdin();
    let mut keyboard = [PollFd::new(&stdin, PollFlags::IN)];
    let time = Timespec::try_from(time).ok();
    match poll(&mut keyboard, time.as_ref()) {
        // A signal may be a new size, which crossterm reports as an event.
        Err(Errno::INTR) => Some(true),
        Err(_) => None,
        Ok(_) => {
            let is_gone = keyboard[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL);
            (!is_gone).then(|| keyboard[0].revents().contains(PollFlags::IN))
        }
    }
}

fn obey(event: &Event, view: &mut DisplayOptions, cpu_count: usize) -> Wish {
    let Event::Key(KeyEvent { code, modifiers, kind: KeyEventKind::Press, .. }) = event else {
        return Wish::Nothing;
    };
    let last = cpu_count.saturating_sub(1);
    match code {
        KeyCode::Char('c') if modifiers.contains(KeyModifiers::CONTROL) => return Wish::Quit,
        KeyCode::Char('q' | 'Q') | KeyCode::Esc => return Wish::Quit,
        KeyCode::Char('p' | ' ') => view.is_paused = !view.is_paused,
        KeyCode::Char('s') => (view.sort, view.scroll) = (view.sort.next(), 0),
        KeyCode::Down | KeyCode::Char('j') => view.scroll = (view.scroll + 1).min(last),
        KeyCode::Up | KeyCode::Char('k') => view.scroll = view.scroll.saturating_sub(1),
        KeyCode::PageDown => view.scroll = (view.scroll + PAGE).min(last),
        KeyCode::PageUp => view.scroll = view.scroll.saturating_sub(PAGE),
        KeyCode::Home => view.scroll = 0,
        _ => {}
    }
    Wish::Nothing
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowlat_jitter_report::watch::Sort;

    fn press(code: KeyCode, modifiers: KeyModifiers, view: &mut DisplayOptions) -> Wish {
        obey(&Event::Key(KeyEvent::new(code, modifiers)), view, 8)
    }

    #[test]
    fn keys_quit_pause_sort_and_scroll() {
        let mut view = DisplayOptions::default();
        let plain = |code, view: &mut DisplayOptions| press(code, KeyModifiers::NONE, view);
        assert_eq!(plain(KeyCode::Char('q'), &mut view), Wish::Quit);
        assert_eq!(plain(KeyCode::Esc, &mut view), Wish::Quit);
        assert_eq!(plain(KeyCode::Char('c'), &mut view), Wish::Nothing);
        assert_eq!(press(KeyCode::Char('c'), KeyModifiers::CONTROL, &mut view), Wish::Quit);
        plain(KeyCode::Char('p'), &mut view);
        plain(KeyCode::Down, &mut view);
        assert_eq!(view, DisplayOptions { is_paused: true, scroll: 1, sort: Sort::Cpu });
        plain(KeyCode::PageDown, &mut view);
        assert_eq!(view.scroll, 7, "not beyond the last CPU");
        plain(KeyCode::Char('s'), &mut view);
        plain(KeyCode::Up, &mut view);
        assert_eq!(view, DisplayOptions { is_paused: true, scroll: 0, sort: Sort::State });
    }
}
