//! Runs a menu's script as GRUB does, up to the entry that boots. Nothing is opened here: the caller passes the files.
//! Facts that lowlat cannot know (the firmware, other disks, whether a command succeeded) are unknown values, and end
//! the evaluation only if the next command depends on them.

mod commands;
mod script;
mod test;
#[cfg(test)]
mod tests;

use super::entry_order::{EntryFile, Order};
pub(super) use commands::{LINUX, bls_line, line};
use script::Part;
pub(super) use script::{Script, Statement, Word, parse};
use std::{
    collections::{BTreeMap, BTreeSet},
    ops::ControlFlow::{self, Break, Continue},
    rc::Rc,
};
use test::number;

/// Maximum number of commands, bytes of values and copies of a state together, so that every menu ends.
const STEPS_MAX: usize = 1 << 20;
/// Maximum depth of nested calls of functions, files and submenus.
const CALLS_MAX: usize = 24;
/// The device of the menu, as `$root` and `$prefix` name it.
const DEVICE: &str = "host";

/// Variables that the firmware or GRUB's build sets.
const OF_FIRMWARE: [&str; 9] = [
    "grub_cpu",
    "grub_platform",
    "cmdpath",
    "lockdown",
    "shim_lock",
    "pxe_default_server",
    "fw_path",
    "lang",
    "biosnum",
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    File(Vec<u8>),
    Directory,
    Missing,
    /// The path was not read, or this host does not show it.
    NotKnown,
}

/// Facts that a menu depends on besides its text.
pub struct MenuSurroundings<'a> {
    /// The directory of the menu, in which `$prefix` is.
    pub directory: &'a str,
    /// Reads a file of the host.
    pub read: &'a dyn Fn(&str) -> Found,
    pub entries: &'a [EntryFile],
    /// GRUB's name of the firmware, if known: "efi".
    pub platform: Option<&'a str>,
    /// The builds that the host's GRUB can be.
    pub builds: &'a [Build],
}

/// Differences between distributions' builds of GRUB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Build {
    /// Entries are searched by name before number, so "3a17-5.14" is not entry 3.
    pub is_name_first: bool,
    pub order: Order,
}

/// A value; none if it is not known.
type Value = Option<String>;

/// Words after variables are replaced.
#[derive(Debug, Default)]
pub(super) struct ExpandedWords {
    pub(super) list: Vec<Value>,
    /// An unknown value may have been no word, or several.
    pub(super) is_open: bool,
}

/// Replaces variables. A value outside quotes is split at its blanks.
pub(super) fn expand(words: &[Word], value_of: &mut dyn FnMut(&str) -> Value) -> ExpandedWords {
    let mut all = ExpandedWords::default();
    for word in words {
        let mut now: Option<Value> = None;
        let mut has_pattern = false;
        let add = |now: &mut Option<Value>, text: &str| {
            if let Some(value) = now.get_or_insert_with(|| Some(String::new())) {
                value.push_str(text);
            }
        };
        for part in &word.parts {
            match part {
                Part::Text { text, is_quoted } => {
                    has_pattern |= !is_quoted && text.contains(['*', '?']);
                    add(&mut now, text);
                }
                Part::Translated => now = Some(None),
                Part::Variable { name, is_quoted } => match value_of(name) {
                    None => {
                        all.is_open |= !is_quoted;
                        now = Some(None);
                    }
                    Some(value) if *is_quoted => add(&mut now, &value),
                    Some(value) => {
                        for (at, piece) in value.split([' ', '\t']).enumerate() {
                            if at > 0 {
                                all.list.extend(now.take());
                            }
                            if !piece.is_empty() {
                                add(&mut now, piece);
                            }
                        }
                    }
                },
            }
        }
        // A path with a pattern expands to the matching files.
        if has_pattern && matches!(&now, Some(Some(text)) if text.starts_with(['(', '/'])) {
            all.is_open = true;
            now = Some(None);
        }
        all.list.extend(now);
    }
    all
}

