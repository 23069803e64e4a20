//! Frames of the terminal and the text of one interval.

use crate::host::{bad_step, bad_watch, quiet_step, sampled_watch, settings, subject};
use lowlat_jitter::watch::Interval;
use lowlat_jitter_report::watch::{DisplayOptions, Settings, Sort, Step, Subject, Watch, frame, plain_text};
use ratatui::{Terminal, backend::TestBackend, buffer::Buffer, style::Color};

fn drawn(watch: &Watch, view: &DisplayOptions, width: u16, height: u16) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|out| out.render_widget(frame(watch, view, width, height), out.area())).unwrap();
    terminal.backend().buffer().clone()
}

fn text(buffer: &Buffer) -> String {
    let lines = buffer.content.chunks(usize::from(buffer.area.width));
    let lines = lines.map(|cells| cells.iter().map(ratatui::buffer::Cell::symbol).collect::<String>());
    lines.map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

fn shown(watch: &Watch, view: &DisplayOptions) -> String {
    text(&drawn(watch, view, 80, 24))
}

#[test]
fn a_disturbed_host_fits_80_by_24() {
    insta::assert_snapshot!(shown(&bad_watch(), &DisplayOptions::default()));
}

#[test]
fn a_quiet_host_fits_80_by_24() {
    let mut watch = Watch::new(subject("2-7", "2-7"));
    for number in 0..3 {
        watch.take(Step { settings: Some(settings(Vec::new())), ..quiet_step(number) });
    }
    insta::assert_snapshot!(shown(&watch, &DisplayOptions::default()));
}

#[test]
fn sampled_cpus_show_lengths() {
    insta::assert_snapshot!(shown(
        &sampled_watch(),
        &DisplayOptions { sort: Sort::Rate, ..DisplayOptions::default() }
    ));
}

#[test]
fn a_frame_before_the_first_interval_claims_nothing() {
    insta::assert_snapshot!(shown(&Watch::new(subject("0-3", "")), &DisplayOptions::default()));
}

#[test]
fn one_interval_is_a_text_with_all_cpus() {
    insta::assert_snapshot!(plain_text(&bad_watch(), 100));
}

/// A host with 64 isolated CPUs, all quiet but CPU 40.
fn large() -> Watch {
    let mut watch = Watch::new(subject("0-63", "0-63"));
    let mut step = bad_step(1);
    let noisy = step.interval.counted.remove(&3).unwrap();
    step.interval = Interval {
        counted: [(40, noisy)].into(),
        threads: lowlat_host::Reading::Known(Vec::new()),
        ..step.interval
    };
    watch.take(step);
    watch
}

#[test]
fn many_cpus_scroll_and_the_worst_come_first_on_demand() {
    let watch = large();
    let top = shown(&watch, &DisplayOptions::default());
    assert!(
        top.contains("rows 1-") && top.contains(" of 64") && !top.contains("ticking      1,000"),
        "{top}"
    );
    let down = shown(&watch, &DisplayOptions { scroll: 60, ..DisplayOptions::default() });
    assert!(down.contains("\n 63  quiet") && !down.contains("\n  0  quiet"), "the end stays in view\n{down}");
    let worst = shown(&watch, &DisplayOptions { sort: Sort::State, ..DisplayOptions::default() });
    let first = worst.lines().nth(4).unwrap();
    assert!(first.starts_with(" 40  ticking"), "{worst}");
}

#[test]
fn a_paused_view_says_so() {
    let paused = shown(&bad_watch(), &DisplayOptions { is_paused: true, ..DisplayOptions::default() });
    assert!(paused.lines().next().unwrap().ends_with("PAUSED") && paused.contains("p resume"), "{paused}");
}

#[test]
fn every_frame_has_the_terminals_size_and_no_line_is_wider() {
    for watch in [bad_watch(), sampled_watch(), large(), Watch::new(Subject::default())] {
        for (width, height) in [(80, 24), (60, 20), (132, 50), (200, 12)] {
            let frame = frame(&watch, &DisplayOptions::default(), width, height);
            assert_eq!(frame.lines.len(), usize::from(height), "{width}x{height}");
            for line in &frame.lines {
                assert!(line.width() <= usize::from(width), "{width}x{height}: {line}");
            }
            assert!(frame.lines.last().unwrap().to_string().starts_with("q quit"));
        }
        // Too small for anything: it must not panic.
        frame(&watch, &DisplayOptions::default(), 1, 1);
        frame(&watch, &DisplayOptions::default(), 0, 0);
    }
}

#[test]
fn colours_repeat_what_words_say() {
    let buffer = drawn(&bad_watch(), &DisplayOptions::default(), 80, 24);
    let colour_of = |word: &str| {
        let lines = text(&buffer);
        let (row, line) = lines.lines().enumerate().find(|(_, line)| line.contains(word)).unwrap();
        let column = line.split(word).next().unwrap().chars().count();
        buffer[(u16::try_from(column).unwrap(), u16::try_from(row).unwrap())].fg
    };
    assert_eq!(colour_of("quiet   "), Color::Green);
    assert_eq!(colour_of("interrupted  "), Color::Yellow);
    assert_eq!(colour_of("vm.swappiness overridden"), Color::Red);
    assert_eq!(colour_of("eth0 lost packets"), Color::Yellow);
}

#[test]
fn names_from_outside_cannot_control_the_terminal() {
    let mut watch = Watch::new(Subject { host: "a\u{1b}[2Jb".to_owned(), ..subject("2-7", "2-7") });
    watch.take(Step {
        settings: Some(Settings::Unreadable("denied\u{1b}]0;x\u{7}".to_owned())),
        ..quiet_step(0)
    });
    let text = plain_text(&watch, 100);
    assert!(!text.contains('\u{1b}') && !text.contains('\u{7}'), "{text:?}");
    assert!(text.contains("a\\u{1b}[2Jb"), "{text}");
}
