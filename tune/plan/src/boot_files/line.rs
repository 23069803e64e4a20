//! Command lines inside files: adds and finds parameters.

use crate::boot_line;
use lowlat_host::cmdline::{CommandLine, same_name, split};
use lowlat_settings::change::BootToken;
use thiserror::Error;

/// Parameters that may occur several times: each `hugepages=` belongs to the `hugepagesz=` before it.
const STANDS_OFTEN: [&str; 2] = ["hugepagesz", "hugepages"];

/// A parameter that no boot loader's file can hold.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "the parameter {token:?} cannot be written to a boot loader's file; expected a name of letters, digits, \".\", \
     \"_\" and \"-\", and a value without quotes, \"$\", \"\\\", \"`\" and control characters"
)]
pub struct TokenFault {
    /// The parameter: name and value.
    pub token: String,
}

/// Checks that every parameter can be written. Files of boot loaders pass through a shell and GRUB's own parser, so
/// characters with a meaning to either are rejected.
pub fn check(tokens: &[BootToken]) -> Result<(), TokenFault> {
    let is_name = |name: &str| {
        !name.is_empty()
            && name.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
            && name.chars().any(|c| c != '-')
    };
    let is_value = |value: &str| !value.chars().any(|c| "\"'$\\`".contains(c) || c.is_control());
    match tokens.iter().find(|t| !is_name(&t.name) || !t.value.as_deref().is_none_or(is_value)) {
        None => Ok(()),
        Some(token) => Err(TokenFault {
            token: format!("{}={}", token.name, token.value.as_deref().unwrap_or_default()),
        }),
    }
}

/// The same parameters, each to be removed.
pub fn taken_off(tokens: &[BootToken]) -> Vec<BootToken> {
    tokens.iter().map(|token| BootToken { value: None, ..token.clone() }).collect()
}

/// A part of a file that is a command line, with the parameters merged in ([`crate::merge()`]). White space around it
/// stays, and a text that already contains every word is returned unchanged.
pub fn edited(text: &str, tokens: &[BootToken]) -> String {
    let merged = boot_line::merge(&CommandLine::parse(text), tokens);
    if split(text) == split(&merged) {
        return text.to_owned();
    }
    let is_space = |c: char| c == ' ' || c == '\t';
    let before = text.len() - text.trim_start_matches(is_space).len();
    let after = text.trim_end_matches(is_space).len().max(before);
    let part = |range: Option<&str>| range.unwrap_or_default().to_owned();
    part(text.get(..before)) + &merged + &part(text.get(after..))
}

/// A file that contains only a command line, such as /etc/kernel/cmdline, with the parameters merged in. Lines that
/// begin with `#` are comments; the last of the other lines gets the parameters.
pub fn edited_file(text: &str, tokens: &[BootToken]) -> String {
    let is_line = |line: &str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let last = lines.iter().rposition(|line| is_line(line));
    let off = taken_off(tokens);
    let mut new = String::with_capacity(text.len());
    for (at, line) in lines.iter().enumerate() {
        let content = line.trim_end_matches('\n');
        new += &match (is_line(line), last == Some(at)) {
            (true, true) => edited(content, tokens),
            (true, false) => edited(content, &off),
            _ => content.to_owned(),
        };
        new += line.get(content.len()..).unwrap_or_default();
    }
    if last.is_none() {
        new += &edited("", tokens);
        new.push('\n');
    }
    new
}