/// Words as GRUB passes them to the kernel: those with white space are quoted.
pub(super) fn joined(words: &[String]) -> String {
    let quoted = |word: &String| {
        if word.contains(char::is_whitespace) {
            format!("\"{}\"", word.replace('\\', "\\\\").replace('"', "\\\""))
        } else {
            word.clone()
        }
    };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

#[derive(Debug, Clone, PartialEq)]
enum EntryBody {
    Script(Script),
    Submenu(Script),
    /// An entry of `blscfg`, with its line.
    Line(Value),
}

#[derive(Debug, Clone, PartialEq)]
struct Entry {
    title: Value,
    id: Value,
    body: EntryBody,
    /// The menu has the entry in every case.
    is_certain: bool,
}

#[derive(Debug, Clone, PartialEq)]
enum Loaded {
    Nothing,
    Linux(Value),
    Other,
}

#[derive(Debug, Clone, PartialEq)]
struct State {
    variables: BTreeMap<String, Value>,
    exported: BTreeSet<String>,
    functions: BTreeMap<String, Option<Script>>,
    entries: Vec<Entry>,
    /// Result of the last command.
    status: Option<bool>,
    loaded: Loaded,
}

/// Reason why a script does not continue with its next command.
#[derive(Debug, PartialEq)]
enum Stop {
    Return,
    Break,
    Continue,
    /// Another menu decided what is loaded.
    Decided(Loaded),
    /// The rest depends on something unknown.
    Unknown(String),
}

type Flow = ControlFlow<Stop>;

fn unknown<T>(why: impl Into<String>) -> ControlFlow<Stop, T> {
    Break(Stop::Unknown(why.into()))
}

/// The line that the kernel gets from the entry that boots; none if the menu boots no Linux.
///
/// # Errors
/// What it depends on, if that is not known.
pub(super) fn next_line(
    script: &Script,
    surroundings: &MenuSurroundings<'_>,
) -> Result<Option<String>, String> {
    let path = format!("({DEVICE}){}/grub.cfg", surroundings.directory);
    let answer = |build: &Build| match Machine::new(surroundings, *build).menu(script, Some(&path)) {
        Continue(Loaded::Linux(Some(line))) => Ok(Some(line)),
        Continue(Loaded::Linux(None)) => Err("the value of a variable in its command line".to_owned()),
        Break(Stop::Unknown(why)) => Err(why),
        Continue(_) | Break(_) => Ok(None),
    };
    let mut answers = surroundings.builds.iter().map(answer);
    let first = answers.next().unwrap_or(Ok(None))?;
    if answers.all(|other| other.as_ref() == Ok(&first)) {
        Ok(first)
    } else {
        Err("the version of GRUB".into())
    }
}

struct Machine<'a> {
    surroundings: &'a MenuSurroundings<'a>,
    build: Build,
    state: State,
    arguments: Vec<Value>,
    steps: usize,
    calls: usize,
    loops: usize,
}

impl<'a> Machine<'a> {
    fn new(surroundings: &'a MenuSurroundings<'a>, build: Build) -> Self {
        let prefix = format!("({DEVICE}){}", surroundings.directory);
        let mut variables: BTreeMap<String, Value> =
            OF_FIRMWARE.iter().map(|name| ((*name).to_owned(), None)).collect();
        let features = [
            "200_final",
            "chainloader_bpb",
            "ntldr",
            "platform_search_hint",
            "default_font_path",
            "all_video_module",
            "menuentry_id",
            "menuentry_options",
            "nativedisk_cmd",
            "timeout_style",
        ];
        variables.extend(features.map(|name| (format!("feature_{name}"), Some("y".to_owned()))));
        variables.extend([("root".to_owned(), Some(DEVICE.to_owned()))]);
        variables.insert("prefix".into(), Some(prefix));
        if let Some(platform) = surroundings.platform {
            variables.insert("grub_platform".into(), Some(platform.to_owned()));
        }
        let exported = variables.keys().cloned().collect();
        let (functions, entries, loaded) = (BTreeMap::new(), Vec::new(), Loaded::Nothing);
        let state = State { variables, exported, functions, entries, status: Some(true), loaded };
        Self { surroundings, build, state, arguments: Vec::new(), steps: STEPS_MAX, calls: 0, loops: 0 }
    }

    fn pay(&mut self, steps: usize) -> Flow {
        match self.steps.checked_sub(steps) {
            Some(left) => self.steps = left,
            None => return unknown("a script that is too long to evaluate"),
        }
        Continue(())
    }

    /// Runs a script one level deeper: a function, a file, an entry.
    fn call<T>(&mut self, run: impl FnOnce(&mut Self) -> ControlFlow<Stop, T>) -> ControlFlow<Stop, T> {
        if self.calls >= CALLS_MAX {
            return unknown("scripts that call each other too deeply");
        }
        self.calls += 1;
        let result = run(self);
        self.calls -= 1;
        result
    }

    /// Runs a menu's script, that of a file or of a submenu, then its default entry.
    fn menu(&mut self, script: &[Statement], file: Option<&str>) -> ControlFlow<Stop, Loaded> {
        let flow = match file {
            Some(path) => self.run_as(path, script),
            None => self.run(script),
        };
        match flow {
            Break(Stop::Decided(loaded)) => Continue(loaded),
            Break(Stop::Unknown(why)) => unknown(why),
            _ if self.state.entries.is_empty() => Continue(Loaded::Nothing),
            _ => self.boot(),
        }
    }

