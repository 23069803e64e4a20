//! Lines of others' files, and lowlat's own files.

use super::{
    super::*,
    host::{Host, plan_of},
};
use lowlat_undo::{OnFailure, State};
use proptest::prelude::*;
use std::{fs, os::unix::fs::PermissionsExt};

const CONF: &str = "/etc/tuned/tuned-main.conf";
const COMMENT: &str = "# Set by lowlat; `lowlat tune rollback` restores the previous line.";

fn key(name: &str) -> Target {
    Target::FileKey { path: CONF.to_owned(), key: name.to_owned() }
}

/// Applies the lines through the log and returns the file; after the rollback it is as before.
fn set(text: &str, lines: &[(&str, &str)]) -> (String, Vec<String>) {
    let host = Host::of(&[(CONF, text)]);
    fs::set_permissions(host.path(CONF), fs::Permissions::from_mode(0o640)).unwrap();
    let start = host.tree();
    let mut log = host.log();
    let plan = plan_of(lines.iter().map(|(name, value)| (key(name), *value)).collect());
    let preparation = prepare(&plan, &host.snapshot(), &log, Part::Files).unwrap();
    let steps: Vec<UndoStep> = preparation.steps.iter().map(|prepared| prepared.step.clone()).collect();
    assert!(steps.len() <= 1, "one file is one step");
    log.apply("p", &steps, OnFailure::RollBack).unwrap();
    assert_eq!(fs::metadata(host.path(CONF)).unwrap().permissions().mode() & 0o7777, 0o640);
    let after = host.text(CONF);
    // Preparing again gives nothing to do.
    let again = prepare(&plan, &host.snapshot(), &log, Part::Files).unwrap();
    assert!(again.steps.iter().all(|p| p.step.target.comparison.same(&p.step.old, &p.step.new)));
    assert!(log.rollback_where(|_| true).is_complete());
    assert_eq!(host.tree(), start);
    (after, preparation.left.into_iter().map(|left| left.reason).collect())
}

fn after(text: &str, lines: &[(&str, &str)]) -> String {
    let (after, left) = set(text, lines);
    assert_eq!(left, [""; 0]);
    after
}

#[test]
fn one_line_is_changed_and_all_else_stays() {
    let text = "# rollback = auto|daemon = 1|\trollback =  auto # why||[x]|rollback = y|";
    assert_eq!(
        after(text, &[("rollback", "not_on_exit")]),
        format!("# rollback = auto\ndaemon = 1\n{COMMENT}\n\trollback =  not_on_exit\n\n[x]\nrollback = y\n")
    );
}

#[test]
fn a_line_that_is_missing_comes_before_the_first_heading_or_last() {
    let line = |equals| format!("{COMMENT}\nrollback{equals}not_on_exit\n");
    let with = |text| after(text, &[("rollback", "not_on_exit")]);
    assert_eq!(with(""), line("="));
    assert_eq!(with("a = 1|"), format!("a = 1\n{}", line(" = ")));
    assert_eq!(with("# a = 1|b=2"), format!("# a = 1\nb=2\n{}", line("=")));
    assert_eq!(with("a=1|[x]|rollback=0|"), format!("a=1\n{}[x]\nrollback=0\n", line("=")));
    assert_eq!(with("a=1\r|"), format!("a=1\r\n{}", line("=").replace('\n', "\r\n")));
}

#[test]
fn a_line_without_an_end_gets_none() {
    assert_eq!(after("rollback=auto", &[("rollback", "x")]), format!("{COMMENT}\nrollback=x"));
    assert_eq!(after("rollback=auto\r|", &[("rollback", "x")]), format!("{COMMENT}\r\nrollback=x\r\n"));
}

#[test]
fn a_line_as_wanted_stays_and_a_comment_stands_once() {
    assert_eq!(after("rollback = x|", &[("rollback", "x")]), "rollback = x\n");
    let set_before = format!("{COMMENT}|rollback=w|");
    assert_eq!(after(&set_before, &[("rollback", "x")]), format!("{COMMENT}\nrollback=x\n"));
}

#[test]
fn two_lines_of_a_file_are_one_step() {
    let text = after("b=1|", &[("a", "1"), ("b", "2")]);
    assert_eq!(text, format!("{COMMENT}\nb=2\n{COMMENT}\na=1\n"));
    let host = Host::of(&[(CONF, "b=1|")]);
    let plan = plan_of(vec![(key("a"), "1"), (Target::DefaultIrqAffinity, "0"), (key("b"), "2")]);
    let preparation = prepare(&plan, &host.snapshot(), &host.log(), Part::Files).unwrap();
    assert_eq!((preparation.steps[0].change, &preparation.steps[0].also[..]), (0, &[2][..]));
}

