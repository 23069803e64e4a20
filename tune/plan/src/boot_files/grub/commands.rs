//! Effects of GRUB's commands on a menu. Of most of them only the variables that they may set matter.

use super::{
    DEVICE, Entry, EntryBody, ExpandedWords, Flow, Found, Loaded, Machine, Script, Statement, Stop, Value,
    Word, expand, joined, parse,
    test::{Test, signed},
    unknown,
};
use crate::boot_files::{
    entry,
    entry_order::sorted_by_grub,
    grubenv::{BYTES, GrubEnv, GrubEnvFault},
};
use std::{
    ops::ControlFlow::{self, Break, Continue},
    rc::Rc,
};

/// Commands that load a kernel: today's name, and those of older builds for EFI and BIOS.
pub(in crate::boot_files) const LINUX: [&str; 3] = ["linux", "linuxefi", "linux16"];
/// Commands that load something else.
const LOADERS: [&str; 8] =
    ["chainloader", "multiboot", "multiboot2", "xen_hypervisor", "ntldr", "freedos", "kfreebsd", "plan9"];
/// Commands after which another program or another menu decides, or after which anything can be set.
const DECIDE: [&str; 21] = [
    "boot",
    "eval",
    "exit",
    "extract_entries_configfile",
    "extract_entries_source",
    "extract_legacy_entries_configfile",
    "extract_legacy_entries_source",
    "extract_syslinux_entries_configfile",
    "extract_syslinux_entries_source",
    "gptprio.next",
    "halt",
    "legacy_configfile",
    "legacy_source",
    "normal",
    "normal_exit",
    "reboot",
    "setparams",
    "shift",
    "syslinux_configfile",
    "syslinux_source",
    "uki",
];
/// The directory in which `blscfg` searches for entries.
const ENTRIES: &str = "/loader/entries";

/// True if a command succeeded; none if that is unknown.
type Status = Option<bool>;

