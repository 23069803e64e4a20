//! Edits /etc/default/grub, which GRUB's generator reads as a shell does. Only the lines that set the command line
//! change; all others stay byte for byte.
//!
//! Such a file can hold any shell. lowlat edits plain assignments (in double quotes, single quotes, or without) and
//! refuses a line that it does not understand rather than guess what a shell makes of it.

use super::{edited, taken_off};
use lowlat_settings::change::BootToken;
use std::ops::Range;
use thiserror::Error;

/// The variable that holds parameters of every entry.
pub const EVERY_ENTRY: &str = "GRUB_CMDLINE_LINUX";
/// The variable that holds parameters of usual entries; recovery entries do not use it.
pub const USUAL_ENTRIES: &str = "GRUB_CMDLINE_LINUX_DEFAULT";

/// A line that lowlat does not edit.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("line {number}: found {raw:?}, expected one plain assignment on the line, {EVERY_ENTRY}=\"...\"")]
pub struct DefaultsFault {
    /// Line number in the file, from 1.
    pub number: usize,
    pub raw: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quote {
    Double,
    Single,
    None,
}

/// One line that sets one of the two variables.
#[derive(Debug)]
struct VariableLine {
    variable: &'static str,
    /// Position of the value in the text, inside its quotes.
    value: Range<usize>,
    quote: Quote,
}

/// Returns the text with `tokens` set: in [`USUAL_ENTRIES`] if the file sets that, otherwise in [`EVERY_ENTRY`]. They
/// are removed from the other one. A file that sets neither gets a line for the first.
pub fn edit(text: &str, tokens: &[BootToken]) -> Result<String, DefaultsFault> {
    edit_preferring(text, tokens, USUAL_ENTRIES)
}

/// As [`edit`], for generators whose entries come from [`EVERY_ENTRY`] alone.
pub fn edit_for_every_entry(text: &str, tokens: &[BootToken]) -> Result<String, DefaultsFault> {
    edit_preferring(text, tokens, EVERY_ENTRY)
}

fn edit_preferring(text: &str, tokens: &[BootToken], first: &'static str) -> Result<String, DefaultsFault> {
    let assignments = assignments(text)?;
    let raw = |a: &VariableLine| text.get(a.value.clone()).unwrap_or_default();
    // A line that extends an earlier value (`"$X more"`) cannot hold a parameter that may occur only once.
    let refers = |a: &VariableLine| raw(a).contains(&format!("${}", a.variable)) || raw(a).contains("${");
    let place_in = |variable: &str| {
        let of = |a: &&VariableLine| a.variable == variable;
        assignments
            .iter()
            .rposition(|a| of(&a) && !refers(a))
            .or_else(|| assignments.iter().rposition(|a| of(&a)))
    };
    let second = if first == USUAL_ENTRIES { EVERY_ENTRY } else { USUAL_ENTRIES };
    let place = place_in(first).or_else(|| place_in(second));
    let off = taken_off(tokens);
    let mut new = String::with_capacity(text.len());
    let mut done = 0;
    for (at, assignment) in assignments.iter().enumerate() {
        let tokens = if Some(at) == place { tokens } else { &off };
        let (range, with) = replacement(text, assignment, tokens);
        new += text.get(done..range.start).unwrap_or_default();
        new += &with;
        done = range.end;
    }
    new += text.get(done..).unwrap_or_default();
    let line = edited("", tokens);
    if place.is_none() && !line.is_empty() {
        if !new.is_empty() && !new.ends_with('\n') {
            new.push('\n');
        }
        new += &[first, "=\"", &escaped(&line), "\"\n"].concat();
    }
    Ok(new)
}

/// Returns the range to replace and its new text. An unquoted value gets double quotes if it changes.
fn replacement(text: &str, assignment: &VariableLine, tokens: &[BootToken]) -> (Range<usize>, String) {
    let range = assignment.value.clone();
    let raw = text.get(range.clone()).unwrap_or_default();
    let new = edited(raw, tokens);
    if new == raw {
        return (range, new);
    }
    let with = match assignment.quote {
        Quote::Single => new,
        // Double quotes of the old value are already escaped; those of new values are not.
        Quote::Double => escaped(&new),
        Quote::None => format!("\"{}\"", escaped(&new)),
    };
    (range, with)
}

/// Escapes each double quote that is not escaped yet.
fn escaped(text: &str) -> String {
    let mut new = String::with_capacity(text.len());
    let mut is_escaped = false;
    for letter in text.chars() {
        if letter == '"' && !is_escaped {
            new.push('\\');
        }
        is_escaped = letter == '\\' && !is_escaped;
        new.push(letter);
    }
    new
}

/// The words of both variables that reach the kernel's line unchanged; references to variables and quoted words are
/// left out.
pub fn plain_words(text: &str) -> Result<Vec<String>, DefaultsFault> {
    let assignments = assignments(text)?;
    let words = |variable: &str| -> Vec<String> {
        let of: Vec<&VariableLine> = assignments.iter().filter(|a| a.variable == variable).collect();
        // The last assignment without references counts. Later ones extend it; their words are left out.
        let raw = |a: &&VariableLine| text.get(a.value.clone()).unwrap_or_default();
        let last = of.iter().rev().find(|a| !raw(a).contains('$')).or(of.last());
        last.map_or("", raw)
            .split_ascii_whitespace()
            .take_while(|word| *word != "--")
            .filter(|word| !word.contains(['$', '\\', '"', '\'', '`', '{', '}']))
            .map(str::to_owned)
            .collect()
    };
    Ok([words(EVERY_ENTRY), words(USUAL_ENTRIES)].concat())
}

fn assignments(text: &str) -> Result<Vec<VariableLine>, DefaultsFault> {
    let mut found = Vec::new();
    let mut start = 0;
    for (at, line) in text.split_inclusive('\n').enumerate() {
        let content = line.trim_end_matches(['\n', '\r']);
        let fault = || DefaultsFault { number: at + 1, raw: content.chars().take(160).collect() };
        if let Some(mut assignment) = assignment(content).map_err(|()| fault())? {
            assignment.value = assignment.value.start + start..assignment.value.end + start;
            found.push(assignment);
        }
        start += line.len();
    }
    Ok(found)
}

/// Parses a line that sets one of the variables. Returns an error if lowlat does not understand how it does.
fn assignment(line: &str) -> Result<Option<VariableLine>, ()> {
    let rest = line.trim_start();
    let rest = rest.strip_prefix("export ").map_or(rest, str::trim_start);
    // The longer name is first, because the other one is its prefix.
    let names = [USUAL_ENTRIES, EVERY_ENTRY];
    let behind = |name: &'static str| {
        let rest = rest.strip_prefix(name)?;
        rest.strip_prefix('=').or_else(|| rest.strip_prefix("+=")).map(|value| (name, value))
    };
    let Some((variable, value)) = names.into_iter().find_map(behind) else {
        return if names.iter().any(|name| is_set_within(line, name)) { Err(()) } else { Ok(None) };
    };
    let at = line.len() - value.len();
    let (quote, inner) = match value.chars().next() {
        Some('"') => (Quote::Double, closed_double(value).ok_or(())?),
        Some('\'') => (Quote::Single, value.get(1..).and_then(|v| v.split_once('\'')).ok_or(())?.0),
        _ => (Quote::None, value.split([' ', '\t', '#', ';']).next().unwrap_or_default()),
    };
    let quotes = usize::from(quote != Quote::None);
    let behind = value.get(inner.len() + 2 * quotes..).unwrap_or_default();
    let is_end = behind.trim_start().is_empty()
        || behind.trim_start().starts_with('#') && behind.starts_with([' ', '\t']);
    let is_run = quote != Quote::Single && (inner.contains('`') || inner.contains("$("));
    let is_odd = quote == Quote::None && inner.contains(['\'', '"', '\\', '&', '|', '<', '>', '(', ')']);
    if !is_end || is_run || is_odd {
        return Err(());
    }
    let start = at + quotes;
    Ok(Some(VariableLine { variable, value: start..start + inner.len(), quote }))
}

