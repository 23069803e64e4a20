//! The command lines of documents.

use super::{FOLDERS, documents, files_below, pages, read, top};
use crate::commands::{COMMANDS, cli};
use clap::{Command, error::ErrorKind};
use std::{collections::BTreeSet, ffi::OsStr, path::PathBuf};

/// A command line of a document, with its place.
struct Line {
    place: String,
    text: String,
}

/// The command lines in fenced blocks: each line of a shell script, and each line after a prompt of a transcript.
fn lines() -> Vec<Line> {
    documents()
        .iter()
        .flat_map(|path| {
            let name = path.strip_prefix(top()).expect("a file of the tree").display().to_string();
            fenced(&name, &read(path))
        })
        .collect()
}

fn fenced(name: &str, text: &str) -> Vec<Line> {
    let (mut found, mut fence, mut unfinished): (Vec<Line>, _, String) = (Vec::new(), None, String::new());
    for (number, line) in (1..).zip(text.lines()) {
        if let Some(language) = line.trim_start().strip_prefix("```") {
            fence = if fence.is_some() { None } else { language.split(',').next() };
            continue;
        }
        let command = match fence {
            Some("sh") => line,
            Some("console") if !unfinished.is_empty() => line.trim_start_matches("> "),
            Some("console") => match line.split_once("$ ") {
                Some((host, command)) if host.chars().all(char::is_alphanumeric) => command,
                _ => continue,
            },
            _ => continue,
        };
        unfinished.push_str(command);
        if unfinished.ends_with('\\') {
            unfinished.pop();
            continue;
        }
        found.push(Line { place: format!("{name}:{number}"), text: std::mem::take(&mut unfinished) });
    }
    found
}

/// The words of each `lowlat` command in a line of a shell.
fn commands(line: &str) -> Vec<Vec<String>> {
    let Some(words) = shlex::split(line) else { return Vec::new() };
    let is_end = |word: &str| ["|", "||", "&&", "&", ";"].contains(&word);
    let starts_redirection = |word: &str| word.trim_start_matches(char::is_numeric).starts_with(['>', '<']);
    let mut commands = Vec::new();
    for command in words.split(|word| is_end(word)) {
        // Before the program: sudo with its options, assignments, and the words of programs that start another.
        let Some(at) = command.iter().position(|word| word.rsplit('/').next() == Some("lowlat")) else {
            continue;
        };
        let starts_it = |(before, word): (usize, &String)| {
            let first = word.split('=').next().unwrap_or_default();
            ["sudo", "-E", "nice", "timeout", "chrt", "-f", "exec", "ssh", "time"].contains(&word.as_str())
                || word.contains('=') && first.chars().all(|c| c.is_ascii_uppercase() || c == '_')
                || word.chars().all(|c| c.is_ascii_digit())
                || before > 0 && command[before - 1] == "ssh"
        };
        if command[..at].iter().enumerate().all(starts_it) {
            let end = command[at..]
                .iter()
                .position(|word| starts_redirection(word))
                .map_or(command.len(), |n| at + n);
            let mut words = command[at..end].to_vec();
            words[0] = "lowlat".to_owned();
            if let Some(last) = words.last_mut() {
                last.truncate(last.trim_end_matches(';').len());
            }
            commands.push(words);
        }
    }
    commands
}

/// Returns clap's error for a command; `None` if it parses or asks for help or the version.
fn refused(words: &[String]) -> Option<String> {
    let error = cli().try_get_matches_from(words).err()?;
    let is_shown = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    (!is_shown).then(|| error.to_string())
}

