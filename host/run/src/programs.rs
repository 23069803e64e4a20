//! Programs of vendors: their output goes into a log, with the command before it.

use crate::Root;
use lowlat_host::{Reading, printable};
use std::{
    fs::File,
    io::{self, Read, Seek as _, SeekFrom},
    os::unix::process::ExitStatusExt as _,
    path::Path,
    process::{Command, ExitStatus, Stdio},
};

/// Longest output of a program that [`read_output`] keeps, in bytes.
pub const OUTPUT_BYTES_MAX: u64 = 16 << 20;
/// Longest quote of a program's line, in characters.
const QUOTED_CHARS_MAX: usize = 160;

#[derive(Debug, Clone, Copy)]
pub struct Program<'a> {
    /// The program and its arguments.
    pub command: &'a [String],
    /// Folder in which it runs; empty: the current one.
    pub folder: &'a str,
    /// Variables added to its environment.
    pub environment: &'a [(String, String)],
}

impl Program<'_> {
    fn start(&self) -> io::Result<Command> {
        let (program, arguments) = self.command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        // A relative path starts at `folder`, not at lowlat's working directory.
        let path = if program.contains('/') && !self.folder.is_empty() {
            Path::new(self.folder).join(program)
        } else {
            Path::new(program).to_path_buf()
        };
        let mut command = Command::new(path);
        command.args(arguments).stdin(silence()?);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        if !self.folder.is_empty() {
            command.current_dir(self.folder);
        }
        Ok(command)
    }

    /// Runs the program with its output appended to the log.
    ///
    /// # Errors
    /// The system's error, if it cannot be started.
    pub fn run_into(&self, log: &File) -> io::Result<ExitStatus> {
        self.start()?.stdout(log.try_clone()?).stderr(log.try_clone()?).status()
    }

    /// Runs the program with lowlat's own output.
    ///
    /// # Errors
    /// The system's error, if it cannot be started.
    pub fn run(&self) -> io::Result<ExitStatus> {
        self.start()?.status()
    }

    /// Runs the program and returns its standard output, or `None` if it is missing or fails.
    pub fn output(&self) -> Option<String> {
        let output = self.start().ok()?.stderr(Stdio::null()).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

/// Returns an empty input for a program.
///
/// # Errors
/// If /dev/null cannot be opened; when a program is started, this would read as if the program were missing.
pub fn silence() -> io::Result<Stdio> {
    let file = File::open("/dev/null");
    file.map(Stdio::from)
        .map_err(|error| io::Error::new(error.kind(), format!("cannot open /dev/null: {error}")))
}

/// Returns the exit code of an ended program; 128 and the signal's number if a signal ended it.
pub fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    u8::try_from(code).unwrap_or(1)
}

/// Opens a log for further lines; creates it and its folder, readable by everybody.
pub fn open_log(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    File::options().create(true).read(true).append(true).open(path)
}

/// Returns the last lines of a log, at most `count`.
pub fn last_lines(log: &mut File, count: usize) -> io::Result<Vec<String>> {
    /// Enough for the last lines of a compiler.
    const BYTES_MAX: u64 = 64 * 1024;
    let size = log.seek(SeekFrom::End(0))?;
    log.seek(SeekFrom::Start(size.saturating_sub(BYTES_MAX)))?;
    let mut bytes = Vec::new();
    log.read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    Ok(lines[lines.len().saturating_sub(count)..].iter().map(|line| (*line).to_owned()).collect())
}

/// Returns the path of a program in one of the folders of PATH.
pub fn find(root: &Root, name: &str, path: &str) -> Option<String> {
    let mut folders = path.split(':').filter(|folder| folder.starts_with('/'));
    folders.find_map(|folder| Some(format!("{folder}/{name}")).filter(|path| root.exists(path)))
}