/// True if a line sets the variable elsewhere than at its start, for example after a `;` or a `&&`.
fn is_set_within(line: &str, name: &str) -> bool {
    let code = line.trim_start();
    !code.starts_with('#')
        && [format!("{name}="), format!("{name}+=")].iter().any(|set| {
            code.match_indices(set.as_str()).any(|(at, _)| {
                let before = code.get(..at).and_then(|before| before.chars().next_back());
                before.is_some_and(|c| c.is_whitespace() || ";&|{(".contains(c))
            })
        })
}

/// Returns the content of the double quotes that `value` begins with; none if they are not closed on the line.
fn closed_double(value: &str) -> Option<&str> {
    let inner = value.strip_prefix('"')?;
    let mut is_escaped = false;
    for (at, letter) in inner.char_indices() {
        match letter {
            '"' if !is_escaped => return inner.get(..at),
            '\\' => is_escaped = !is_escaped,
            _ => is_escaped = false,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::testing::{plan, token};
    use super::*;
    use proptest::prelude::*;

    const SUSE: &str = "# If you change this file, run 'grub2-mkconfig -o /boot/grub2/grub.cfg' afterwards to update\n\
        GRUB_DISTRIBUTOR=\nGRUB_DEFAULT=saved\nGRUB_CMDLINE_LINUX_DEFAULT=\"splash=silent mitigations=auto quiet\"\n\
        GRUB_CMDLINE_LINUX=\"nohz_full=2\"\n#GRUB_CMDLINE_LINUX_RECOVERY=single\n";

    #[test]
    fn one_line_is_edited_and_the_other_loses_what_stands_twice() {
        let new = edit(SUSE, &plan()).unwrap();
        let expected = SUSE
            .replace(
                "mitigations=auto quiet",
                "mitigations=auto quiet isolcpus=managed_irq,domain,1-7,9-15 nohz_full=1-7,9-15 rcu_nocb_poll",
            )
            .replace("\"nohz_full=2\"", "\"\"");
        assert_eq!(new, expected);
        assert_eq!(edit(&new, &plan()).unwrap(), new);
        assert_eq!(
            plain_words(&new).unwrap().join(" "),
            "splash=silent mitigations=auto quiet isolcpus=managed_irq,domain,1-7,9-15 nohz_full=1-7,9-15 rcu_nocb_poll"
        );
    }

    fn one(text: &str) -> String {
        edit(text, &[token("nohz_full", Some("1-7"))]).unwrap()
    }

    #[test]
    fn every_way_to_write_an_assignment() {
        for (text, expected) in [
            ("", "GRUB_CMDLINE_LINUX_DEFAULT=\"nohz_full=1-7\"\n"),
            ("A=b", "A=b\nGRUB_CMDLINE_LINUX_DEFAULT=\"nohz_full=1-7\"\n"),
            ("GRUB_CMDLINE_LINUX=\n", "GRUB_CMDLINE_LINUX=\"nohz_full=1-7\"\n"),
            ("GRUB_CMDLINE_LINUX=quiet # c\n", "GRUB_CMDLINE_LINUX=\"quiet nohz_full=1-7\" # c\n"),
            (
                "  export GRUB_CMDLINE_LINUX='a \"b c\"'\r\n",
                "  export GRUB_CMDLINE_LINUX='a \"b c\" nohz_full=1-7'\r\n",
            ),
            (
                "GRUB_CMDLINE_LINUX_DEFAULT=\"dyndbg=\\\"file a +p\\\" nohz-full=1 ro\"\n",
                "GRUB_CMDLINE_LINUX_DEFAULT=\"dyndbg=\\\"file a +p\\\" nohz_full=1-7 ro\"\n",
            ),
            (
                "GRUB_CMDLINE_LINUX=\"a\"\nGRUB_CMDLINE_LINUX=\"b\"\n",
                "GRUB_CMDLINE_LINUX=\"a\"\nGRUB_CMDLINE_LINUX=\"b nohz_full=1-7\"\n",
            ),
        ] {
            assert_eq!(one(text), expected);
            assert_eq!(one(expected), expected);
        }
    }

    #[test]
    fn the_line_that_tuned_adds_stays_as_it_is() {
        let tuned = "GRUB_CMDLINE_LINUX_DEFAULT=\"${GRUB_CMDLINE_LINUX_DEFAULT:+$GRUB_CMDLINE_LINUX_DEFAULT }\\$tuned_params\"\n";
        let text = format!("GRUB_CMDLINE_LINUX_DEFAULT=\"quiet\"\n{tuned}");
        assert_eq!(one(&text), format!("GRUB_CMDLINE_LINUX_DEFAULT=\"quiet nohz_full=1-7\"\n{tuned}"));
    }

    #[test]
    fn a_value_with_quotes_is_written_for_the_shell() {
        let tokens = [token("dyndbg", Some("file a +p"))];
        let new = edit("GRUB_CMDLINE_LINUX=\"ro\"\n", &tokens).unwrap();
        assert_eq!(new, "GRUB_CMDLINE_LINUX=\"ro dyndbg=\\\"file a +p\\\"\"\n");
        assert_eq!(edit(&new, &tokens).unwrap(), new);
    }

    #[test]
    fn what_only_a_shell_understands_is_refused_with_its_line() {
        for line in [
            "GRUB_CMDLINE_LINUX=\"a",
            "GRUB_CMDLINE_LINUX=\"a\"b",
            "GRUB_CMDLINE_LINUX=\"$(cat x)\"",
            "GRUB_CMDLINE_LINUX=`x`",
            "GRUB_CMDLINE_LINUX='a",
            "GRUB_CMDLINE_LINUX=a; b",
            "if x; then GRUB_CMDLINE_LINUX=\"a\"; fi",
        ] {
            let fault = edit(&format!("A=b\n{line}\n"), &plan()).unwrap_err();
            assert_eq!((fault.number, fault.raw.as_str()), (2, line));
        }
    }

    proptest! {
        #[test]
        fn editing_twice_changes_nothing_more_and_touches_no_other_line(
            value in "[a-c=, -]{0,40}", other in "[#A-Z_=\"a ]{0,30}", quote in "[\"']?",
        ) {
            prop_assume!(!other.contains("GRUB"));
            let value = if quote.is_empty() { value.replace(' ', "") } else { value };
            let text = format!("{other}\nGRUB_CMDLINE_LINUX={quote}{value}{quote}\n{other}");
            let tokens = [token("a", Some("1")), token("b", None)];
            let once = edit(&text, &tokens).unwrap();
            prop_assert_eq!(&edit(&once, &tokens).unwrap(), &once);
            let first_and_last = (once.lines().next(), once.ends_with(&format!("\n{other}")));
            prop_assert_eq!(first_and_last, (text.lines().next(), true));
        }

        #[test]
        fn no_text_panics(text in "[GRUB_CMDLINE_LINUX=\"'$`\\\\ \n;#a]{0,120}") {
            let _ = (edit(&text, &plan()), plain_words(&text));
        }
    }
}