/// Asserts that the commands of each line, of which there are more than `least`, parse.
fn assert_all_parse(lines: impl IntoIterator<Item = Line>, least: usize) {
    let (mut seen, mut wrong) = (0, Vec::new());
    for Line { place, text } in lines {
        for words in commands(&text) {
            seen += 1;
            wrong.extend(refused(&words).map(|why| format!("{place}: {text}\n{why}")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen > least, "{seen} command lines: the search finds too few");
}

#[test]
fn every_command_line_in_a_block_parses() {
    assert_all_parse(lines(), 150);
}

#[test]
fn every_example_in_the_help_parses() {
    let of = |command: &pages::Documented| {
        let line = |text| Line { place: command.title(), text };
        command.examples().into_iter().map(line).collect::<Vec<_>>()
    };
    assert_all_parse(pages::all().iter().flat_map(of), 100);
}

/// Returns why a command in running text does not exist; `None` if it does. The command may be incomplete.
fn unknown(words: &[&str]) -> Option<String> {
    let root = cli();
    let (mut command, mut is_named): (&Command, bool) = (&root, false);
    for word in words.iter().take_while(|word| **word != "--") {
        if let Some(flag) = word.strip_prefix("--") {
            let flag = flag.split(['=', '[']).next().unwrap_or_default();
            let is_there = command.get_arguments().any(|argument| {
                argument.get_long() == Some(flag)
                    || argument.get_all_aliases().is_some_and(|all| all.contains(&flag))
            });
            // A word after it may be its value.
            is_named = true;
            if !is_there && !["help", "version", ""].contains(&flag) {
                return Some(format!("{} has no --{flag}", command.get_name()));
            }
        } else if command.has_subcommands() && !is_named {
            match command.find_subcommand(word) {
                Some(below) => command = below,
                // An alternative, an ellipsis, or the place of a name.
                None if word.contains(['|', '\\', '.', '/']) || word.chars().any(char::is_uppercase) => {
                    is_named = true;
                }
                None if *word == "help" => is_named = true,
                None => return Some(format!("{} has no subcommand {word}", command.get_name())),
            }
        }
    }
    None
}

#[test]
fn every_command_in_running_text_exists() {
    let (mut seen, mut wrong) = (0, Vec::new());
    for path in documents() {
        let text = read(&path);
        // Without blocks, whose fences are backticks too.
        let prose: Vec<&str> = text.split("\n```").step_by(2).collect();
        for quoted in prose.iter().flat_map(|part| part.split('`').skip(1).step_by(2)) {
            let quoted = quoted.strip_prefix("sudo ").unwrap_or(quoted);
            let Some(rest) = quoted.strip_prefix("lowlat ") else { continue };
            seen += 1;
            let words: Vec<&str> = rest.split_whitespace().collect();
            if let Some(why) = unknown(&words) {
                wrong.push(format!("{}: `{quoted}`: {why}", path.display()));
            }
        }
    }
    assert!(seen > 100, "{seen} commands: the search finds too few");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The Rust sources of the products, without their tests.
fn sources() -> Vec<PathBuf> {
    let without = ["tests", "handbook", "target", "benches", "examples"];
    let of_folder = |folder: &&str| files_below(&top().join(folder), "rs", &without);
    let is_test =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().contains("test"));
    FOLDERS.iter().flat_map(of_folder).filter(|path| !is_test(path)).collect()
}

/// The texts of a Rust source that programs print: its string literals, with continued lines joined, and with a capital
/// word for each value that is filled in.
fn literals(source: &str) -> Vec<String> {
    let source = source.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let mut found = Vec::new();
    let mut rest = source;
    while let Some(at) = rest.find(['"', '/', '\'']) {
        let start = &rest[at..];
        if start.starts_with("//") {
            rest = start.split_once('\n').map_or("", |(_, next)| next);
        } else if let Some(text) = start.strip_prefix('"') {
            let mut is_escaped = false;
            let end = text.find(|character| {
                let is_end = character == '"' && !is_escaped;
                is_escaped = character == '\\' && !is_escaped;
                is_end
            });
            let end = end.unwrap_or(text.len());
            let lines = text[..end].split("\\\n").enumerate();
            let joined: String =
                lines.map(|(line, text)| if line == 0 { text } else { text.trim_start() }).collect();
            found.push(filled(&joined));
            rest = text.get(end + 1..).unwrap_or_default();
        } else {
            // A character, of which a quote or a slash must not start anything; or a lifetime.
            let is_character =
                ["'\"'", "'/'", "'\\''", "'\\\\'"].iter().find(|text| start.starts_with(**text));
            rest = &start[is_character.map_or(1, |text| text.len())..];
        }
    }
    found
}

fn filled(text: &str) -> String {
    let mut parts = text.split('{');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| match part.split_once('}') {
        Some((_, rest)) => text + "VALUE" + rest,
        None => text + part,
    })
}

/// The commands in a text, each until what cannot be part of it. Without a backtick it may be a sentence about lowlat.
fn commands_in(text: &str) -> Vec<&str> {
    let is_named = |rest: &str| COMMANDS.iter().any(|command| rest.split(' ').next() == Some(command.name));
    let starts = text.match_indices("lowlat ").filter(|(at, word)| {
        let before = &text[..*at];
        let is_start = ["sudo ", "hint: ", "run ", "run: "].iter().any(|end| before.ends_with(end));
        before.ends_with('`') || (before.is_empty() || is_start) && is_named(&text[at + word.len()..])
    });
    let ends = ['`', '\n', '\\', '"', ';', '|', '>', '(', ')'];
    starts.filter_map(|(at, word)| text[at + word.len()..].split(ends).next()).collect()
}

/// The flags of a command and of those below it.
fn flags_below(command: &Command, flags: &mut BTreeSet<String>) {
    for argument in command.get_arguments() {
        flags.extend(argument.get_long().map(str::to_owned));
        flags.extend(argument.get_all_aliases().into_iter().flatten().map(str::to_owned));
    }
    command.get_subcommands().for_each(|below| flags_below(below, flags));
}

/// The flags in the hint of a text that are those of the command itself: outside of backticks, in which other programs
/// and other commands are named.
fn flags_in_hint(text: &str) -> Option<Vec<String>> {
    let (_, hint) = text.split_once("hint: ")?;
    let own = hint.split('`').step_by(2).filter(|part| !part.contains("lowlat "));
    let words = own
        .flat_map(str::split_whitespace)
        .filter_map(|word| word.trim_start_matches('(').strip_prefix("--"));
    let flags = words
        .map(|word| word.chars().take_while(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || *c == '-'));
    Some(flags.map(String::from_iter).filter(|flag| !flag.is_empty()).collect())
}

#[test]
fn every_command_and_flag_in_a_text_of_the_program_exists() {
    let (mut root, mut all) = (cli(), BTreeSet::from(["help".to_owned(), "version".to_owned()]));
    root.build();
    flags_below(&root, &mut all);
    let commands = top().join("cli/src/commands");
    let (mut wrong, mut seen, mut hints) = (Vec::new(), 0, 0);
    for path in &sources() {
        // A hint of `lowlat jitter` names flags of `lowlat jitter`.
        let of =
            path.strip_prefix(&commands).ok().and_then(|below| below.iter().next()).and_then(OsStr::to_str);
        let mut flags = BTreeSet::new();
        match of.and_then(|name| root.find_subcommand(name.trim_end_matches(".rs"))) {
            Some(command) => flags_below(command, &mut flags),
            None => flags.clone_from(&all),
        }
        for text in literals(&read(path)) {
            for command in commands_in(&text) {
                seen += 1;
                let words: Vec<&str> =
                    command.split_whitespace().map(|word| word.trim_end_matches([',', '.', ':'])).collect();
                if let Some(why) = unknown(&words) {
                    wrong.push(format!("{}: lowlat {command}: {why}", path.display()));
                }
            }
            let Some(named) = flags_in_hint(&text) else { continue };
            hints += 1;
            for flag in named.iter().filter(|flag| !flags.contains(*flag)) {
                wrong.push(format!("{}: the command has no --{flag}: {text}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen > 100 && hints > 200, "{seen} commands and {hints} hints: the search finds too few");
}

#[test]
fn texts_of_a_source_are_found_as_the_compiler_reads_them() {
    let source = "// \"lowlat a\"\nlet a = 'x'; let b = '\"';\nf(\"cannot\\nhint: lowlat b {c} \\\n     --d\", '\\'', \"`lowlat e`, `f`\");\n";
    let found = literals(source);
    assert_eq!(found, ["cannot\\nhint: lowlat b VALUE --d", "`lowlat e`, `f`"]);
    let commands: Vec<_> = found.iter().flat_map(|text| commands_in(text)).collect();
    assert_eq!(commands, ["e"]);
    assert_eq!(commands_in("lowlat has it; sudo lowlat audit --list"), ["audit --list"]);
    let hint = "cannot --x\nhint: use --time or (--rate=5), or `lowlat audit --list`";
    assert_eq!(flags_in_hint(hint), Some(vec!["time".to_owned(), "rate".to_owned()]));
}

#[test]
fn lines_are_found_as_a_shell_reads_them() {
    let text = "```sh\nsudo lowlat a \\\n  --b 'c|d' | column -t  # note\nFOO=1 /usr/bin/lowlat e > out; true\necho lowlat\n```\n\
                ```console\ndesk8$ lowlat f && lowlat g\nlowlat printed\n```\n```text\nlowlat h\n```\n";
    let found: Vec<_> = fenced("x", text).iter().flat_map(|line| commands(&line.text)).collect();
    let expected: [&[&str]; 4] =
        [&["lowlat", "a", "--b", "c|d"], &["lowlat", "e"], &["lowlat", "f"], &["lowlat", "g"]];
    assert_eq!(found, expected);
    assert_eq!(unknown(&["tune", "plan", "--out", "FILE"]), None);
    assert_eq!(unknown(&["tune", "plam"]).as_deref(), Some("tune has no subcommand plam"));
    assert_eq!(unknown(&["tune", "plan", "--outt"]).as_deref(), Some("plan has no --outt"));
}