    /// Runs the script of a file, whose name GRUB shows in variables while it reads it.
    fn run_as(&mut self, path: &str, script: &[Statement]) -> Flow {
        let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
        let outer = [("config_file", path), ("config_directory", directory)].map(|(name, value)| {
            self.state.exported.insert(name.to_owned());
            (name, self.state.variables.insert(name.to_owned(), Some(value.to_owned())))
        });
        let flow = self.run(script);
        for (name, value) in outer {
            match value {
                Some(value) => self.set(name, value),
                None => drop(self.state.variables.remove(name)),
            }
        }
        flow
    }

    fn boot(&mut self) -> ControlFlow<Stop, Loaded> {
        let Some(wanted) = self.value("default") else { return unknown("the value of the variable default") };
        let Some((number, rest)) = self.choose(&wanted) else { return unknown("which entries the menu has") };
        let Some(entry) = self.state.entries.get(number).cloned() else { return Continue(Loaded::Nothing) };
        let escaped = entry.id.as_ref().map(|id| id.replace('>', ">>"));
        let chosen = match self.state.variables.get("chosen") {
            Some(outer) => outer.as_ref().zip(escaped).map(|(outer, id)| format!("{outer}>{id}")),
            None => escaped,
        };
        if let EntryBody::Submenu(_) = entry.body {
            self.open_context();
        }
        self.set("chosen", chosen);
        self.state.exported.insert("chosen".into());
        self.state.variables.remove("default");
        if !rest.is_empty() {
            self.set("default", Some(rest));
        }
        self.arguments = vec![entry.title];
        match entry.body {
            EntryBody::Line(line) => Continue(Loaded::Linux(line)),
            EntryBody::Submenu(script) => self.call(|machine| machine.menu(&script, None)),
            EntryBody::Script(script) => {
                self.state.loaded = Loaded::Nothing;
                match self.call(|machine| machine.run(&script)) {
                    Break(Stop::Decided(loaded)) => Continue(loaded),
                    Break(Stop::Unknown(why)) => unknown(why),
                    _ => Continue(self.state.loaded.clone()),
                }
            }
        }
    }

    /// Starts another menu, which sees exported variables only.
    fn open_context(&mut self) {
        let exported = &self.state.exported;
        self.state.variables.retain(|name, _| exported.contains(name));
        self.state.entries.clear();
    }

    /// The number of the entry that `default` names, and the name in its submenu; none if unknown.
    fn choose(&self, wanted: &str) -> Option<(usize, String)> {
        let (name, rest) = split_name(wanted);
        let by_number = number(wanted).map(|(number, rest)| (number & u64::from(u32::MAX), rest));
        let number = match by_number {
            Some((number, _)) if !self.build.is_name_first => Some(number),
            _ => match self.named(&name).ok()? {
                Some(number) => return Some((number, rest)),
                // Builds differ in what follows a number.
                None if by_number.is_some_and(|(_, rest)| rest.starts_with('>')) => return None,
                None => by_number.filter(|(_, rest)| rest.is_empty()).map(|(number, _)| number),
            },
        };
        let number = number.and_then(|number| usize::try_from(number).ok());
        let number = number.filter(|number| *number < self.state.entries.len()).unwrap_or(0);
        self.state.entries.iter().take(number + 1).all(|entry| entry.is_certain).then_some((number, rest))
    }

    /// The number of the first entry of a name; an error if that is unknown.
    fn named(&self, name: &str) -> Result<Option<usize>, ()> {
        for (number, entry) in self.state.entries.iter().enumerate() {
            let is = |value: &Value| value.as_ref().map(|value| value == name);
            match (is(&entry.title), is(&entry.id)) {
                (Some(true), _) | (_, Some(true)) if entry.is_certain => return Ok(Some(number)),
                (Some(false), Some(false)) => {}
                _ => return Err(()),
            }
        }
        Ok(None)
    }

    fn value(&self, name: &str) -> Value {
        let none = || Some(String::new());
        match name {
            "?" => self.state.status.map(|is_success| if is_success { "0" } else { "1" }.to_owned()),
            "#" => Some(self.arguments.len().to_string()),
            "@" | "*" => None,
            name => match name.parse::<usize>() {
                Ok(0) => none(),
                Ok(number) => self.arguments.get(number - 1).cloned().unwrap_or_else(none),
                Err(_) => self.state.variables.get(name).cloned().unwrap_or_else(none),
            },
        }
    }

    fn set(&mut self, name: &str, value: Value) {
        let value = if name == "root" { value.map(|v| v.replace(['(', ')'], "")) } else { value };
        self.state.variables.insert(name.to_owned(), value);
    }

