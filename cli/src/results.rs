//! Output files of a run, each written completely or not at all.

use crate::{
    commands::pipeline::pins::PinSource,
    output::{json_lines, talk},
};
use anyhow::bail;
use clap::ArgMatches;
use lowlat_host_run::output::{self, FileAccess, OutputDirectory, OutputError};
use std::{
    ffi::OsString,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

/// Arguments of all commands that name a file to write. Every other path is an input.
const OUTPUTS: [&str; 12] = [
    "before",
    "cached",
    "capture",
    "hlog",
    "json",
    "minimal_role",
    "out",
    "write_pins",
    "report",
    "result",
    "save_trace",
    "textfile",
];

/// Highest number tried for a numbered file.
const NUMBER_MAX: u32 = 999;

/// Refuses a command that would overwrite one of its inputs, or write two results to one file. Existing files are
/// compared by device and inode, so it does not matter how their paths are written. Directories, pipes and devices are
/// not overwritten.
pub fn check_outputs(command: &ArgMatches) -> anyhow::Result<()> {
    let (mut outputs, mut inputs): (Vec<(String, &Path, Place)>, _) = (Vec::new(), Vec::new());
    let mut level = Some(command);
    while let Some(matches) = level {
        for id in matches.ids().map(clap::Id::as_str) {
            // As users type it.
            let name = id.replace('_', "-");
            // Values of other types, and groups of arguments, are no paths.
            let paths = matches.try_get_many::<PathBuf>(id).ok().flatten().into_iter().flatten();
            let pins = matches.try_get_many::<PinSource>(id).ok().flatten().into_iter().flatten();
            let paths = paths.map(PathBuf::as_path).chain(pins.filter_map(PinSource::path));
            for (path, place) in paths.filter_map(|path| Some((path, place_of(path)?))) {
                if !OUTPUTS.contains(&id) {
                    inputs.push(place);
                } else if let Some((other, ..)) = outputs.iter().find(|(.., found)| *found == place) {
                    bail!(
                        "cannot write {}: --{other} and --{name} name the same file\nhint: name another file with --{name}",
                        path.display()
                    );
                } else {
                    outputs.push((name.clone(), path, place));
                }
            }
        }
        level = matches.subcommand().map(|(_, matches)| matches);
    }
    let Some((name, path, _)) = outputs.into_iter().find(|(.., found)| inputs.contains(found)) else {
        return Ok(());
    };
    let option = if name == "capture" { String::new() } else { format!(" with --{name}") };
    bail!("cannot write {}: it is also an input\nhint: name another file{option}", path.display());
}

/// Device and inode of a file, or of its directory with its name if the file does not exist yet.
type Place = (u64, u64, Option<OsString>);

fn place_of(path: &Path) -> Option<Place> {
    if let Ok(file) = std::fs::metadata(path) {
        return file.is_file().then(|| (file.dev(), file.ino(), None));
    }
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = std::fs::metadata(parent.unwrap_or(Path::new("."))).ok()?;
    Some((parent.dev(), parent.ino(), Some(path.file_name()?.to_owned())))
}

/// File to write at the end of a run. It is checked before the run, so that an unwritable directory fails at once and
/// not after hours.
#[derive(Debug)]
pub struct PreparedFile {
    file: output::OutputFile,
    hint: String,
    /// True if the file existed before the run.
    replaces: bool,
}

impl PreparedFile {
    /// Checks that the file can be written; `option` is the flag that names another one.
    pub fn prepare(path: &Path, option: &str) -> anyhow::Result<Self> {
        let hint = format!("name another file with {option}");
        let file =
            output::OutputFile::new(path, FileAccess::Shared).map_err(|error| in_words(&error, &hint))?;
        file.check().map_err(|error| in_words(&error, &hint))?;
        let replaces = file.replaces();
        Ok(Self { file, hint, replaces })
    }

    /// As [`Self::prepare`], for a file that need not be asked for.
    pub fn prepare_if(path: Option<&Path>, option: &str) -> anyhow::Result<Option<Self>> {
        path.map(|path| Self::prepare(path, option)).transpose()
    }

    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Returns the message to print after writing.
    pub fn note(&self) -> String {
        format!("wrote {}", self.shown())
    }

    /// Returns the path, and whether a file of before the run is replaced.
    pub fn shown(&self) -> String {
        let replaced = if self.replaces { ", replacing an earlier file" } else { "" };
        format!("{}{replaced}", self.path().display())
    }

    /// Writes the file, replacing an earlier one.
    pub fn write(&self, bytes: &[u8]) -> anyhow::Result<()> {
        self.file.write(bytes).map_err(|error| in_words(&error, &self.hint))
    }

    /// Writes a value as JSON over several lines, for people to read and edit.
    pub fn write_json_lines(&self, value: &impl serde::Serialize) -> anyhow::Result<()> {
        self.write((json_lines(value)? + "\n").as_bytes())
    }
}

/// Writes the files of a run after its results were printed. A file that cannot be written does not block the others.
pub fn write_all<'a>(
    files: impl IntoIterator<Item = (&'a PreparedFile, anyhow::Result<String>)>,
) -> anyhow::Result<()> {
    let mut failed = Ok(());
    for (file, text) in files {
        let note = file.note();
        match text.and_then(|text| file.write(text.as_bytes())) {
            Ok(()) => talk(&note),
            Err(error) if failed.is_ok() => failed = Err(error),
            Err(error) => talk(&format!("{error:#}")),
        }
    }
    failed
}

/// File under the first free name that lowlat finds, so that no earlier file is lost.
#[derive(Debug)]
pub struct NumberedFile {
    dir: OutputDirectory,
    stem: &'static str,
    ending: &'static str,
    hint: String,
}

impl NumberedFile {
    /// Checks a file in the working directory before the run. `option` is the flag that names another one.
    pub fn prepare(stem: &'static str, ending: &'static str, option: &str) -> anyhow::Result<Self> {
        let hint = format!("name another file with {option}");
        let dir = OutputDirectory::open(Path::new("")).map_err(|error| in_words(&error, &hint))?;
        let file = Self { dir, stem, ending, hint };
        file.at(file.free_from(1)).check().map_err(|error| in_words(&error, &file.hint))?;
        Ok(file)
    }

    /// Returns the first number, starting at `number`, whose name is free.
    pub fn free_from(&self, number: u32) -> u32 {
        (number..NUMBER_MAX).find(|number| !self.at(*number).exists()).unwrap_or(NUMBER_MAX)
    }

    /// Writes the file under the first free name, starting at number `from`, and returns its path.
    pub fn write(&self, text: &str, from: u32) -> anyhow::Result<PathBuf> {
        let mut number = self.free_from(from);
        loop {
            let file = self.at(number);
            match file.write_new(text.as_bytes()) {
                Ok(()) => return Ok(file.path().to_owned()),
                Err(error) if error.is_taken() && number < NUMBER_MAX => number = self.free_from(number + 1),
                Err(error) => return Err(in_words(&error, &self.hint)),
            }
        }
    }

    fn at(&self, number: u32) -> output::OutputFile {
        let name = match number {
            0 | 1 => format!("{}.{}", self.stem, self.ending),
            number => format!("{}-{number}.{}", self.stem, self.ending),
        };
        self.dir.file(name.as_ref(), FileAccess::Shared)
    }
}

/// Returns the error with a hint; `otherwise` is the hint if the cause suggests none.
pub fn in_words(error: &OutputError, otherwise: &str) -> anyhow::Error {
    let hint = error.hint();
    anyhow::anyhow!("{error}\nhint: {}", hint.as_deref().unwrap_or(otherwise))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::any::TypeId;

    /// Arguments that name a file to read or to append to, a directory, or the start of new names.
    const OTHERS: [&str; 35] = [
        "a",
        "archives",
        "b",
        "ca",
        "clock_of",
        "config",
        "credentials_file",
        "dir",
        "file",
        "files",
        "folder",
        "from_recording",
        "hosts",
        "import",
        "into",
        "itch",
        "left",
        "log",
        "master",
        "password_file",
        "plan",
        "program",
        "raw",
        "record",
        "registry",
        "release",
        "restore",
        "right",
        "role",
        "root",
        "save",
        "scenario",
        "state_dir",
        "store",
        "ticks",
    ];

    #[test]
    fn every_path_is_an_input_or_an_output() {
        let mut commands = vec![crate::commands::cli()];
        while let Some(command) = commands.pop() {
            commands.extend(command.get_subcommands().cloned());
            for argument in command.get_arguments() {
                if argument.get_value_parser().type_id() == TypeId::of::<PathBuf>() {
                    let id = argument.get_id().as_str();
                    let is_output = OUTPUTS.contains(&id);
                    assert_ne!(is_output, OTHERS.contains(&id), "{} {id}", command.get_name());
                }
            }
        }
    }

    #[test]
    fn a_file_is_checked_before_the_run_and_a_refusal_has_a_hint() {
        let folder = tempfile::tempdir().unwrap();
        let (plain, link) = (folder.path().join("plain"), folder.path().join("link"));
        std::fs::write(&plain, "older and longer").unwrap();
        std::os::unix::fs::symlink(&plain, &link).unwrap();
        PreparedFile::prepare(&plain, "--result").unwrap().write(b"newer").unwrap();
        assert_eq!(std::fs::read(&plain).unwrap(), b"newer");
        let refused = |path: &Path| PreparedFile::prepare(path, "--result").unwrap_err().to_string();
        assert!(
            refused(&link).ends_with(&format!("\nhint: use {} itself, or remove the link", plain.display()))
        );
        assert!(refused(folder.path()).ends_with("\nhint: name another file with --result"));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "nothing is left over");
    }
}
