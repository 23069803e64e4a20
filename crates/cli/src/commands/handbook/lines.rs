//! The command lines of documents.

use super::{documents, pages, read, top};
use crate::commands::cli;
use clap::{Command, error::ErrorKind};

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

/// What the declaration says against a command, if anything.
fn refused(words: &[String]) -> Option<String> {
    let error = cli().try_get_matches_from(words).err()?;
    let is_shown = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    (!is_shown).then(|| error.to_string())
}

#[test]
fn every_command_line_in_a_block_parses() {
    let (mut seen, mut wrong) = (0, Vec::new());
    for line in lines() {
        for words in commands(&line.text) {
            seen += 1;
            if let Some(why) = refused(&words) {
                wrong.push(format!("{}: {}\n{why}", line.place, line.text));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen > 150, "{seen} command lines: the search finds too few");
}

#[test]
fn every_example_in_the_help_parses() {
    let (mut seen, mut wrong) = (0, Vec::new());
    for command in pages::all() {
        for line in command.examples() {
            for words in commands(&line) {
                seen += 1;
                if let Some(why) = refused(&words) {
                    wrong.push(format!("{}: {line}\n{why}", command.title()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen > 100, "{seen} examples: the search finds too few");
}

/// Why a command in running text does not exist; it may be incomplete.
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
    // Pages of settings quote values, among them the name of lowlat's TuneD profile.
    let of_values = top().join("docs/settings");
    for path in documents().into_iter().filter(|path| !path.starts_with(&of_values)) {
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