#[test]
fn what_is_not_clear_is_left() {
    let (text, left) = set("a=1|a=2|b=1|", &[("a", "3"), ("b", "2"), ("c", "x|y")]);
    assert_eq!(text, format!("a=1\na=2\n{COMMENT}\nb=2\n"));
    assert!(left[0].contains("a is set 2 times") && left[1].contains("does not fit in one line"), "{left:?}");
    for (make, wanted) in [
        (None, "is missing, and lowlat does not create it"),
        (Some("/etc/elsewhere"), "is a link to /etc/elsewhere, expected a file"),
    ] {
        let host = Host::of(&[("/etc/tuned/other", "")]);
        if let Some(to) = make {
            std::os::unix::fs::symlink(to, host.path(CONF)).unwrap();
        }
        let plan = plan_of(vec![(key("a"), "1"), (key("b"), "1")]);
        let preparation = prepare(&plan, &host.snapshot(), &host.log(), Part::Files).unwrap();
        assert_eq!((preparation.steps.len(), preparation.left.len()), (0, 2));
        assert!(preparation.left[1].reason.contains(wanted), "{:?}", preparation.left);
    }
}

#[test]
fn two_values_of_one_line_are_refused() {
    let host = Host::of(&[(CONF, "a=1|")]);
    let plan = plan_of(vec![(key("a"), "2"), (key("a"), "3")]);
    let error = prepare(&plan, &host.snapshot(), &host.log(), Part::Files).unwrap_err().to_string();
    assert!(error.contains("change 0 (a = 2)") && error.contains("change 1 (a = 3)"), "{error}");
}

proptest! {
    /// Whatever the file contains, at most three lines differ (the comment, the line, a missing line end), and setting
    /// the line again changes nothing.
    #[test]
    fn everything_else_stays_byte_for_byte(text in "[a=\\[\\]# \t\r|x]{0,40}", value in "[a-z]{1,4}") {
        let (new, left) = set(&text, &[("a", &value)]);
        let old = text.replace('|', "\n");
        if left.is_empty() {
            let lines: Vec<&str> = old.split_inclusive('\n').collect();
            let kept: Vec<&str> = new.split_inclusive('\n').filter(|line| lines.contains(line)).collect();
            prop_assert!(kept.len() + 1 >= lines.len() || !old.ends_with('\n'), "{old:?} {new:?}");
            let set = new.lines().filter(|line| {
                line.split_once('=').is_some_and(|(name, found)| name.trim() == "a" && found.trim() == value)
            });
            prop_assert!(set.count() >= 1, "{:?}", new);
        } else {
            prop_assert_eq!(new, old);
        }
    }
}

const OWN: &str = "/etc/sysctl.d/99-zz-lowlat.conf";

fn own(text: &str) -> Plan {
    plan_of(vec![(Target::OwnedFile { path: OWN.to_owned() }, text)])
}

#[test]
fn a_file_of_lowlat_s_says_who_wrote_it() {
    let host = Host::of(&[]);
    for text in ["a = 1|", "# Written by lowlat; changes are lost when it applies a plan.|a = 1|"] {
        let preparation = prepare(&own(text), &host.snapshot(), &host.log(), Part::Files).unwrap();
        let State::File(file) = &preparation.steps[0].step.new else { panic!() };
        let text = String::from_utf8_lossy(&file.bytes);
        assert_eq!(text, "# Written by lowlat; changes are lost when it applies a plan.\na = 1\n");
        assert_eq!((file.mode, file.uid, file.gid), (0o644, 0, 0));
    }
}

#[test]
fn a_file_of_others_is_not_overwritten() {
    let host = Host::of(&[(OWN, "a = 0|")]);
    let preparation = prepare(&own("a = 1|"), &host.snapshot(), &host.log(), Part::Files).unwrap();
    assert_eq!(preparation.steps, []);
    assert!(preparation.left[0].reason.contains("that lowlat did not write; move it away first"));
    // Its own is, with the mode that somebody gave it.
    let host = Host::of(&[(OWN, "# Written by lowlat|a = 0|")]);
    fs::set_permissions(host.path(OWN), fs::Permissions::from_mode(0o600)).unwrap();
    let preparation = prepare(&own("a = 1|"), &host.snapshot(), &host.log(), Part::Files).unwrap();
    let State::File(file) = &preparation.steps[0].step.new else { panic!() };
    assert_eq!(file.mode, 0o600);
}