/// Returns the running programs with an open file of such a name, as "md (1234)". Those of other users are only seen by
/// root.
pub fn with_open_file(root: &Root, is_wanted: impl Fn(&str) -> bool) -> Vec<String> {
    let has_open = |pid: &u32| {
        open_files(root, *pid).known().is_some_and(|files| files.iter().any(|file| is_wanted(file)))
    };
    let named = |pid: u32| {
        let name = root.read(&format!("/proc/{pid}/comm")).into_known().unwrap_or_default();
        format!("{} ({pid})", name.trim())
    };
    let all = root.list("/proc").into_known().unwrap_or_default();
    all.iter().filter_map(|name| name.parse().ok()).filter(has_open).map(named).collect()
}

/// Returns the names of a process's open files: paths, or such as "socket:\[4242\]". Those that are closed meanwhile are
/// left out.
pub fn open_files(root: &Root, pid: u32) -> Reading<Vec<String>> {
    let folder = format!("/proc/{pid}/fd");
    let name = |number: &String| root.read_link(&format!("{folder}/{number}")).into_known();
    root.list(&folder).map(|numbers| numbers.iter().filter_map(name).collect())
}

/// Returns the MD5 sum of a file in hexadecimal digits, as vendors publish it. It detects damage, not forgery.
pub fn md5(path: &Path) -> io::Result<String> {
    use md5::{Digest as _, Md5};
    let mut file = File::open(path)?;
    let mut sum = Md5::new();
    io::copy(&mut file, &mut sum)?;
    Ok(format!("{:x}", sum.finalize()))
}

/// Reads what a program writes until it ends, and keeps the beginning.
pub fn read_output(from: Option<impl Read>) -> String {
    let mut bytes = Vec::new();
    if let Some(mut from) = from {
        // Output read before an error is kept; the rest is drained, or the program would wait for it.
        let _ = from.by_ref().take(OUTPUT_BYTES_MAX).read_to_end(&mut bytes);
        let _ = io::copy(&mut from, &mut io::sink());
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns the last line that is not blank, shortened and safe to print.
pub fn last_line(output: &str) -> Option<String> {
    let line = output.lines().rev().find(|line| !line.trim().is_empty())?;
    let line: String = line.trim().chars().take(QUOTED_CHARS_MAX).collect();
    Some(printable::line(&line).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_by_their_open_files() {
        let tree = crate::testing::TestTree::of(&[("/proc/12/comm", "md\n"), ("/proc/13/comm", "sh\n")])
            .link("/proc/12/fd/3", "onload:[tcp:1:2]")
            .link("/proc/13/fd/0", "/dev/null")
            .dir("/proc/14/fd");
        assert_eq!(with_open_file(&tree.root(), |file| file.starts_with("onload:")), ["md (12)"]);
    }

    #[test]
    fn output_goes_into_the_log_and_relative_programs_into_their_folder() {
        let folder = tempfile::tempdir().unwrap();
        // Another process writes it. A process that another test forks would inherit the file open for writing, and the
        // kernel does not execute such a file.
        let text = "#!/bin/sh\necho \"$DESK in $(pwd)\"\necho oops >&2\nexit 3\n";
        let write = ["-c", "printf %s \"$1\" > build && chmod 755 build", "sh", text];
        assert!(Command::new("sh").args(write).current_dir(&folder).status().unwrap().success());
        let path = folder.path().join("logs/build.log");
        let mut log = open_log(&path).unwrap();
        let program = Program {
            command: &["./build".to_owned()],
            folder: &folder.path().display().to_string(),
            environment: &[("DESK".to_owned(), "seven".to_owned())],
        };
        assert_eq!(program.run_into(&log).unwrap().code(), Some(3));
        let expected = format!("seven in {}", folder.path().display());
        assert_eq!(last_lines(&mut log, 5).unwrap(), [expected, "oops".to_owned()]);
        assert_eq!(last_lines(&mut log, 1).unwrap(), ["oops"]);
        assert_eq!(program.output(), None, "it failed");
    }

    #[test]
    fn sums_are_those_of_md5sum() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a");
        std::fs::write(&file, "abc").unwrap();
        assert_eq!(md5(&file).unwrap(), "900150983cd24fb0d6963f7d28e17f72");
    }
}