    fn expand(&mut self, words: &[Word]) -> ControlFlow<Stop, ExpandedWords> {
        let words = expand(words, &mut |name| self.value(name));
        self.pay(words.list.iter().flatten().map(String::len).sum())?;
        Continue(words)
    }

    fn run(&mut self, script: &[Statement]) -> Flow {
        script.iter().try_for_each(|statement| {
            self.pay(1)?;
            self.step(statement)
        })
    }

    fn step(&mut self, statement: &Statement) -> Flow {
        match statement {
            Statement::Command { words, block, .. } => self.command(words, block.as_ref()),
            Statement::If { arms, otherwise } => self.branch(arms, otherwise),
            Statement::Function { name, body } => {
                self.state.functions.insert(name.clone(), Some(Rc::clone(body)));
                Continue(())
            }
            Statement::Wrong { line } => unknown(format!("line {line}, which GRUB cannot parse")),
            Statement::For { name, words, body } => {
                let words = self.expand(words)?;
                if words.is_open {
                    return unknown("the words of a loop");
                }
                for word in words.list {
                    self.set(name, word);
                    if !self.turn(body)? {
                        break;
                    }
                }
                Continue(())
            }
            Statement::While { condition, body, is_until } => loop {
                self.run(condition)?;
                match self.state.status {
                    None => return unknown("the condition of a loop"),
                    Some(status) if status == *is_until => return Continue(()),
                    Some(_) => {}
                }
                if !self.turn(body)? {
                    return Continue(());
                }
            },
        }
    }

    /// Runs a loop's body once. Returns whether the loop continues.
    fn turn(&mut self, body: &Script) -> ControlFlow<Stop, bool> {
        self.loops += 1;
        let flow = self.run(body);
        self.loops -= 1;
        match flow {
            Break(Stop::Break) => Continue(false),
            Continue(()) | Break(Stop::Continue) => Continue(true),
            Break(other) => Break(other),
        }
    }

    /// Runs the branch whose condition is true. If that is unknown, runs both, and all differences are unknown.
    fn branch(&mut self, arms: &[(Script, Script)], otherwise: &Script) -> Flow {
        let Some(((condition, body), arms)) = arms.split_first() else {
            if otherwise.is_empty() {
                self.state.status = Some(true);
            }
            return self.run(otherwise);
        };
        self.run(condition)?;
        match self.state.status {
            Some(true) => self.run(body),
            Some(false) => self.branch(arms, otherwise),
            None => {
                self.pay(self.state.variables.len() + self.state.entries.len() + self.state.functions.len())?;
                let before = self.state.clone();
                let first = self.run(body);
                let taken = std::mem::replace(&mut self.state, before);
                let second = self.branch(arms, otherwise);
                match (first, second) {
                    (Break(Stop::Unknown(why)), _) | (_, Break(Stop::Unknown(why))) => unknown(why),
                    (first, second) if first == second => {
                        self.join(taken);
                        first
                    }
                    _ => unknown("a condition"),
                }
            }
        }
    }

    fn join(&mut self, other: State) {
        let state = &mut self.state;
        let unset = Some(String::new());
        let names: BTreeSet<String> = state.variables.keys().chain(other.variables.keys()).cloned().collect();
        for name in names {
            let (mine, others) = (state.variables.get(&name), other.variables.get(&name));
            let is_same = mine.unwrap_or(&unset) == others.unwrap_or(&unset)
                && state.exported.contains(&name) == other.exported.contains(&name);
            if !is_same {
                state.variables.insert(name, None);
            }
        }
        state.exported.extend(other.exported);
        state.functions.iter_mut().for_each(|(name, body)| {
            *body = body.take().filter(|b| other.functions.get(name) == Some(&Some(Rc::clone(b))));
        });
        for name in other.functions.into_keys() {
            state.functions.entry(name).or_insert(None);
        }
        let same = state.entries.iter().zip(&other.entries).take_while(|(a, b)| a == b).count();
        state.entries.extend(other.entries.into_iter().skip(same));
        state.entries.iter_mut().skip(same).for_each(|entry| entry.is_certain = false);
        if state.loaded != other.loaded {
            state.loaded = Loaded::Linux(None);
        }
        if state.status != other.status {
            state.status = None;
        }
    }
}

/// Splits names such as `1>2` into the first one and the rest; `>>` is a literal `>`.
fn split_name(names: &str) -> (String, String) {
    let mut name = String::new();
    let mut letters = names.chars();
    while let Some(letter) = letters.next() {
        if letter == '>' && !letters.as_str().starts_with('>') {
            break;
        }
        if letter == '>' {
            letters.next();
        }
        name.push(letter);
    }
    (name, letters.as_str().to_owned())
}