impl Machine<'_> {
    pub(super) fn command(&mut self, words: &[Word], block: Option<&Script>) -> Flow {
        let mut arguments = self.expand(words)?;
        let is_inverted = arguments.list.first() == Some(&Some("!".to_owned()));
        let words = words.get(usize::from(is_inverted)..).unwrap_or_default();
        if is_inverted {
            arguments.list.remove(0);
        }
        if arguments.list.is_empty() {
            self.state.status = Some(true);
            return Continue(());
        }
        let status = match arguments.list.remove(0) {
            Some(name) => self.run_command(&name, &arguments, words, block)?,
            None => self.set_unknown(words.first())?,
        };
        self.state.status = status.map(|is_success| is_success != is_inverted);
        Continue(())
    }

    /// An assignment of which only the name is known.
    fn set_unknown(&mut self, word: Option<&Word>) -> ControlFlow<Stop, Status> {
        match word.and_then(|word| word.start().split_once('=')) {
            Some((name, _)) => self.set(name, None),
            None => return unknown("a command whose name is not known"),
        }
        Continue(Some(true))
    }

    fn run_command(
        &mut self,
        name: &str,
        arguments: &ExpandedWords,
        words: &[Word],
        block: Option<&Script>,
    ) -> ControlFlow<Stop, Status> {
        let list = arguments.list.as_slice();
        let first = list.first().and_then(Option::as_deref);
        let status = match name {
            "set" if list.is_empty() => Some(true),
            "set" => match first {
                None => self.set_unknown(words.get(1))?,
                Some(text) => text.split_once('=').map(|(name, value)| {
                    self.set(name, Some(value.to_owned()));
                    true
                }),
            },
            "unset" | "export" => {
                for name in list {
                    let Some(name) = name else { return unknown(format!("a variable of `{name:?}`")) };
                    if words.first().is_some_and(|word| word.start() == "unset") {
                        self.state.variables.remove(name);
                        self.state.exported.remove(name);
                    } else {
                        self.state.exported.insert(name.clone());
                    }
                }
                Some(true)
            }
            "true" | "echo" => Some(true),
            "false" => Some(false),
            "[" | "test" if arguments.is_open => None,
            "[" | "test" => {
                let end = Some("]".to_owned());
                let arguments =
                    if list.last() == Some(&end) { list.split_last().map_or(list, |l| l.1) } else { list };
                Test { arguments, look: &mut |path| self.look(path), depth: 0 }.value()
            }
            "load_env" => self.load_env(list)?,
            "source" | "." | "configfile" => self.run_file(name, first)?,
            "menuentry" | "submenu" => self.add_entry(name, arguments, block)?,
            "blscfg" => self.add_boot_entries(list)?,
            "break" | "continue" if self.loops == 0 => Some(true),
            "break" | "continue" if !list.is_empty() => {
                return unknown(format!("`{name}` out of several loops"));
            }
            "break" => return Break(Stop::Break),
            "continue" => return Break(Stop::Continue),
            "return" if self.calls == 0 => Some(false),
            "return" => {
                if !list.is_empty() {
                    self.state.status = first.map(|text| signed(text) == 0);
                }
                return Break(Stop::Return);
            }
            name if LINUX.contains(&name) => {
                self.state.loaded = Loaded::Linux(line(words, &mut |name| self.value(name)));
                None
            }
            name if LOADERS.contains(&name) => {
                self.state.loaded = Loaded::Other;
                None
            }
            name if DECIDE.contains(&name) => return unknown(format!("the command `{name}`")),
            "fwsetup" if first != Some("--is-supported") => return unknown("the command `fwsetup`"),
            "increment" | "decrement" => {
                let step = if name == "increment" { 1 } else { -1 };
                for name in list.iter().flatten() {
                    let value = self.value(name).map(|value| signed(&value).saturating_add(step).to_string());
                    self.set(name, value);
                }
                None
            }
            name => return self.run_other(name, arguments),
        };
        Continue(status)
    }

    /// A function, an assignment, or a command of which only the variables that it may set matter.
    fn run_other(&mut self, name: &str, arguments: &ExpandedWords) -> ControlFlow<Stop, Status> {
        if let Some(body) = self.state.functions.get(name).cloned() {
            let Some(body) = body else { return unknown(format!("the function `{name}`")) };
            let list =
                arguments.list.iter().map(|value| value.clone().filter(|_| !arguments.is_open)).collect();
            let (outer, loops) =
                (std::mem::replace(&mut self.arguments, list), std::mem::take(&mut self.loops));
            let flow = self.call(|machine| machine.run(&body));
            (self.arguments, self.loops) = (outer, loops);
            return match flow {
                Continue(()) | Break(Stop::Return) => Continue(self.state.status),
                Break(other) => Break(other),
            };
        }
        if let Some((name, value)) = name.split_once('=') {
            self.set(name, Some(value.to_owned()));
            return Continue(Some(true));
        }
        let mut is_next = name == "read" || name.starts_with("search.");
        if name.starts_with("search") {
            self.set("root", None);
        }
        if name == "hwmatch" {
            self.set("match", None);
        }
        for argument in arguments.list.iter().flatten() {
            let named = argument.strip_prefix("--set=").map(|name| name.rsplit(':').next().unwrap_or(name));
            if let Some(name) =
                named.or(Some(argument.as_str()).filter(|name| is_next && !name.starts_with('-')))
            {
                self.set(name, None);
            }
            is_next = is_next || ["--set", "-s", "-v"].contains(&argument.as_str());
        }
        Continue(None)
    }

    /// Finds a path as GRUB does: `(device)/path`, or `/path` on the device `$root`.
    fn look(&self, path: &str) -> Found {
        let (device, path) = match path.strip_prefix('(').and_then(|rest| rest.split_once(')')) {
            Some((device, path)) => (Some(device.to_owned()), path),
            None => (self.value("root"), path),
        };
        if device.as_deref() == Some(DEVICE) { (self.surroundings.read)(path) } else { Found::NotKnown }
    }

    fn load_env(&mut self, list: &[Value]) -> ControlFlow<Stop, Status> {
        let mut path = self.value("prefix").map(|prefix| prefix + "/grubenv");
        let mut names = Vec::new();
        let mut list = list.iter();
        while let Some(argument) = list.next() {
            let Some(argument) = argument else { return unknown("the block of variables that is loaded") };
            match argument.as_str() {
                "-f" | "--file" => path = list.next().cloned().flatten(),
                "-s" | "--skip-sig" => {}
                other => match other.strip_prefix("--file=") {
                    Some(name) => path = Some(name.to_owned()),
                    None => names.push(argument),
                },
            }
        }
        let Some(path) = path else { return unknown("the block of variables that is loaded") };
        let fault = || unknown(format!("{path}, which could not be read"));
        let mut bytes = match self.look(&path) {
            Found::File(bytes) => bytes,
            Found::NotKnown => return fault(),
            Found::Directory | Found::Missing => return Continue(Some(false)),
        };
        if bytes.len() < BYTES {
            bytes.resize(BYTES, b'#');
        }
        match GrubEnv::parse(&bytes) {
            Ok(env) => {
                for (name, value) in env.variables() {
                    if names.is_empty() || names.contains(&&name) {
                        self.set(&name, Some(value));
                    }
                }
                Continue(Some(true))
            }
            Err(GrubEnvFault::Header(_)) => Continue(Some(false)),
            Err(_) => fault(),
        }
    }

    fn run_file(&mut self, name: &str, path: Option<&str>) -> ControlFlow<Stop, Status> {
        let Some(path) = path else { return unknown(format!("the file that `{name}` runs")) };
        let script = match self.look(path) {
            Found::File(bytes) => parse(&String::from_utf8_lossy(&bytes)),
            Found::NotKnown => return unknown(format!("{path}, which could not be read")),
            Found::Directory | Found::Missing => return Continue(Some(true)),
        };
        self.pay(self.state.variables.len() + script.len())?;
        if name != "configfile" {
            self.call(|machine| machine.run_as(path, &script))?;
            return Continue(Some(true));
        }
        let before = self.state.clone();
        self.open_context();
        let loaded = self.call(|machine| machine.menu(&script, Some(path)))?;
        if loaded != Loaded::Nothing || !self.state.entries.is_empty() {
            return Break(Stop::Decided(loaded));
        }
        self.state = before;
        Continue(Some(true))
    }

    fn add_entry(
        &mut self,
        kind: &str,
        arguments: &ExpandedWords,
        block: Option<&Script>,
    ) -> ControlFlow<Stop, Status> {
        let (mut title, mut id, mut is_certain) = (None, None, !arguments.is_open);
        let mut list = arguments.list.iter();
        while let Some(argument) = list.next() {
            let text = argument.as_deref().unwrap_or_default();
            let (name, value) =
                text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
            match name {
                "--id" => {
                    id = Some(value.map_or_else(|| list.next().cloned().flatten(), |id| Some(id.to_owned())));
                }
                "--class" | "--users" | "--hotkey" if value.is_none() => drop(list.next()),
                "--class" | "--users" | "--hotkey" | "--unrestricted" => {}
                _ if text.starts_with("--") => is_certain = false,
                _ => {
                    // An unknown word can be an option.
                    is_certain &= argument.is_some() || title.is_none();
                    title = title.or_else(|| Some(argument.clone()));
                }
            }
        }
        let (Some(title), Some(block)) = (title, block) else {
            return if is_certain {
                Continue(Some(false))
            } else {
                unknown("an entry whose title is not known")
            };
        };
        let id = id.unwrap_or_else(|| title.clone());
        let body = if kind == "submenu" {
            EntryBody::Submenu(Rc::clone(block))
        } else {
            EntryBody::Script(Rc::clone(block))
        };
        self.state.entries.push(Entry { title, id, body, is_certain });
        Continue(Some(true))
    }

    /// Adds the entries of `blscfg`.
    fn add_boot_entries(&mut self, list: &[Value]) -> ControlFlow<Stop, Status> {
        let directory = self.value("blsdir").unwrap_or("?".into());
        let is_usual = match list {
            [] => directory.is_empty() || directory.ends_with(ENTRIES),
            [Some(option), Some(path)] => {
                ["-p", "--path"].contains(&option.as_str()) && path.ends_with(ENTRIES)
            }
            _ => false,
        };
        if !is_usual {
            return unknown("which entries `blscfg` takes");
        }
        for file in sorted_by_grub(self.surroundings.entries, self.build.order) {
            let first = |key: &str| entry::values(&file.text, key).first().map(|value| (*value).to_owned());
            let Some(image) = first("linux") else { continue };
            let options = first("options").map_or_else(|| self.value("default_kernelopts"), Some);
            let line = options.and_then(|options| bls_line(&image, &options, &mut |name| self.value(name)));
            self.pay(line.as_ref().map_or(0, String::len))?;
            let title = Some(first("title").unwrap_or(image));
            let id = Some(file.id.clone());
            self.state.entries.push(Entry { title, id, body: EntryBody::Line(line), is_certain: true });
        }
        Continue(Some(true))
    }
}

/// The kernel's line of a command that loads it, with its image as it is written where that is not known.
pub(in crate::boot_files) fn line(words: &[Word], value_of: &mut dyn FnMut(&str) -> Value) -> Value {
    let (image, arguments) = words.get(1..)?.split_first()?;
    let mut list = expand(std::slice::from_ref(image), value_of).list;
    if let Some(None) = list.first() {
        list = vec![Some(image.written())];
    }
    let arguments = expand(arguments, value_of);
    list.extend(arguments.list);
    let words: Vec<String> = list.into_iter().collect::<Option<_>>()?;
    let (image, arguments) = words.split_first()?;
    (!arguments.is_empty() || !image.is_empty())
        .then(|| format!("BOOT_IMAGE={image} {}", joined(arguments)).trim_end().to_owned())
}

/// The kernel's line of an entry of /boot/loader/entries.
pub(in crate::boot_files) fn bls_line(
    image: &str,
    options: &str,
    value_of: &mut dyn FnMut(&str) -> Value,
) -> Value {
    match parse(&format!("linux {image} {options}")).as_slice() {
        [Statement::Command { words, block: None, .. }] => line(words, value_of),
        _ => None,
    }
}
