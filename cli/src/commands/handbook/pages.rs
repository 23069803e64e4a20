//! A page for each command: what it is for, and an example that is written in the page. The handbook has its help too.

use super::{is_same, markdown_below, top};
use crate::commands::{EXIT_CODES, cli};
use clap::Command;
use std::{
    collections::BTreeSet,
    fmt::Write as _,
    path::{Path, PathBuf},
};

/// The heading of the generated part; the example comes before it.
const BELOW: &str = "\n## Subcommands\n";
/// Width of the help, in columns.
const WIDTH: usize = 80;

/// A command with its words: `["tune", "plan"]`.
pub struct Documented {
    pub words: Vec<String>,
    command: Command,
}

impl Documented {
    /// Title of its page: "lowlat tune plan".
    pub fn title(&self) -> String {
        format!("lowlat {}", self.words.join(" "))
    }

    /// Name of its page: "tune-plan.md".
    pub fn file(&self) -> String {
        format!("{}.md", self.words.join("-"))
    }

    fn path(&self) -> PathBuf {
        top().join("docs/commands").join(self.file())
    }

    pub fn about(&self) -> String {
        self.command.get_about().map(|about| format!("{about}.")).unwrap_or_default()
    }

    /// The command lines of its examples.
    pub fn examples(&self) -> Vec<String> {
        let help = self.command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let examples =
            help.split_once("Examples:\n").map(|(_, examples)| examples.to_owned()).unwrap_or_default();
        let is_line = |line: &&str| line.starts_with("  ") && !line.starts_with("   ");
        examples.lines().filter(is_line).map(str::to_owned).collect()
    }

    fn below(&self) -> Vec<Self> {
        let members = self.command.get_subcommands();
        members
            .filter(|member| member.get_name() != "help" && !member.is_hide_set())
            .map(|member| Self {
                words: self.words.iter().cloned().chain([member.get_name().to_owned()]).collect(),
                command: member.clone(),
            })
            .collect()
    }
}

/// Every command, with those of a group behind it.
pub fn all() -> Vec<Documented> {
    let mut root = cli();
    root.build();
    let root = Documented { words: Vec::new(), command: root };
    root.below().into_iter().flat_map(with_members).collect()
}

fn with_members(command: Documented) -> Vec<Documented> {
    let members = command.below().into_iter().flat_map(with_members).collect::<Vec<_>>();
    [command].into_iter().chain(members).collect()
}

/// Returns the output of `--help`: the long form only if something has a long form, as clap decides.
fn help(command: &Command) -> String {
    let is_long = command.get_long_about().is_some()
        || command.get_arguments().any(|argument| {
            let has_help = argument.get_possible_values().iter().any(|value| value.get_help().is_some());
            argument.get_long_help().is_some() || has_help
        });
    let mut command = command.clone().term_width(WIDTH);
    let help = if is_long { command.render_long_help() } else { command.render_help() };
    help.to_string()
}

/// The page, with the present one's example.
fn page(documented: &Documented) -> String {
    let present = std::fs::read_to_string(documented.path()).unwrap_or_default();
    // Below the title and the first sentence, above the subcommands.
    let written = present.split(BELOW).next().unwrap_or_default();
    let example = written.splitn(3, "\n\n").nth(2).unwrap_or_default().trim_end();
    let mut page = format!("# {}\n\n{}\n", documented.title(), documented.about());
    if !example.is_empty() {
        let _ = writeln!(page, "\n{example}");
    }
    let members = documented.below();
    if !members.is_empty() {
        let _ = writeln!(page, "{BELOW}\n| command | what it does |\n|---|---|");
        for member in members {
            let _ = writeln!(page, "| [{}]({}) | {} |", member.title(), member.file(), member.about());
        }
    }
    page
}

/// The page in the handbook.
fn page_with_help(documented: &Documented) -> String {
    let help = help(&documented.command);
    let lines: Vec<&str> = help.lines().map(str::trim_end).collect();
    format!("{}\n## Help\n\n```text\n{}\n```\n", page(documented), lines.join("\n").trim_end())
}

/// The page that lists the commands.
fn index() -> String {
    let mut page = format!(
        "# Commands\n\nMost pages show an example; in the handbook each has the command's help too, which `--help` prints. Commands that need a \
                    host read a captured one with `--root FILE`, so most examples can be repeated anywhere with the captures of \
                    `fixtures/hosts`.\n\n{EXIT_CODES} `--json` prints a result for programs: \
                    JSON whose fields `document` and `schema_version` name its kind and version.\n"
    );
    for command in all() {
        let (title, file, about) = (command.title(), command.file(), command.about());
        if command.words.len() == 1 {
            let _ = write!(page, "\n**[{title}]({file})**: {about}\n");
            if !command.below().is_empty() {
                page += "\n";
            }
        } else {
            let _ = writeln!(page, "- [{title}]({file}): {about}");
        }
    }
    page
}

/// Writes them if `HANDBOOK` names the folder of the handbook's sources.
#[test]
fn the_handbook_has_the_help_of_each_command() {
    let pages: Vec<(String, String)> =
        all().iter().map(|command| (command.file(), page_with_help(command))).collect();
    assert!(pages.iter().all(|(_, page)| page.contains("\nUsage: lowlat")), "{pages:?}");
    let Some(handbook) = std::env::var_os("HANDBOOK") else { return };
    for (name, page) in pages {
        std::fs::write(Path::new(&handbook).join("commands").join(name), page).expect("a page");
    }
}

#[test]
fn the_page_of_each_command_is_as_it_is_declared() {
    let mut differing: Vec<String> = all()
        .iter()
        .filter(|command| !is_same(&command.path(), &page(command)))
        .map(|command| format!("docs/commands/{}", command.file()))
        .collect();
    if !is_same(&top().join("docs/commands/README.md"), &index()) {
        differing.push("docs/commands/README.md".to_owned());
    }
    assert!(
        differing.is_empty(),
        "not as the commands are declared: {differing:?}\n\
         hint: INSTA_UPDATE=always cargo test -p lowlat --bin lowlat handbook"
    );
    let known: BTreeSet<PathBuf> =
        all().iter().map(Documented::path).chain([top().join("docs/commands/README.md")]).collect();
    let unknown: Vec<_> = markdown_below(&top().join("docs/commands"))
        .into_iter()
        .filter(|path| !known.contains(path))
        .collect();
    assert!(unknown.is_empty(), "pages of commands that do not exist: {unknown:?}");
}