/// Faults of `line` with regard to the parameters, one sentence each: missing, another value, or repeated.
pub fn missing(line: &str, tokens: &[BootToken]) -> Vec<String> {
    let parsed = CommandLine::parse(line);
    let fault = |token: &BootToken| {
        let standing = boot_line::standing(&parsed, &token.name);
        let count = parsed.all(&token.name).count();
        let Some(wanted) = boot_line::spell(token) else {
            return standing.map(|standing| format!("{standing} is still present"));
        };
        let Some(standing) = standing else { return Some(format!("{wanted} is missing")) };
        if parsed.last(&token.name) != token.value.as_deref() {
            return Some(format!("found {standing}, expected {wanted}"));
        }
        let is_many = count > 1 && !STANDS_OFTEN.iter().any(|name| same_name(name, &token.name));
        is_many.then(|| format!("{} occurs {count} times: {standing}", token.name))
    };
    tokens.iter().filter_map(fault).collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::token;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn white_space_around_the_line_stays_and_an_unchanged_line_is_the_same_text() {
        let tokens = [token("nohz_full", Some("1-7"))];
        assert_eq!(edited("  root=x  ro ", &tokens), "  root=x ro nohz_full=1-7 ");
        assert_eq!(edited("  root=x   nohz_full=1-7 ", &tokens), "  root=x   nohz_full=1-7 ");
        assert_eq!(edited("", &tokens), "nohz_full=1-7");
        assert_eq!(edited("   ", &tokens), "   nohz_full=1-7");
        assert_eq!(edited("ro\r", &tokens), "ro nohz_full=1-7");
    }

    #[test]
    fn a_file_of_one_line_keeps_its_comments_and_its_end() {
        let tokens = [token("nohz_full", Some("1-7"))];
        for (text, expected) in [
            ("root=x ro\n", "root=x ro nohz_full=1-7\n"),
            ("# why\nroot=x\nnohz_full=2 ro", "# why\nroot=x\nnohz_full=1-7 ro"),
            ("nohz_full=2 ro\nroot=x\n\n", "ro\nroot=x nohz_full=1-7\n\n"),
            ("", "nohz_full=1-7\n"),
        ] {
            assert_eq!(edited_file(text, &tokens), expected);
            assert_eq!(edited_file(expected, &tokens), expected);
        }
    }

    #[test]
    fn what_a_line_lacks_is_told() {
        let tokens = [token("nohz_full", Some("1-7")), token("nohz", None), token("quiet", Some(""))];
        assert_eq!(missing("nohz_full=1-7 quiet", &tokens), [""; 0]);
        assert_eq!(
            missing("nohz_full=2 nohz-full=3 nohz=off", &tokens),
            [
                "found nohz_full=2 nohz-full=3, expected nohz_full=1-7",
                "nohz=off is still present",
                "quiet is missing"
            ]
        );
        assert_eq!(
            missing("nohz_full=1-7 quiet -- nohz_full=1-7 nohz_full=1-7", &tokens),
            [""; 0],
            "parameters of init do not count"
        );
        assert_eq!(
            missing("nohz_full=1-7 nohz_full=1-7 quiet", &tokens),
            ["nohz_full occurs 2 times: nohz_full=1-7 nohz_full=1-7"]
        );
    }

    #[test]
    fn what_means_something_to_a_shell_is_refused() {
        for (name, value) in [
            ("a", "x\"y"),
            ("a", "x'y"),
            ("a", "$(id)"),
            ("a", "x\ny"),
            ("a", "x\\y"),
            ("a`", ""),
            ("", "x"),
            ("--", ""),
            ("a b", "x"),
            ("a;b", "x"),
        ] {
            let fault = check(&[token(name, Some(value))]).unwrap_err();
            assert!(fault.to_string().contains("cannot be written"), "{fault}");
        }
        assert_eq!(
            check(&[token("intel_idle.max_cstate", Some("0")), token("dyndbg", Some("a +p;b"))]),
            Ok(())
        );
    }

    proptest! {
        #[test]
        fn an_edited_line_lacks_nothing_and_keeps_the_rest(line in "[a-c=\" -]{0,60}", value in "[0-9,-]{1,6}") {
            let tokens = [token("a", Some(&value)), token("new", Some("1")), token("b", None)];
            let once = edited(&line, &tokens);
            prop_assert_eq!(missing(&once, &tokens), Vec::<String>::new(), "{} -> {}", line, once);
            prop_assert_eq!(&edited(&once, &tokens), &once);
            let others = |line: &str| {
                let parsed = CommandLine::parse(line);
                let keep = |name: &str| !["a", "b", "new"].iter().any(|own| same_name(own, name));
                parsed.tokens().iter().filter(|(name, _)| keep(name)).cloned().collect::<Vec<_>>()
            };
            prop_assert_eq!(others(&once), others(&line));
        }
    }
}
